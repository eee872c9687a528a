//! Processes with the preloaded library: many threads, forks, late frees, limits, memory returned.
//!
//! Each test runs a program of `tests/c/proc_*.c`. The programs check contents and structure
//! themselves; the figures that they print are checked here.

#[path = "process/background.rs"]
mod background;
#[path = "process/sandbox.rs"]
mod sandbox;

use std::sync::{Mutex, MutexGuard, PoisonError};

use lumalloc_tests::memory::number;
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, liblumalloc, liblumalloc_archive, not_tried, scratch};

const MIB: u64 = 1024;

/// Programs that measure memory or start many threads run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn preloaded(source: &str, args: &[&str]) -> String {
    Run::preloaded(cc(source, &[])).args(args).stdout()
}

#[test]
fn ten_thousand_short_threads_leave_nothing() {
    let _alone = alone();
    // On many CPUs there would be many arenas, and chance would decide how soon all of them are in
    // use.
    let run = Run::preloaded(cc("proc_short_threads.c", &[])).args(["10000"]).conf("narenas:2");
    let text = run.stdout();
    let (early, late) = (number(&text, "early_kib"), number(&text, "late_kib"));
    // If each of 9000 threads left one KiB, that would be 9 MiB. How the threads are spread over
    // the arenas accounts for 4 MiB.
    assert!(late < early + 8 * MIB, "memory grows with the number of dead threads: {text}");
}

#[test]
fn a_thousand_live_threads_stay_small() {
    let _alone = alone();
    let program = cc("proc_live_threads.c", &[]);
    let plain = number(&Run::plain(&program).args(["1000"]).stdout(), "rss_kib");
    let ours = number(&Run::preloaded(&program).args(["1000"]).stdout(), "rss_kib");
    assert!(ours < plain + 60 * MIB, "{ours} KiB, glibc {plain} KiB");
}

/// A thread holds 47 KiB while it works. Then it frees all of it, and waits.
#[test]
fn a_thousand_idle_threads_pin_nothing() {
    let _alone = alone();
    let program = cc("proc_idle_threads.c", &[]);
    let run = |args: &[&str]| number(&Run::preloaded(&program).args(args).stdout(), "rss_kib");
    let (unsaid, said) = (run(&["1000", "100"]), run(&["1000", "100", "idle"]));
    assert!(said + 32 * MIB < unsaid, "{said} KiB, without the hint {unsaid} KiB");
    // Stacks and the records of caches take half of this, and the blocks would take much more.
    assert!(said < 48 * MIB, "{said} KiB");
}

/// The thread that sees that much has come back cannot start the one that gives it back: it is in
/// the loader's code, or in a child that shares the memory. A thread that ends can.
#[test]
fn what_came_back_while_no_thread_could_be_started_is_given_back_later() {
    let _alone = alone();
    let program = cc("proc_not_forgotten.c", &[]);
    for (how, conf) in [("exit", "dirty_decay_ms:600000"), ("vfork", "dirty_decay_ms:200")] {
        let run = Run::preloaded(&program).args([how]).conf(conf);
        assert_eq!(run.stdout(), "given back\n", "{how}");
    }
}

#[test]
fn forks_under_traffic_live() {
    let _alone = alone();
    assert_eq!(preloaded("proc_fork.c", &["200"]), "forks=200\n");
}

/// One thread waits for all streams, another one has a stream and waits for memory.
#[test]
fn forks_beside_threads_that_use_streams_live() {
    let _alone = alone();
    assert_eq!(preloaded("proc_fork_streams.c", &["300"]), "forks=300\n");
}

/// As above, where each call of malloc waits for its turn.
#[test]
fn forks_beside_threads_that_use_streams_live_while_malloc_is_traced_or_in_a_region() {
    let _alone = alone();
    for options in ["trace=/dev/null", "method=debug"] {
        let run = Run::preloaded(cc("proc_fork_streams.c", &[])).args(["3"]);
        assert_eq!(run.env("VMALLOC_OPTIONS", options).stdout(), "forks=3\n", "{options}");
    }
}

