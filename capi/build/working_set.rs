//! The code that every program runs, and the tables that it reads, side by side in the shared
//! object.
//!
//! The system maps a file in windows of 64 KiB, or as large as the pages of its cache are. What a
//! program runs to start, to allocate and to exit is some 150 KiB of a megabyte. Spread over all of
//! it, this code takes 540 KiB of a small program's memory; side by side, 200. A module that is
//! missing here costs memory and nothing else. `rustc` gives each function and each variable a
//! section of its own, and a linker script for GNU ld and LLD puts those of the code first, and
//! those of large tables last.

/// Modules of the crate `lumalloc`, and single functions, that all programs run.
pub(crate) const ALWAYS: [&str; 48] = [
    "lifecycle",
    "cxx::resolved::begin",
    "region::malloc::start",
    "region::malloc::divert",
    "front::life::start",
    "front::life::thread_begin",
    "front::life::background",
    "front::life::idle_caches",
    "front::life::process_exit",
    "front::cache::caches_of_thread",
    "front::cache::registry",
    "front::cache::emptying",
    "front::cache::real_cache",
    "front::calls::query::is_ours",
    "front::supply",
    "front::miss::take",
    "front::modes::hardened::sweep::at_exit",
    "front::modes::operators::note",
    "profile::backtrace::modules",
    "profile::backtrace::own_module",
    "middle::passes::decay_pass",
    "middle::passes::hole_pass",
    "middle::arenas::arena",
    "middle::arenas::arena_hooks::decay",
    "middle::arenas::arena_list",
    "middle::arenas::arena_name",
    "middle::arenas::arena_pages",
    "middle::arenas::arena_settings",
    "middle::blocks::owned_slabs",
    "middle::blocks::shared_slabs",
    "middle::blocks::tidy_bins",
    "middle::blocks::transfer_moves",
    "middle::blocks::misuse_report::looks_free",
    "middle::owners",
    "middle::slabs::fresh_pages",
    "middle::handed_out",
    "back::aging::limit",
    "back::map",
    "back::metadata",
    "back::placement::assembly::find_part",
    "back::page_allocator",
    "back::runs",
    "back::system",
    "ground::files",
    "ground::heap_sort",
    "ground::intervals",
    "ground::os",
    "ground::sync::lock",
];

/// Functions of other crates that all programs run.
pub(crate) const OF_OTHERS: [&str; 3] = [
    "lumalloc::atfork",
    "lumalloc_profile::mprof::save_or",
    "lumalloc_region::malloc_options::MallocOptions::method",
];

/// As [`ALWAYS`]: what those programs run that have threads, or large blocks.
pub(crate) const WITH_THREADS: [&str; 15] = [
    "front::life::thread_end",
    "front::cache::current",
    "front::calls::growth",
    "front::calls::query",
    "front::calls::realloc",
    "front::miss::give",
    "front::miss::large_blocks",
    "front::miss::small",
    "middle::arenas::choose_arena",
    "middle::arenas::large",
    "middle::blocks",
    "middle::slabs",
    "middle::passes",
    "back::placement",
    "ground::sync",
];

/// Tables that every allocation of an unknown size reads.
const TABLES: &str = "lumalloc::ground::size_class";

/// Large tables of which most programs use a small part. They lie behind the small variables, so
/// that these share a few pages; a page that is written to is a process's own memory.
pub(crate) const SPARSE: [&str; 28] = [
    "lumalloc::back::map::page_words::ROOT",
    "lumalloc::back::metadata::CHUNKS",
    "lumalloc::front::life::explicit::PLACES",
    "lumalloc::front::life::helper::STATE",
    "lumalloc::front::modes::guarded::TABLE",
    "lumalloc::front::supply::suspects_elsewhere::COPY",
    "lumalloc::ground::conf_record::RECORD",
    "lumalloc::ground::prof_prefix::CURRENT",
    "lumalloc::ground::prof_prefix::OPTION",
    "lumalloc::middle::arenas::arena_list::ARENAS",
    "lumalloc::middle::owners::owner::OWNERS",
    "lumalloc::middle::slabs::holes::IN_ARENAS",
    "lumalloc::observe::destroyed::ENDED",
    "lumalloc::observe::regions::LIST",
    "lumalloc::profile::backtrace::TABLE",
    "lumalloc::profile::backtrace::checked::DEPTHS",
    "lumalloc::profile::backtrace::last_walk::LAST",
    "lumalloc::profile::live::PARTS",
    "lumalloc::profile::names::TABLE",
    "lumalloc_namespace::option_text::LIMITS",
    "lumalloc_namespace::self_description::effective::TEXT",
    "lumalloc_namespace::snapshot::PUBLISHER",
    "lumalloc_profile::log::NAME",
    "lumalloc_profile::monitor::OUTPUT",
    "lumalloc_profile::mprof::NAME",
    "lumalloc_profile::scratch::SPARE_WORDS",
    "lumalloc_region::noted::HEADS",
    "lumalloc_region::usage::RECORDS",
];

