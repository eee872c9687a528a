//! Profiles, logs and recordings of processes whose first thread has ended, of those that may not
//! read their own memory, of those whose output is a file, and of children.

use lumalloc_tests::memory::number;
use lumalloc_tests::profiled::{command, copied, tool};
use lumalloc_tests::run::ending;
use lumalloc_tests::{Run, cc, scratch};
use std::path::{Path, PathBuf};

/// Runs the program in a directory of its own, with each allocation a sample. Returns the
/// directory, the program, and what it printed.
fn run(what: &str) -> (PathBuf, PathBuf, String) {
    let directory = scratch(&format!("recorded-{what}"));
    let program = copied(&cc("recorded_processes.c", &["-pthread", "-Wl,--build-id"]), &directory);
    let run = Run::preloaded(&program).args([what]).dir(&directory);
    let output = run.conf("prof:true,lg_prof_sample:0").output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((ending(output.status).as_str(), text(&output.stderr).as_str()), ("exit 0", ""));
    (directory, program, text(&output.stdout))
}

/// What the command `lumalloc` says of a file, without a warning.
fn shown(directory: &Path, args: &[&str]) -> String {
    let (status, text, errors) = command(directory, args);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""), "{args:?}");
    text
}

#[test]
fn names_and_numbers_are_there_after_the_end_of_the_first_thread() {
    let (directory, program, said) = run("first-ends");
    for file in ["heap", "heap.pb.gz"] {
        assert!(shown(&directory, &["heap", file]).contains("keeps_blocks"), "{file}");
    }
    assert!(shown(&directory, &["events", "events"]).contains("keeps_blocks"));
    let recording = std::fs::read(directory.join("events")).expect("the recording");
    let first = recording.iter().position(|byte| *byte == b'/').expect("a path");
    let path = program.as_os_str().as_encoded_bytes();
    assert!(recording[first..].starts_with(path), "the first path is that of the program");
    // The program has written to so much memory that the allocator does not know.
    let rss = number(&said, "rss");
    assert!((32 << 20..1 << 30).contains(&rss), "{said}");
}

#[test]
fn a_child_keeps_no_log_of_its_parent_and_may_keep_its_own() {
    let (directory, ..) = run("logs-in-child");
    let child = std::fs::read_to_string(directory.join("child.json")).expect("the child's log");
    assert!(child.ends_with(",\"allocations\":[]}\n"), "{child}");
    let files = std::fs::read_dir(&directory).expect("the directory");
    let mut names = files.map(|file| file.expect("an entry").file_name().into_string());
    let name = names.find_map(|name| name.ok().filter(|name| name.starts_with("jeprof.")));
    let log = std::fs::read_to_string(directory.join(name.expect("the parent's log")));
    let frees = log.expect("text").matches("\"free_thread\"").count();
    assert!(frees >= 100, "{frees}");
}

#[test]
fn a_profile_to_standard_output_leaves_what_the_file_has() {
    let program = cc("recorded_processes.c", &["-pthread", "-Wl,--build-id"]);
    for (how, first) in [(">", "before"), (">>", "there\nbefore")] {
        let directory = scratch(&format!("recorded-output-{}", how.len()));
        std::fs::write(directory.join("output"), "there\n").expect("written");
        let script = format!("exec \"$0\" dumps-to-output {how}output");
        let run = Run::preloaded("/bin/sh").args(["-c", &script]).args([&program]).dir(&directory);
        assert_eq!(run.conf("prof:true").stdout(), "");
        let text = std::fs::read_to_string(directory.join("output")).expect("the file");
        let parts: Vec<&str> = text.split("heap_v2/524288\n").collect();
        let [begin, one, other] = parts[..] else { panic!("{how}: {text}") };
        assert_eq!(begin, format!("{first}\n"));
        assert!(one.ends_with("\nbetween\n") && other.ends_with("\nbehind\n"), "{text}");
    }
}

#[test]
fn build_ids_are_found_where_the_process_may_not_open_its_memory() {
    let (directory, program, _) = run("may-not-be-read");
    let notes = tool("readelf", &[&"-n", &program]);
    let id = notes.split("Build ID: ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let profile = tool("gzip", &[&"-dc", &directory.join("heap.pb.gz")]);
    assert!(profile.contains(id.expect("a build-id")));
}

#[test]
fn a_child_does_not_have_the_recording_of_its_parent_open() {
    let (directory, ..) = run("forks-while-recorded");
    assert!(shown(&directory, &["events", "events"]).contains("keeps_blocks"));
    assert!(directory.join("child.events").exists());
}
