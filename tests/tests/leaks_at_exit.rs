//! What `prof_leak` and `prof_leak_error` do when a program exits.

use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, scratch};

/// The lines of standard error that report leaks, and how the program ended.
fn leaks(count: &str, conf: &str) -> (Vec<String>, String) {
    let program = cc("profile_sites.cc", &[]);
    let output = Run::preloaded(&program).args(["leak", count]).conf(conf).output();
    let errors = String::from_utf8_lossy(&output.stderr);
    (errors.lines().map(str::to_owned).collect(), ending(output.status))
}

#[test]
fn what_is_still_allocated_at_exit_is_reported_and_may_fail() {
    let (lines, end) = leaks("100", "prof_leak:true,prof_seed:1");
    let [summary, hint] = lines.as_slice() else { panic!("{lines:?}") };
    let words: Vec<&str> = summary.split(' ').collect();
    let number = |at: usize| words[at].trim_start_matches('~').parse::<u64>().expect("a number");
    assert_eq!(words[..4].join(" "), "<lumalloc>: Leak approximation summary:");
    assert!((50 << 20..200 << 20).contains(&number(4)), "{summary}");
    assert!(number(6) >= 50 && end == "exit 0", "{summary} {end}");
    assert_eq!(hint, "<lumalloc>: Run jeprof on dump output for leak detail");
    let (lines, end) = leaks("100", "prof_leak_error:true,lg_prof_sample:0");
    let last = "<lumalloc>: Exiting with error code because memory leaks were detected";
    assert_eq!((lines.len(), lines[3].as_str(), end.as_str()), (4, last, "exit 1"), "{lines:?}");
    // The samples of a program that leaves little are none.
    assert_eq!(leaks("0", "prof_leak_error:true,lg_prof_sample:40").1, "exit 0");
}

/// The buffers of the C library and the reserve of libstdc++ are no leaks, and what was printed is
/// not lost if the program is made to fail.
#[test]
fn a_program_that_leaves_nothing_of_its_own_has_no_leaks() {
    let program = cc("leaves_bytes.cc", &[]);
    for (left, end, lines) in [("0", "exit 0", 1), ("100", "exit 1", 4)] {
        let run = Run::preloaded(&program).args([left]);
        let output = run.conf("prof_leak_error:true,lg_prof_sample:0").output();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "from C++\nfrom C\n", "{left}");
        assert_eq!(
            (ending(output.status).as_str(), errors.lines().count()),
            (end, lines),
            "{errors}"
        );
        if left == "100" {
            let summary =
                "<lumalloc>: Leak approximation summary: ~112 bytes, ~1 object, >= 1 context";
            assert_eq!(errors.lines().nth(1), Some(summary));
        }
    }
}

/// Also where the one block that leaks is a guarded sample.
#[test]
fn one_leak_makes_the_exit_a_failure() {
    let program = cc("profile_exact.c", &["-O1", "-fno-builtin", "-pthread"]);
    for modes in ["", ",guarded_sample:1", ",guarded_sample:1,hardened:true"] {
        let conf = format!("prof_leak_error:true,lg_prof_sample:0{modes}");
        for (what, end) in [("leak", "exit 1"), ("nothing", "exit 0")] {
            let output = Run::preloaded(&program).args([what]).conf(&conf).output();
            assert_eq!(ending(output.status), end, "{what} {conf}");
        }
    }
}

/// Of samples that are freed by their size the profiler learns when they leave a cache. Caches of
/// threads that sleep, or that a forked child does not have, are looked into.
#[test]
fn what_threads_have_freed_by_its_size_is_no_leak_at_any_rate() {
    let program = cc("leaves_sized.cc", &["-pthread"]);
    for rate in ["12", "16", "19"] {
        let conf = format!("prof_active:false,prof_leak_error:true,lg_prof_sample:{rate}");
        let output = Run::preloaded(&program).conf(&conf).output();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(ending(output.status), "exit 0", "{rate}: {errors}");
    }
}

/// In a program of C, where there is no libstdc++ whose memory could be given back.
#[test]
fn a_program_of_c_that_leaves_nothing_has_no_leaks() {
    let program = cc("frees_all.c", &[]);
    let run = Run::preloaded(&program).conf("prof_leak_error:true,lg_prof_sample:0");
    assert_eq!(run.stdout(), "freed\n");
}

/// A thread has a stream of its own, and waits for what is to be read from it.
#[test]
fn the_exit_does_not_wait_for_a_thread_that_waits_for_input() {
    let program = cc("leaves_reader.c", &["-pthread"]);
    let directory = scratch("leaks-and-a-reader");
    for (conf, end) in [("prof_leak:true", "exit 0"), ("prof_leak_error:true", "exit 1")] {
        let run = Run::preloaded(&program).args(["written"]).dir(&directory);
        let output = run.conf(&format!("{conf},lg_prof_sample:0")).output();
        assert_eq!(ending(output.status), end, "{conf}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "main returns\n", "{conf}");
        let written = std::fs::read_to_string(directory.join("written"));
        assert_eq!(written.expect("the file"), "a line of another stream\n", "{conf}");
    }
}