/// Returns the linker script. It is beside the linker's own one, which does the rest.
fn script() -> String {
    // `cfree` is another name of `free`, and their section has the name of one of them.
    let calls = ["malloc", "free", "cfree", "calloc", "realloc", "lumalloc_register_atfork"];
    let calls = calls.map(str::to_owned);
    let own = |module: &str| format!("lumalloc::{module}");
    let always = ALWAYS.map(own).into_iter().chain(OF_OTHERS.map(str::to_owned));
    let always = calls.into_iter().chain(always.flat_map(|path| patterns(&path)));
    let with_threads = WITH_THREADS.map(own).into_iter().flat_map(|path| patterns(&path));
    let tables = patterns(TABLES).into_iter();
    let code = |name| format!("    *(.text.{name} .text.unlikely.{name})\n");
    let (always, with_threads): (String, String) =
        (always.map(code).collect(), with_threads.map(code).collect());
    let tables: String = tables.map(|name| format!("    *(.rodata.{name})\n")).collect();
    let sparse = |section: &str| -> String {
        let names = SPARSE.iter().flat_map(|path| patterns(path));
        names.map(|name| format!("    *({section}.{name})\n")).collect()
    };
    let (sparse_data, sparse) = (sparse(".data"), sparse(".bss"));
    // The C library's part of each shared object registers handlers of fork, by way of the table of
    // procedures. The symbols are those that linkers form of a section with such a name.
    format!(
        "SECTIONS {{
  .plt : {{ *(.plt) }}
  .fini : {{ KEEP(*(.fini)) }}
  .text : {{
{always}    *libc_nonshared.a:*(.text .text.*)
    *crtbegin*.o(.text .text.*)
    __start_lumalloc_entries = .;
    *(lumalloc_entries)
    __stop_lumalloc_entries = .;
{with_threads}  }}
}}
INSERT AFTER .init;
SECTIONS {{
  .rodata : {{
{tables}    *(.rodata..Lswitch.table.* .rodata.str2.*)
  }}
}}
INSERT BEFORE .eh_frame_hdr;
SECTIONS {{
  .data.sparse : {{
{sparse_data}  }}
}}
INSERT AFTER .data;
SECTIONS {{
  .bss.sparse (NOLOAD) : {{
{sparse}  }}
}}
INSERT AFTER .bss;
"
    )
}

/// What the symbols of a module contain: as a path, and within the name of an implementation.
fn patterns(path: &str) -> [String; 2] {
    let parts: Vec<&str> = path.split("::").collect();
    let mangled: String = parts.iter().map(|part| format!("{}{part}", part.len())).collect();
    [format!("*{mangled}*"), format!("*{}..*", parts.join(".."))]
}

/// Linkers that do not take the script.
const WITHOUT_SCRIPT: [&str; 3] = ["mold", "gold", "wild"];

/// Returns the linker that one of these flags of `rustc` names, if it does not take the script:
/// `-fuse-ld=mold`, `--ld-path=/usr/bin/ld.gold`, `linker=wild`.
pub(crate) fn without_script<'a>(flags: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let names_linker =
        |word: &&str| ["-fuse-ld=", "--ld-path=", "linker="].iter().any(|by| word.contains(by));
    let words = flags.flat_map(|flag| flag.split(' ')).filter(names_linker);
    let files = words.filter_map(|word| word.rsplit(['=', '/']).next());
    let mut names = files.map(|file| file.strip_prefix("ld.").unwrap_or(file));
    names.find_map(|name| WITHOUT_SCRIPT.into_iter().find(|without| *without == name))
}

/// Tells Cargo to link the shared object so.
pub(crate) fn link() {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let linker = std::env::var("RUSTC_LINKER").map(|linker| format!("linker={linker}"));
    let flags = flags.split('\u{1f}').chain(linker.as_deref());
    if let Some(linker) = without_script(flags) {
        println!("cargo:warning={linker} takes no linker script: small programs need more memory");
        return;
    }
    let out = std::env::var("OUT_DIR").expect("Cargo tells build scripts where to write");
    let path = format!("{out}/working_set.ld");
    std::fs::write(&path, script()).expect("the directory is the script's own");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{path}");
}
