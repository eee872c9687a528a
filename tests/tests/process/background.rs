//! The background thread: what it gives back, and where it may be.

use super::*;

const BACKGROUND: &str = "background_thread:true,dirty_decay_ms:300";

fn background(what: &str) -> Run {
    Run::preloaded(cc("proc_background.c", &[])).args([what]).conf(BACKGROUND)
}

fn before_full_left(text: &str) -> [u64; 3] {
    ["before_kib", "full_kib", "left_kib"].map(|name| number(text, name))
}

#[test]
fn with_a_background_thread_an_idle_process_shrinks() {
    let _alone = alone();
    let text = background("idle").stdout();
    let [before, full, left] = before_full_left(&text);
    assert!(full > before + 40 * MIB && left <= before + 8 * MIB, "{text}");
    assert_eq!(number(&text, "threads"), 1, "{text}");
    // All signals but SIGKILL, SIGSTOP, and the two that the C library keeps for itself.
    assert!(text.contains("blocked=fffffffe7ffbfeff"), "signals reach the thread: {text}");
}

#[test]
fn where_threads_are_refused_the_background_thread_is_off() {
    // What the system has no room for now is tried again later. What is forbidden is not.
    for (what, error, auto) in [("refused", 11, 1), ("seccomp", 1, 0)] {
        let output = background(what).output();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = format!("<lumalloc>: the background thread cannot be started (error {error})\n");
        // Once for the option, and once for the key.
        assert_eq!(String::from_utf8_lossy(&output.stderr), line.repeat(2), "{what}");
        assert_eq!(text, format!("refused, auto={auto}\n"));
    }
}

/// Nothing else gives memory back there. A static program starts no thread by itself.
#[test]
fn where_no_thread_can_be_started_callers_give_unused_memory_back() {
    let _alone = alone();
    let archive = liblumalloc_archive().display().to_string();
    let fixed = Run::plain(cc("proc_background.c", &["-static", &archive])).args(["callers", "0"]);
    let [forbidden, no_room] = ["1", "11"].map(|error| background("callers").args([error]));
    for run in [forbidden, no_room, fixed] {
        let text = run.conf("dirty_decay_ms:600000").stdout();
        let [before, full, left] = before_full_left(&text);
        assert!(full > before + 60 * MIB && left < before + 16 * MIB, "{text}");
    }
}

/// The handlers of the C library do not run for such a child.
#[test]
fn a_child_that_is_made_by_the_system_call_knows_that_it_has_no_background_thread() {
    let _alone = alone();
    let run = Run::preloaded(cc("proc_raw_fork.c", &[])).conf(BACKGROUND);
    let text = run.stdout();
    assert_eq!(["threads", "child_threads"].map(|name| number(&text, name)), [1, 0], "{text}");
    assert!(number(&text, "left_kib") + 20 * MIB < number(&text, "full_kib"), "{text}");
}

#[test]
fn a_background_thread_does_not_outlive_the_program() {
    let _alone = alone();
    for _ in 0..20 {
        for what in ["last", "exit"] {
            assert_eq!(background(what).stdout(), "", "{what}");
        }
    }
    // Without caches, threads end as well.
    let conf = format!("{BACKGROUND},tcache:false");
    let run = Run::preloaded(cc("proc_background.c", &[])).args(["last"]).conf(&conf);
    assert_eq!(run.stdout(), "");
}

/// Joins threads whose thread-local storage the C library frees under a lock that the start of a
/// thread takes too. So no thread may be started there.
fn join_many(args: &[&str], conf: &str) {
    let run = Run::preloaded(cc("proc_background.c", &[])).args(args).conf(conf);
    let run = run.env("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=1");
    assert_eq!(run.stdout(), "joined\n", "{conf}");
}

#[test]
fn no_thread_is_started_for_a_time_where_the_c_library_holds_its_lock() {
    let _alone = alone();
    join_many(&["loader"], "tcache:false");
    join_many(&["loader"], "");
}

/// `setuid` and `unshare` want a process that has one thread, and the program has joined all
/// others.
#[test]
fn no_thread_of_the_library_is_left_when_all_others_were_joined() {
    let _alone = alone();
    assert_eq!(preloaded("proc_joined.c", &[]), "started=1 left=0\n");
}

/// A tool may hold a lock in its own `pthread_create` that it also holds while it frees.
#[test]
fn no_thread_is_started_for_a_time_by_another_pthread_create() {
    let _alone = alone();
    assert_eq!(preloaded("proc_wrapped_create.c", &[]), "auto=0\n");
}

#[test]
fn a_wanted_thread_is_not_started_where_the_c_library_holds_its_lock() {
    let _alone = alone();
    join_many(&["loader", "alone"], "background_thread:true,tcache:false");
    join_many(&["loader", "alone"], "background_thread:true");
}

#[test]
fn no_thread_is_started_in_the_child_of_a_vfork() {
    let _alone = alone();
    for conf in ["", "background_thread:true"] {
        let run = Run::preloaded(cc("proc_background.c", &[])).args(["vfork"]).conf(conf);
        assert_eq!(run.stdout(), "child=0\n", "{conf}");
    }
}

/// Each of these ways once left all memory where it was, as long as all threads slept.
#[test]
fn memory_comes_back_however_it_became_unused() {
    let _alone = alone();
    let program = cc("proc_comes_back.c", &["-rdynamic"]);
    for way in ["shrink", "xallocx", "alone", "reset", "other", "frees", "ended", "late"] {
        // Longer than two of the times of the other arena.
        let conf = if way == "other" { "dirty_decay_ms:4000" } else { "dirty_decay_ms:1000" };
        let run = Run::preloaded(&program).args([way]).conf(conf);
        assert_eq!(run.stdout(), "given back\n", "{way}");
    }
}