/// Before a fork they run before those of the library, although it is first used after they were
/// registered: else one that waits for a lock under which another thread allocates would wait for
/// ever.
#[test]
fn handlers_of_fork_that_were_registered_first_may_take_locks_of_threads_that_allocate() {
    for conf in ["", "background_thread:true", "prof:true,lg_prof_sample:12"] {
        let run = Run::preloaded(cc("proc_fork_lock.c", &[])).conf(conf);
        assert_eq!(run.dir(&scratch("fork_lock")).stdout(), "forks=300\n", "{conf}");
    }
}

/// In a program that is linked with the archive, such handlers run between those of the library,
/// while the forking thread holds all its locks.
#[test]
fn handlers_of_fork_that_were_registered_first_may_allocate() {
    let archive = liblumalloc_archive().display().to_string();
    let program = cc("proc_fork_handlers.c", &[&archive]);
    for conf in [
        "",
        "hardened:true",
        "tcache:false",
        "prof:true,lg_prof_sample:12",
        "mprof:true",
        "monitor:true",
    ] {
        let run = Run::plain(&program).conf(conf).dir(&scratch("fork_handlers"));
        assert_eq!(run.stdout(), "handled=80\n", "{conf}");
    }
}

#[test]
fn frees_after_thread_local_destructors() {
    assert_eq!(preloaded("proc_late_free.cc", &[]), "destroyed=2400\n");
}

#[test]
fn frees_in_rounds_of_key_destructors() {
    let _alone = alone();
    let text = preloaded("proc_late_keys.c", &[]);
    assert_eq!(number(&text, "destroyed"), 400 * 8 * 4);
    // If each thread lost a cache, that would be 360 times some KiB.
    assert!(number(&text, "late_kib") < number(&text, "early_kib") + MIB, "{text}");
}

#[test]
fn the_last_arena_serves_all_threads_and_created_ones_none_of_the_library() {
    let _alone = alone();
    let run = Run::preloaded(cc("proc_last_arena.c", &["-rdynamic"])).conf("narenas:8");
    assert_eq!(run.stdout(), "refused=0 left=0\n");
}

/// The words of such threads are gone with their stacks, but nothing has told the library so.
#[test]
fn threads_whose_first_call_comes_too_late_for_the_exit_call() {
    let _alone = alone();
    let program = cc("proc_late_first.c", &["-rdynamic"]);
    for conf in ["narenas:1", "narenas:1,hardened:true", "narenas:1,prof:true,lg_prof_sample:10"] {
        let text = Run::preloaded(&program).conf(conf).stdout();
        assert_eq!(text.lines().count(), 5, "{text}");
        for line in text.lines() {
            assert_eq!(number(line, "alive"), 1, "{conf}: {line}");
            // If each of 500 threads lost its cache, that would be 3000 KiB or more.
            assert!(number(line, "grown_kib") < 400, "{conf}: {line}");
        }
    }
}

/// After its end, a thread's words are neither read nor changed, and the blocks it freed are free.
/// A thread that ended in `malloc` would leave locks of the program and of the library locked. With
/// each of these options some requests read or write a file.
#[test]
fn no_thread_is_cancelled_within_malloc() {
    let program = cc("proc_cancelled.c", &[]);
    let directory = scratch("cancelled");
    for conf in [
        "",
        "monitor:true",
        "prof:true,lg_prof_sample:12,lg_prof_interval:22,prof_prefix:profile",
        "stats_interval:16777216",
        "mprof:true",
    ] {
        let run = Run::preloaded(&program).conf(conf).dir(&directory);
        assert_eq!(run.stdout(), "allocated=60192\n", "{conf}");
    }
    assert!(std::fs::read_dir(&directory).expect("a directory").count() > 3, "files are written");
}

#[test]
fn threads_whose_end_is_not_told_get_no_cache() {
    let _alone = alone();
    let program = cc("proc_no_exit_call.c", &["-rdynamic"]);
    let alive = |refused: &str| {
        let text = Run::preloaded(&program).env("REFUSED", refused).stdout();
        number(&text, "alive")
    };
    assert_eq!(["", "key", "value"].map(alive), [1, 0, 0]);
}

/// What a program says that cannot lock its memory as it is to.
const MAY_NOT: &str = "this user may not\n";

