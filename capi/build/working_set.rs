//! The code that every program runs, side by side in the shared object.
//!
//! The system maps code in windows of 64 KiB. What a program runs to start, to allocate and to exit
//! is some 150 KiB of a megabyte. Spread over all of it, this code takes 560 KiB of a small
//! program's memory; side by side, 270. A module that is missing here costs memory and nothing
//! else. `rustc` gives each function a section of its own, and a linker script for GNU ld and LLD
//! puts these sections first.

/// Modules of the crate `lumalloc`, and single functions. First what all programs run, then what
/// those run that have threads, or large blocks.
pub(crate) const MODULES: [&str; 54] = [
    "lifecycle",
    "region::malloc::start",
    "region::malloc::divert",
    "front::life::start",
    "front::life::thread_begin",
    "front::life::background",
    "front::life::idle_caches",
    "front::life::process_exit",
    "front::cache::registry",
    "front::cache::emptying",
    "front::cache::real_cache",
    "front::supply",
    "front::miss::take",
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
    "back::map",
    "back::metadata",
    "back::page_allocator",
    "back::runs",
    "back::system",
    "ground::intervals",
    "ground::os",
    // With threads, or large blocks.
    "front::life::may_start",
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

/// Returns the linker script. It is beside the linker's own one, which does the rest.
fn script() -> String {
    let calls = ["malloc", "free", "calloc", "realloc"].map(str::to_owned);
    let names = calls.into_iter().chain(MODULES.into_iter().flat_map(patterns));
    let sections = names.map(|name| format!("    *(.text.{name} .text.unlikely.{name})\n"));
    let sections: String = sections.collect();
    format!("SECTIONS {{\n  .text : {{\n{sections}  }}\n}}\nINSERT AFTER .init;\n")
}

/// What the symbols of a module contain: as a path, and within the name of an implementation.
fn patterns(module: &str) -> [String; 2] {
    let parts: Vec<&str> = ["lumalloc"].into_iter().chain(module.split("::")).collect();
    let mangled: String = parts.iter().map(|part| format!("{}{part}", part.len())).collect();
    [format!("*{mangled}*"), format!("*{}..*", parts.join(".."))]
}

/// Tells Cargo to link the shared object so.
pub(crate) fn link() {
    let out = std::env::var("OUT_DIR").expect("Cargo tells build scripts where to write");
    let path = format!("{out}/working_set.ld");
    std::fs::write(&path, script()).expect("the directory is the script's own");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-T,{path}");
}
