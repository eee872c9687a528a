//! The C and C++ interface from outside: the programs `tests/c/api_*`, each linked with the shared
//! object, linked with the archive, static, and preloaded; the header; the exported symbols.
//!
//! `LUMALLOC_TEST_LIBRARY=…/libjemalloc.so.2` and `LUMALLOC_TEST_ARCHIVE=…/libjemalloc_pic.a` run
//! the programs on jemalloc, to check that they expect what the original does. Differences are left
//! out by `-DFOREIGN`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use lumalloc_tests::build::is_foreign;
use lumalloc_tests::machine::{is_emulated, tool};
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, liblumalloc, liblumalloc_archive, root};

/// How a program gets the library.
#[derive(Clone, Copy)]
enum Door {
    /// `-llumalloc`.
    Linked,
    /// `liblumalloc.a` in a dynamic program.
    Archive,
    /// `liblumalloc.a` in a static program.
    Static,
    /// Linked with another library that has all the names, and run with `LD_PRELOAD`.
    Preloaded,
}

/// Compiles a program, runs it with the library and requires that it prints `ok`.
fn run(source: &str, door: Door) {
    let library = liblumalloc();
    let archive = liblumalloc_archive();
    let [dir, file] = [library.parent().map(Path::as_os_str), library.file_name()]
        .map(|part| part.expect("a file in a directory").to_string_lossy());
    let mut args = match door {
        Door::Linked => {
            vec![format!("-L{dir}"), format!("-l:{file}")]
        }
        Door::Archive => vec![archive.display().to_string()],
        Door::Static => vec!["-static".to_owned(), archive.display().to_string()],
        Door::Preloaded => vec![stand_in()],
    };
    if is_foreign() {
        args.extend(["-DFOREIGN", "-ldl", "-lm", "-lstdc++"].map(str::to_owned));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let program = cc(source, &args);
    let run = match door {
        Door::Preloaded => Run::preloaded(program),
        // Cargo sets this variable for tests, perhaps to an older build.
        _ => Run::plain(program).env("LD_LIBRARY_PATH", &*dir),
    };
    assert_eq!(run.stdout(), "ok\n", "{source}");
}

/// Another library that has all the names.
fn stand_in() -> String {
    cc("api_stand_in.c", &["-shared", "-fPIC"]).display().to_string()
}

/// Defines a module per program, with a test for each [`Door`].
macro_rules! programs {
    ($($name:ident $source:literal)*) => {$(
        mod $name {
            use super::{Door, run};

            #[test]
            fn linked() {
                run($source, Door::Linked);
            }

            #[test]
            fn archive() {
                run($source, Door::Archive);
            }

            #[test]
            fn fully_static() {
                run($source, Door::Static);
            }

            #[test]
            fn preloaded() {
                run($source, Door::Preloaded);
            }
        }
    )*};
}

programs! {
    standard "api_standard.c"
    early_atfork "api_early_atfork.c"
    aligned "api_aligned.c"
    contents "api_contents.c"
    allocx "api_allocx.c"
    zeroed "api_zeroed.c"
    mallctl "api_mallctl.c"
    ctl_rules "api_ctl_rules.c"
    ctl_sweep "api_ctl_sweep.c"
    thread_ctl "api_thread_ctl.c"
    hook_mallctl "api_hook_mallctl.c"
    stats_print "api_stats_print.c"
    stats_threads "api_stats_threads.c"
    glibc "api_glibc.c"
    walk "api_walk.c"
    conf_symbol "api_conf_symbol.c"
    conf_reference "api_conf_reference.c"
    jemalloc_header "api_jemalloc_header.c"
    jemalloc_header_in_cxx "api_jemalloc_header.cc"
    operators "api_operators.cc"
    bad_alloc "api_bad_alloc.cc"
}

/// C++ says which forms call which, and a program that replaces some has replaced those too.
#[test]
fn forms_of_new_and_delete_call_those_of_the_program() {
    for own in [&[][..], &["-DALIGNED"], &["-DARRAYS"], &["-DALIGNED", "-DARRAYS"]] {
        let program = cc("api_program_operators.cc", own);
        Run::plain(&program).stdout();
        for conf in ["", "hardened:true", "guarded_sample:2", "tcache:false"] {
            assert_eq!(Run::preloaded(&program).conf(conf).stdout(), "", "{own:?} {conf}");
        }
        // Constructors of other libraries may call them before this one is told that it is loaded.
        for first in ["0", "1", "2", "3", "4", "5"] {
            Run::preloaded(&program).args([first]).stdout();
        }
    }
}

#[test]
fn a_program_may_replace_new_and_not_delete() {
    for own in [&[][..], &["-DARRAYS"], &["-DALIGNED"]] {
        let program = cc("api_own_new.cc", own);
        Run::plain(&program).stdout();
        for conf in ["", "hardened:true", "guarded_sample:2", "tcache:false"] {
            assert_eq!(Run::preloaded(&program).conf(conf).stdout(), "", "{own:?} {conf}");
        }
    }
}

/// The end of a block depends on the mode that allocates it.
#[test]
fn all_usable_bytes_of_a_zeroed_block_are_zero_in_every_mode() {
    let program = cc("api_zeroed.c", &[&stand_in()]);
    for conf in [
        "hardened:true",
        "hardened:true,guarded_sample:1",
        "guarded_sample:2",
        "junk:true",
        "junk:true,hardened:true,guarded_sample:2",
        "zero:true",
        "tcache:false",
        "dirty_decay_ms:0",
        "thp:always",
    ] {
        assert_eq!(Run::preloaded(&program).conf(conf).stdout(), "ok\n", "{conf}");
    }
}

#[test]
fn no_thread_may_touch_the_pages_around_large_blocks_of_the_hardened_tier() {
    let program = cc("api_closed_pages.c", &[&stand_in()]);
    assert_eq!(Run::preloaded(&program).conf("hardened:true").stdout(), "ok\n");
}

/// The help of `thread.allocated` promises this.
#[test]
fn a_realloc_that_keeps_the_block_as_long_as_it_is_counts_nothing() {
    let program = cc("api_thread_counts.c", &[&stand_in()]);
    for conf in ["", "hardened:true", "allocatedp_live:false", "tcache:false", "junk:true"] {
        assert_eq!(Run::preloaded(&program).conf(conf).stdout(), "ok\n", "{conf}");
    }
}

#[test]
fn an_automatic_arena_that_is_not_made_takes_hooks() {
    let program = cc("api_unmade_arena.c", &[&stand_in()]);
    assert_eq!(Run::preloaded(program).conf("narenas:9").stdout(), "ok\n");
}

#[test]
fn opened_with_dlopen() {
    let program = cc("api_dlopen.c", &["-ldl"]);
    assert_eq!(Run::plain(program).args([liblumalloc()]).stdout(), "ok\n");
}

#[test]
fn operator_new_without_a_cxx_runtime_dies_with_a_message() {
    let program = cc("api_new_from_c.c", &[]);
    let output = Run::preloaded(program).output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(
        said,
        "<lumalloc>: operator new: out of memory, and no C++ runtime to throw std::bad_alloc\n"
    );
}

/// As an interpreter in C does.
#[test]
fn operator_new_finds_a_cxx_runtime_that_is_loaded_later() {
    let program = cc("api_late_cxx.c", &[]);
    let module = cc(
        "api_late_module.cc",
        &["-shared", "-fPIC", "-std=c++17", "-Wno-alloc-size-larger-than"],
    );
    let module = module.to_str().expect("UTF-8");
    for args in [&[module][..], &[module, "global"]] {
        assert_eq!(Run::preloaded(&program).args(args).stdout(), "4\n");
    }
}

#[test]
fn the_harder_options_hold_whatever_the_environment_says() {
    let library = liblumalloc();
    let dir = library.parent().expect("a file in a directory").to_str().expect("UTF-8");
    let program = cc("api_conf_harder.c", &[&format!("-L{dir}"), "-llumalloc"]);
    for conf in ["", "dirty_decay_ms:4444,muzzy_decay_ms:4444"] {
        let run = Run::plain(&program).env("LD_LIBRARY_PATH", dir).conf(conf);
        assert_eq!(run.stdout(), "ok\n", "{conf:?}");
    }
}

#[test]
fn the_variable_of_a_prefixed_jemalloc_is_warned_of_once() {
    let program = cc("api_standard.c", &["-DFOREIGN"]);
    for (name, expected) in [
        (
            "_RJEM_MALLOC_CONF",
            "<lumalloc>: _RJEM_MALLOC_CONF is set and not read: \
             lumalloc reads MALLOC_CONF and LUMALLOC_CONF\n",
        ),
        ("MALLOC_CONF", ""),
    ] {
        let output = Run::preloaded(&program).env(name, "narenas:2").output();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{name}");
    }
}

#[test]
fn the_header_suits_every_language_level() {
    let c = ["c89", "gnu89", "c99", "c11", "c17", "gnu17", "c2x"];
    let cxx = ["c++98", "c++11", "c++14", "c++17", "c++20", "c++23"];
    for order in ["-DALONE", "-DFIRST", "-DLAST"] {
        for level in c {
            let level = format!("-std={level}");
            cc("api_jemalloc_header.c", &["-c", "-pedantic", &level]);
            cc("api_jemalloc_header.c", &["-c", "-pedantic", &level, "-DJEMALLOC_MANGLE"]);
            cc("api_header.c", &["-c", "-pedantic", "-U_GNU_SOURCE", &level, order]);
            cc("api_header.c", &["-c", "-pedantic", &level, order]);
        }
        for level in cxx {
            let level = format!("-std={level}");
            cc("api_header.cc", &["-c", "-pedantic", &level, order]);
            cc("api_jemalloc_header.cc", &["-c", "-pedantic", &level]);
            cc("api_jemalloc_header.cc", &["-c", "-pedantic", &level, "-DJEMALLOC_NO_DEMANGLE"]);
        }
    }
}

/// The symbols that `nm` lists with these arguments, as lines `kind name`.
fn symbols(args: &[&str]) -> BTreeSet<String> {
    let output =
        Command::new(tool("nm")).args(args).arg(liblumalloc()).output().expect("nm starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("symbols are text");
    let kind_and_name = |line: &str| line.get(17..).map(str::to_owned);
    text.lines().filter_map(kind_and_name).collect()
}

#[test]
fn exactly_the_golden_symbols_are_exported() {
    let exported = symbols(&["-D", "--defined-only"]);
    let path = root().join("tests/golden/exported-symbols.txt");
    let golden = std::fs::read_to_string(&path).expect("the golden list");
    let golden: BTreeSet<String> = golden.lines().map(str::to_owned).collect();
    let missing: Vec<_> = golden.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&golden).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing: {missing:?}\nsurplus: {surplus:?}");
}

#[test]
fn no_symbol_of_a_cxx_or_rust_runtime_is_demanded() {
    let demanded = symbols(&["-D", "--undefined-only"]);
    assert!(demanded.iter().any(|symbol| symbol.starts_with("U mmap")), "{demanded:?}");
    // On AArch64 the loader of the C library has the stack protector's word.
    let is_guard = |symbol: &String| symbol == "U __stack_chk_guard" && is_emulated();
    let is_of_c = |symbol: &String| symbol.contains("@GLIBC_") || is_guard(symbol);
    // A weak reference to a variable of the loader, which has no version where none is linked.
    let is_weak = |symbol: &String| symbol.starts_with("w ") || symbol == "v _r_debug";
    let strong = |symbol: &&String| !is_weak(symbol) && !is_of_c(symbol);
    let foreign: Vec<_> = demanded.iter().filter(strong).collect();
    assert!(foreign.is_empty(), "not of the C library: {foreign:?}");
}

#[test]
fn realloc_to_zero_does_as_the_option_says() {
    let program = cc("api_zero_realloc.c", &[]);
    for (conf, expected) in
        [("", "NULL\n"), ("zero_realloc:free", "NULL\n"), ("zero_realloc:alloc", "block\n")]
    {
        assert_eq!(Run::preloaded(&program).conf(conf).stdout(), expected, "{conf:?}");
    }
    let output = Run::preloaded(&program).conf("zero_realloc:abort").output();
    assert_eq!(ending(output.status), "signal 6");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "<lumalloc>: realloc(p, 0) under zero_realloc:abort\n");
    let output = Run::preloaded(&program).args(["message"]).conf("zero_realloc:abort").output();
    assert_eq!(ending(output.status), "signal 6");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "<lumalloc>: realloc(p, 0) under zero_realloc:abort\n", "malloc_message");
}

/// If a panic were reachable, its handler and the handler's message would be too, because link-time
/// optimisation drops only unreachable code.
#[test]
fn nothing_can_panic() {
    let all = symbols(&["--demangle"]);
    assert!(all.iter().any(|symbol| symbol.contains("lumalloc::")), "the symbols were stripped");
    let panicking: Vec<_> = all.iter().filter(|symbol| symbol.contains("panick")).collect();
    assert!(panicking.is_empty(), "{panicking:?}");
    let library = std::fs::read(liblumalloc()).expect("the library can be read");
    let holds = |text: &[u8]| library.windows(text.len()).any(|window| window == text);
    assert!(holds(b"<lumalloc>: operator new: out of memory"), "messages are found by their text");
    assert!(!holds(b"<lumalloc>: internal error: panic"), "the panic handler is reachable");
}
