//! The look for misuse at the exit of the hardened tier: what it must find, and what it must not
//! take for misuse.

use lumalloc_tests::run::ending;
use lumalloc_tests::template::matches;
use lumalloc_tests::{Run, cc};

const CANARY: &str = "<lumalloc>: buffer overflow of {hex}: the canary behind its @ bytes was \
                      overwritten (size {n}, arena {n}{owner}){from}";

/// Threads are interrupted while they hand blocks out and free them, by a fork or by the end of the
/// process. The look at all blocks at the exit must not take that for misuse.
#[test]
fn threads_at_the_end_of_a_process_are_not_reported() {
    let program = cc("hardened_exit.c", &[]);
    let ends_well = |how: &str, size: &str, number: u32| {
        let run = Run::preloaded(&program).args([how, size, &number.to_string()]);
        run.conf("hardened:true").stdout();
    };
    ends_well("fork", "8200", 300);
    ends_well("fork", "100", 300);
    (1..=60).for_each(|n| ends_well("late", "600", n * 100));
    (1..=60).for_each(|n| ends_well("last", "600", n * 10));
}

/// Another thread has emptied the cache of the thread that exits.
#[test]
fn a_block_written_behind_is_found_although_the_cache_was_emptied() {
    for size in ["100", "1000"] {
        let run = Run::preloaded(cc("death_emptied.c", &[])).args([size]);
        let output = run.conf("hardened:true,dirty_decay_ms:10").output();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ending(output.status), "signal 6", "{size}: {said}");
        let line = said.strip_suffix('\n').unwrap_or(&said);
        assert!(matches(&CANARY.replace('@', size), line), "{size}: {line}");
    }
}

/// The thread has caches of two arenas. An explicit cache belongs to no thread, so there is no
/// look.
#[test]
fn a_thread_may_have_several_caches_when_it_exits() {
    let program = cc("death_switched.c", &[]);
    let run = |how| Run::preloaded(&program).args([how, "100"]).conf("hardened:true");
    let output = run("arena").output();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(ending(output.status), "signal 6", "{said}");
    let line = said.strip_suffix('\n').unwrap_or(&said);
    assert!(matches(&CANARY.replace('@', "100"), line), "{line}");
    assert_eq!(run("explicit").stdout(), "");
}
