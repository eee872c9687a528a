//! Programs that enter a sandbox: the table of docs/options.md names each system call that the
//! library makes there.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, root, scratch};

use super::alone;

/// The calls that the table names, without those that are not made with one of these options. Calls
/// of rows that do not name all are left out too: of messages, profiles and recordings.
fn calls_without(options: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/options.md")).expect("the page");
    let section = page.split("## Programs that enter a sandbox").nth(1).expect("a section");
    let section = section.split("\n## ").next().expect("a beginning");
    let rows = section.lines().filter(|line| line.starts_with("| `") && !line.contains("others"));
    let options = options.replace("narenas:2", "narenas:N");
    let given: Vec<String> = options.split(',').map(|option| format!("`{option}`")).collect();
    let is_made = |row: &&str| {
        let not_with = row.rsplit(" | ").next().expect("a last column");
        !given.iter().any(|option| not_with.contains(option))
    };
    let first = rows.filter(is_made).filter_map(|row| row.split(" | ").next());
    let names = first.flat_map(|calls| calls.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Runs the program with these options, in a sandbox that allows these calls. Returns what it says.
fn sandboxed(options: &str, calls: &[String]) -> String {
    let conf = format!("{options},dirty_decay_ms:10");
    let output = Run::preloaded(cc("proc_sandbox.c", &[])).args(calls).conf(&conf).output();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let ended = ending(output.status);
    let expected = if said == "done\n" { "exit 0" } else { "exit 3" };
    assert_eq!(ended, expected, "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

const NO_FILES: &str = "limit_soft:0,background_thread_auto:false,narenas:2,stats_print:false";

#[test]
fn a_program_in_a_sandbox_needs_no_call_that_the_table_does_not_name() {
    let _alone = alone();
    assert_eq!(sandboxed("tcache:true", &calls_without("")), "done\n");
    let calls = calls_without(NO_FILES);
    for call in ["openat", "clone3", "sched_getaffinity", "fstat"] {
        assert!(!calls.iter().any(|made| made == call), "{call} in {calls:?}");
    }
    for thp in ["default", "never", "always"] {
        assert_eq!(sandboxed(&format!("{NO_FILES},thp:{thp}"), &calls), "done\n", "{thp}");
    }
}

/// What the table names is used, or it would forbid more than is needed.
#[test]
fn a_sandbox_that_forbids_what_the_table_names_ends_the_program() {
    let _alone = alone();
    let calls = calls_without(NO_FILES);
    for call in ["clock_gettime", "getrandom", "membarrier", "mincore", "mremap"] {
        let others: Vec<String> = calls.iter().filter(|made| *made != call).cloned().collect();
        let said = sandboxed(NO_FILES, &others);
        assert!(said.starts_with(&format!("refused: {call}, ")), "{call}: {said}");
    }
    let with_files = NO_FILES.replace("limit_soft:0,", "");
    let said = sandboxed(&with_files, &calls);
    assert!(said.starts_with("refused: openat, "), "{said}");
    let with_threads = NO_FILES.replace("background_thread_auto:false,", "");
    let said = sandboxed(&with_threads, &calls);
    assert!(said.starts_with("refused: "), "the table names more for a thread: {said}");
}

/// As those of OpenSSH's server and of chronyd do.
#[test]
fn a_sandbox_may_forbid_to_ask_for_limits() {
    let _alone = alone();
    let calls = calls_without("");
    let others: Vec<String> = calls.into_iter().filter(|call| call != "prlimit64").collect();
    for options in ["tcache:true", "hardened:true", "retain:false"] {
        assert_eq!(sandboxed(options, &others), "done\n", "{options}");
    }
}

#[test]
fn a_sandbox_that_tells_nothing_of_descriptors_does_not_end_who_prints_statistics() {
    let run = Run::preloaded(cc("proc_sandbox.c", &[])).args(["exit"]).conf("stats_print:true");
    assert_eq!(ending(run.output().status), "exit 0");
}

/// The calls that `proc_one_call.c` can have refused.
fn refusable() -> Vec<String> {
    let source = fs::read_to_string(root().join("tests/c/proc_one_call.c")).expect("the program");
    let table = source.split("calls[] = {").nth(1).and_then(|rest| rest.split("};").next());
    let names = table.expect("a table").split("NAMED(").skip(1);
    names.map(|name| name.split(')').next().expect("a name").to_owned()).collect()
}

/// Runs the program once for each call, which the kernel refuses from then on. Returns what those
/// said that failed.
fn failed_without_a_call(when: &str, conf: &str, not_these: &[&str]) -> Vec<String> {
    let mut calls = refusable();
    calls.retain(|call| !not_these.contains(&call.as_str()));
    assert!(calls.len() > 30, "{calls:?}");
    let program = cc("proc_one_call.c", &[]);
    // Profiles are written there.
    let directory = scratch(&format!("one-call-{when}-{}", conf.len()));
    let conf = format!("dirty_decay_ms:5{conf}");
    let (failed, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let work = || {
        while let Some(call) = calls.get(next.fetch_add(1, Relaxed)) {
            for error in [EPERM, ENOSYS] {
                let run = Run::preloaded(&program).args([call, &error.to_string(), when]);
                let output = run.conf(&conf).dir(&directory).output();
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    let line = format!("{call}, error {error}: {}: {said}", ending(output.status));
                    failed.lock().expect("no panic").push(line);
                }
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(work)));
    failed.into_inner().expect("no panic")
}

// Errors of the kernel.
const EPERM: i32 = 1;
const ENOSYS: i32 = 38;

/// What the loader needs to find the library and the program.
const OF_LOADER: [&str; 4] = ["close", "newfstatat", "openat", "read"];
/// Without it the C library ends a process that begins a thread.
const OF_THREADS: [&str; 1] = ["rseq"];

#[test]
fn the_library_goes_on_without_any_one_call_of_the_system() {
    let _alone = alone();
    assert_eq!(failed_without_a_call("early", "", &OF_LOADER), [""; 0]);
    assert_eq!(failed_without_a_call("late", "", &OF_THREADS), [""; 0]);
}

#[test]
#[ignore = "some 500 processes: tests/run --all"]
fn slow_all_that_the_library_does_goes_on_without_any_one_call() {
    let _alone = alone();
    for conf in [
        ",hardened:true,background_thread:true",
        ",prof:true,lg_prof_sample:12,prof_final:true,guarded_sample:50",
        ",mprof:true",
    ] {
        assert_eq!(failed_without_a_call("early", conf, &OF_LOADER), [""; 0], "{conf}");
        assert_eq!(failed_without_a_call("late", conf, &OF_THREADS), [""; 0], "{conf}");
    }
}
