//! Real programs print the same with the library preloaded as without it.
//!
//! Each client is a script of `tests/clients`. The standard output of a run with the library is
//! compared with that of a run without it. The scripts themselves fail if the preloading has no
//! effect.

use std::fs;
use std::time::Duration;

use lumalloc_tests::{Run, cc, liblumalloc, liblumalloc_archive, root, scratch};

/// On two quiet cores, no client takes a tenth of this.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the script with the system's allocator and with lumalloc, in directories with the same
/// name.
fn same_output(script: &str) {
    let path = root().join("tests/clients").join(script);
    let say = |library: &str| {
        let dir = scratch(script);
        let run = Run::plain("/bin/bash").args([&path]).dir(&dir).limit(LIMIT);
        let text = run.env("LUMALLOC_PRELOAD", library).stdout();
        fs::remove_dir_all(&dir).expect("the scratch directory goes");
        text
    };
    let library = liblumalloc();
    let plain = say("");
    let preloaded = say(library.to_str().expect("a path in UTF-8"));
    assert!(plain.lines().count() > 3, "{script} compares nothing: {plain:?}");
    assert!(plain == preloaded, "{script} says otherwise\n{}", difference(&plain, &preloaded));
}

/// The lines that occur in only one of the outputs: `-` without the library, `+` with it.
fn difference(plain: &str, preloaded: &str) -> String {
    let only = |sign: char, text: &str, other: &str| -> Vec<String> {
        let others: Vec<&str> = other.lines().collect();
        let lines = text.lines().filter(|line| !others.contains(line));
        lines.take(40).map(|line| format!("{sign} {line}")).collect()
    };
    let mut lines = only('-', plain, preloaded);
    lines.extend(only('+', preloaded, plain));
    lines.join("\n")
}

#[test]
fn difference_shows_both_sides() {
    assert_eq!(difference("a\nb\n", "a\nc\n"), "- b\n+ c");
}

#[test]
fn redis_under_its_benchmark() {
    same_output("redis.sh");
}

#[test]
fn python_over_its_own_tests() {
    same_output("python.sh");
}

#[test]
fn sqlite_on_a_generated_database() {
    same_output("sqlite.sh");
}

#[test]
fn php_data_job() {
    same_output("php.sh");
}

#[test]
fn rustc_builds_a_small_crate() {
    same_output("rustc.sh");
}

#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_perl_data_job() {
    same_output("perl.sh");
}

#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_nginx_under_wrk() {
    same_output("nginx.sh");
}

#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_gcc_object_code() {
    same_output("gcc.sh");
}

#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_git_on_a_generated_repository() {
    same_output("git.sh");
}

#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_bind_tools() {
    same_output("bind.sh");
}

/// The tests of the crates report whether they passed, so there is nothing to compare.
#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_tikv_jemalloc_crates() {
    let dir = scratch("tikv.sh");
    let run = Run::plain("/bin/bash").args([root().join("tests/clients/tikv.sh")]);
    let run = run.dir(&dir).limit(LIMIT).env("LUMALLOC_PRELOAD", liblumalloc());
    let text = run.stdout();
    fs::remove_dir_all(&dir).expect("the scratch directory goes");
    assert_eq!(text, "60 passed\n");
}

/// There is no preloading: the archive replaces malloc of libc and the operators of libstdc++.
#[test]
#[ignore = "slow client: tests/run --all"]
fn slow_static_program_in_cxx() {
    let archive = liblumalloc_archive();
    let archive = archive.to_str().expect("a path in UTF-8");
    let system = cc("client_static.cc", &["-static"]);
    let map = scratch("static").join("map");
    let map_option = format!("-Wl,-Map={}", map.display());
    let ours = cc("client_static.cc", &["-static", archive, &map_option, "-ldl", "-lm"]);
    let plain = Run::plain(system).stdout();
    assert_eq!(plain, Run::plain(ours).stdout());
    assert!(plain.lines().count() == 10, "{plain}");
    let map = fs::read_to_string(map).expect("the linker's map");
    assert!(map.contains(archive), "the archive was linked but not used");
    assert!(!map.contains("libc.a(malloc.o)"), "libc's malloc is in the program too");
}