/// The system counts addresses against such a limit, so a table of 8 MiB would be refused.
#[test]
fn a_user_who_may_lock_little_memory_gets_some() {
    let text = preloaded("proc_locked.c", &["8192"]);
    if text == MAY_NOT {
        not_tried("a user who may lock little memory", "this user cannot become one");
        return;
    }
    assert!(number(&text, "allocated_kib") >= 512, "{text}");
}

/// A process that may lock everything locks the memory in use, but not the tables.
#[test]
fn a_process_that_locks_its_memory_locks_no_unused_tables() {
    let text = preloaded("proc_locked.c", &[]);
    if text == MAY_NOT {
        not_tried("a process that locks its memory", "this user may not lock everything");
        return;
    }
    // The library and the C library take 4 MiB of it; the first pages of the heap and the first
    // records take 2 MiB each.
    assert!(number(&text, "resident_kib") < 12 * MIB, "{text}");
    assert_eq!(number(&text, "allocated_kib"), 4000);
}

/// The heap of a process that a fatal error ends has a GiB of addresses.
#[test]
fn the_end_by_an_error_locks_no_unused_addresses() {
    let program = cc("proc_locked_abort.c", &["-Wno-use-after-free"]);
    let output = Run::preloaded(program).output();
    let text = String::from_utf8_lossy(&output.stdout);
    if text == MAY_NOT {
        let why = "this user may not lock everything";
        not_tried("an error in a process that locks its memory", why);
        return;
    }
    assert!(text.starts_with("block=1 ") && number(&text, "resident_kib") < 16 * MIB, "{text}");
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn a_thread_made_by_clone_leaves_nothing_that_dangles() {
    assert_eq!(preloaded("proc_raw_clone.c", &[]), "alive=1\n");
}

#[test]
fn what_the_c_library_frees_at_the_end_of_a_thread_gives_it_no_cache() {
    assert_eq!(preloaded("proc_threads_without_malloc.c", &[]), "more=0\n");
}

#[test]
fn what_is_locked_is_purged_no_more_than_the_system_lets() {
    for conf in ["", "dirty_decay_ms:0"] {
        let program = cc("proc_sparse_slabs.c", &[]);
        let purged_of_full = |args: &[&str]| {
            let text = Run::preloaded(&program).args(args).conf(conf).stdout();
            (number(&text, "purged_kib"), number(&text, "full_kib"), text)
        };
        let (purged, full, text) = purged_of_full(&["40000"]);
        assert!(purged < full / 2, "{conf}: {text}");
        let (purged, full, text) = purged_of_full(&["40000", "lock"]);
        if number(&text, "locked") == 0 {
            not_tried("purges of locked memory", "this user may not lock everything");
            continue;
        }
        assert!(full > 20 * MIB && purged == full, "{conf}: {text}");
    }
}

#[test]
fn each_of_many_sparse_slabs_gives_its_holes_back() {
    let _alone = alone();
    let text = preloaded("proc_sparse_slabs.c", &["1200000"]);
    let (full, purged) = (number(&text, "full_kib"), number(&text, "purged_kib"));
    assert!(full > 500 * MIB && purged < 160 * MIB, "{text}");
}

#[test]
fn a_thread_that_only_frees_keeps_little() {
    let _alone = alone();
    let text = preloaded("proc_free_only.c", &["1024"]);
    assert!(number(&text, "peak_kib") < 32 * MIB, "1 GiB passed, at most 5 MiB at once: {text}");
}

#[test]
fn a_limit_of_address_space_is_survived() {
    let _alone = alone();
    let program = cc("proc_address_limit.c", &[]);
    // With the second one no address is left for the records that more, smaller blocks need.
    for kib in [65_536, 100_000] {
        let script = format!("ulimit -v {kib} && exec \"$0\" {kib}");
        let text = Run::preloaded("/bin/bash").args(["-c", &script]).args([&program]).stdout();
        assert!(text.ends_with("done\n"), "{text}");
    }
}

/// The heap keeps few addresses that it does not use.
#[test]
fn after_a_burst_under_a_limit_of_address_space_others_have_the_addresses() {
    let _alone = alone();
    let program = cc("proc_address_burst.c", &["-pthread"]);
    let has_addresses = |run: Run, conf: &str| {
        assert_eq!(run.conf(conf).stdout(), "thread=0\nmapping=0\nblock=0\n", "{conf}");
    };
    for conf in ["", "retain:false", "narenas:1", "tcache:false"] {
        for limit in ["-v", "-d"] {
            let script = format!("ulimit {limit} 1048576 && exec \"$0\"");
            let limited = Run::preloaded("/bin/bash").args(["-c", &script]).args([&program]);
            has_addresses(limited, conf);
        }
        has_addresses(Run::preloaded(&program).args(["1024"]), conf);
    }
}

/// Without a refusal that would tell the library of the limit.
#[test]
fn a_limit_of_address_space_that_the_program_sets_is_known_at_once() {
    let _alone = alone();
    let program = cc("proc_late_limit.c", &[]);
    for call in [&[][..], &["prlimit"]] {
        assert_eq!(Run::preloaded(&program).args(call).stdout(), "done\n", "{call:?}");
    }
}

/// As libfaketime does.
#[test]
fn a_library_s_clock_may_allocate_at_its_first_call() {
    let clock = cc("proc_clock.c", &["-shared", "-fPIC"]).display().to_string();
    for conf in ["", "hardened:true", "prof:true", "background_thread:true", "tcache:false"] {
        let library = liblumalloc().display().to_string();
        for order in [[&library, &clock], [&clock, &library]] {
            let run =
                Run::plain("/bin/true").env("LD_PRELOAD", order.map(|s| s.as_str()).join(":"));
            assert_eq!(run.conf(conf).stdout(), "", "{conf}");
        }
    }
}

#[test]
fn a_tiny_program_stays_tiny() {
    let _alone = alone();
    let text = preloaded("proc_tiny.c", &[]);
    assert!(number(&text, "peak_kib") < 3 * MIB, "{text}");
}

#[test]
fn a_thread_s_requests_take_little_of_its_stack() {
    let text = preloaded("proc_stack.c", &[]);
    // The dynamic linker itself takes 3 KiB to bind malloc.
    for requests in ["stack", "growth"] {
        assert!(number(&text, requests) < 4096, "{text}");
    }
}

/// The producer sleeps, the consumer frees, a third thread allocates. The memory is returned.
fn hand_over(mib: &str, decay_ms: &str) {
    let _alone = alone();
    let conf = format!("dirty_decay_ms:{decay_ms}");
    let run = Run::preloaded(cc("proc_handover.c", &[])).args([mib, decay_ms]).conf(&conf);
    let text = run.stdout();
    let (full, end) = (number(&text, "full_kib"), number(&text, "end_kib"));
    assert!(full > mib.parse::<u64>().expect("a number") * MIB, "{text}");
    assert!(end < full / 8, "memory is not returned: {text}");
}

#[test]
fn what_a_sleeping_producer_handed_over_is_returned() {
    hand_over("512", "1000");
}

#[test]
#[ignore = "2 GiB and half a minute: tests/run --all"]
fn slow_two_gib_handed_over_are_returned() {
    hand_over("2048", "10000");
}

#[test]
fn a_message_that_nobody_reads_ends_no_program() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut program = std::process::Command::new("/bin/true");
    program.env("LD_PRELOAD", liblumalloc()).env("LUMALLOC_CONF", "no_such_option:1");
    let status = program.stderr(writer).status().expect("it starts");
    assert_eq!(ending(status), "exit 0");
}

/// Strict overcommit refuses writable addresses that nobody uses. It is a setting of the whole
/// machine, so here the system counts such addresses, and a limit refuses the request beyond all
/// limits: the first one nothing else, the second one also large tables.
#[test]
fn no_more_is_committed_than_is_used() {
    let _alone = alone();
    let program = cc("proc_overcommit.c", &[]);
    for limit_kib in ["1073741824", "1048576"] {
        let script = format!("ulimit -v {limit_kib} && exec \"$0\"");
        let text = Run::preloaded("/bin/bash").args(["-c", &script]).args([&program]).stdout();
        let (requested, data) = (number(&text, "requested_kib"), number(&text, "data_kib"));
        // A heap that happens to cross a multiple of 4 GiB has a second leaf of the page map.
        let leaf = 8 * MIB + 4;
        assert!(data < requested * 2 + leaf, "{limit_kib}: more is committed than used: {text}");
    }
}
