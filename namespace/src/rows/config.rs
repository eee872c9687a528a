//! `config.*`: what was built in, and where the options came from.
use crate::row::Spec;
use crate::row_macros::ro;
use crate::self_description::effective;
use lumalloc::options;

/// A row that says whether the build has a feature.
macro_rules! built {
    ($name:literal, $has:expr, $help:literal) => {
        ro!(concat!("config.", $name), Bool, None, |_| $has, $help)
    };
}

/// The rows of `config.*`.
pub static ROWS: &[Spec] = &[
    built!("cache_oblivious", false, "large blocks begin at a random cache line of their page"),
    built!("debug", cfg!(debug_assertions), "built with assertions"),
    built!("fill", true, "opt.junk and opt.zero have an effect"),
    built!("lazy_lock", false, "locks wait for a second thread before they lock"),
    ro!("config.malloc_conf", Str, None, |_| c"", "option string compiled in: none ever is"),
    built!("opt_safety_checks", true, "misuse checks are compiled in: see opt.hardened"),
    built!("prof", true, "the heap profiler is compiled in"),
    ro!(
        "config.prof_libgcc",
        Bool,
        None,
        |_| options::current().prof_libgcc,
        "backtraces of profiles come from libgcc: opt.prof_libgcc"
    ),
    built!("prof_libunwind", false, "backtraces of profiles come from libunwind"),
    built!("prof_frameptr", false, "backtraces of profiles come from frame pointers"),
    built!("stats", true, "statistics are compiled in"),
    built!("thp", true, "huge pages can be asked for: see opt.thp").deprecated(),
    built!("utrace", false, "calls can be traced with utrace(2)"),
    built!("xmalloc", true, "opt.xmalloc has an effect"),
    ro!(
        "config.effective",
        Str,
        None,
        |_| effective::text(),
        "all options in force, as one option string"
    ),
    ro!(
        "config.ignored",
        Str,
        None,
        |_| options::ignored(),
        "what was ignored in option strings, each with its reason and source; empty: nothing"
    ),
    ro!(
        "config.source",
        Str,
        None,
        |_| options::sources(),
        "where option strings were found, with commas, the last wins; empty: nowhere"
    ),
];
