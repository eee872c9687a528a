//! The script `tests/run`: what it prints of a step. Another program stands in cargo's place.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use lumalloc_tests::{Run, not_tried, root, scratch};

/// Runs the step `tidy`, for which cargo is a shell script.
fn tidy(name: &str, cargo: &str) -> (Output, String) {
    let dir = scratch(&format!("steps-{name}"));
    // What is missing is not installed here.
    for (program, script) in [("cargo", cargo), ("apt-get", "exit 1"), ("sudo", "exit 1")] {
        let script = format!("#!/bin/sh\n[ \"$*\" = --version ] && exec echo 1\n{script}\n");
        fs::write(dir.join(program), script).expect("a script");
        let may_run = fs::Permissions::from_mode(0o755);
        fs::set_permissions(dir.join(program), may_run).expect("rights");
    }
    let path = std::env::var("PATH").expect("a PATH");
    // Who holds a lock of the script's caller afterwards was left behind.
    let caller = "exec 9>\"$1\"; flock 9; \"$0\" tidy; status=$?; exec 9>&-
                  flock -n \"$1\" true || echo 'a process was left'; exit $status";
    let run = Run::plain("sh").args(["-c", caller]).args([root().join("tests/run")]);
    let run = run.args([dir.join("lock")]).env("PATH", format!("{}:{path}", dir.display()));
    let output = run.env("LUMALLOC_TEST_SILENCE", "20").output();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

#[test]
fn what_was_not_tried_is_listed_at_the_end() {
    let script = "echo 'test a ... not tried: b: it is c' >&2\necho 'not tried: a: it is b'\n\
                  echo 'not tried: a: it is b'\necho 'test result: ok. 3 passed; 0 failed; 0 x'";
    let (output, text) = tidy("not-tried", script);
    assert!(output.status.success(), "{output:?}");
    let list = "\nnot tried on this machine:\n  a: it is b\n  b: it is c\ntook ";
    let (_, end) = text.split_once(list).unwrap_or_else(|| panic!("{text}"));
    assert!(end.ends_with("\n4 passed, 0 failed\n"), "{text}");
}

#[test]
fn a_step_that_hangs_is_ended_and_names_what_was_running() {
    let script = "echo 'test a has been running for over 60 seconds'\n\
                  echo 'test b has been running for over 60 seconds'\n\
                  echo 'test b ... ok'\nsleep 4321 & sleep 1234";
    let (output, text) = tidy("hangs", script);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = ["tidy hangs: it has printed nothing for 20 s", "still running: test a"];
    for line in
        lines.into_iter().chain(["still running: sleep 1234 ", "still running: sleep 4321 "])
    {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("still running: test b"), "{text}");
    assert!(text.contains("\n-- tidy: FAILED, ") && text.contains("\nfailed: tidy\n"), "{text}");
    assert!(text.ends_with("\n1 passed, 1 failed\n"), "{text}");
}

/// The process of the next test.
#[test]
#[ignore = "the process of the next test"]
fn tries_nothing() {
    not_tried("this", "it is played");
}

#[test]
fn a_test_that_passes_says_what_it_did_not_try() {
    let own = std::env::current_exe().expect("this program");
    let output = Run::plain(own).args(["--exact", "--ignored", "tries_nothing"]).output();
    assert!(output.status.success(), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(errors, "not tried: this: it is played\n");
}
