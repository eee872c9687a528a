//! `lumalloc heap` and `lumalloc flamegraph` of files that cannot be shown as is asked for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a file of heap_v2 with so many live blocks and allocations of 8 bytes.
fn write(directory: &Path, name: &str, live: u64, allocations: u64) {
    let numbers = format!("t*: {live}: {} [{allocations}: {}]", live * 8, allocations * 8);
    let text = format!("heap_v2/1\n  {numbers}\n@ 0x1010\n  {numbers}\n\nMAPPED_LIBRARIES:\n");
    fs::write(directory.join(name), text).expect("written");
}

/// A pprof file, not compressed, in which one block of 8 bytes is fewer than before.
fn difference() -> Vec<u8> {
    let mut file = Vec::new();
    let mut field = |number: u8, contents: &[u8]| {
        file.extend([number << 3 | 2, contents.len() as u8]);
        file.extend(contents);
    };
    for text in ["", "inuse_objects", "count", "inuse_space", "bytes"] {
        field(6, text.as_bytes());
    }
    for (kind, unit) in [(1, 2), (3, 4)] {
        field(1, &[0x08, kind, 0x10, unit]);
    }
    let negative = |low: u8| [&[low][..], &[0xff; 8], &[1]].concat();
    // -1 and -8.
    field(2, &[&[0x12, 20][..], &negative(0xff), &negative(0xf8)].concat());
    file
}

/// Returns the exit status, the output and the messages.
fn run(directory: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
    let output = command.args(args).current_dir(directory).output().expect("lumalloc starts");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_directory_of_debug_information_that_is_none_is_told() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles-debug");
    fs::create_dir_all(directory.join("there")).expect("a directory");
    write(&directory, "x.heap", 1, 1);
    for (name, why) in [("nope", "no such file or directory"), ("x.heap", "not a directory")] {
        for command in ["heap", "flamegraph"] {
            let answer = run(&directory, &[command, "x.heap", "--debug-directory", name]);
            let message = format!("lumalloc: {command}: --debug-directory {name}: {why}\n");
            assert_eq!(answer, (Some(1), String::new(), message));
        }
    }
    let fine = run(&directory, &["heap", "x.heap", "--debug-directory", "there"]);
    assert_eq!(fine.0, Some(0), "{fine:?}");
}

/// The crate jemalloc_pprof writes such files.
#[test]
fn a_file_of_bytes_alone_is_shown_without_numbers_of_blocks() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles-bytes");
    fs::create_dir_all(&directory).expect("a directory");
    // The value type 1 of unit 2, a sample of 4096, and the strings.
    let profile = b"\x0a\x04\x08\x01\x10\x02\x12\x04\x12\x02\x80\x20\
                    \x32\x00\x32\x0binuse_space\x32\x05bytes";
    fs::write(directory.join("x.pb"), profile).expect("written");
    let (status, text, errors) = run(&directory, &["heap", "x.pb"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let line = "\n  live       4.00 KiB (the file has no numbers of blocks)\n";
    assert!(text.contains(line) && !text.contains("live blocks"), "{text}");
    assert_eq!(run(&directory, &["flamegraph", "x.pb"]).0, Some(0));
    for (args, what) in [
        (&["heap", "x.pb", "--value", "live-blocks"][..], "--value live-blocks needs"),
        (&["heap", "x.pb", "--dhat"], "--dhat needs"),
        (&["mprof", "x.pb"], "the tables of mprof(1) need"),
    ] {
        let message =
            format!("lumalloc: {}: x.pb has bytes alone; {what} numbers of blocks\n", args[0]);
        assert_eq!(run(&directory, args), (Some(1), String::new(), message));
    }
}

#[test]
fn values_that_a_file_does_not_have_are_refused() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles-values");
    fs::create_dir_all(&directory).expect("a directory");
    write(&directory, "with.heap", 5, 90);
    write(&directory, "without.heap", 3, 0);
    for args in [
        &["heap", "without.heap", "--value", "allocations"][..],
        &["heap", "without.heap", "--collapsed", "--value", "allocated-bytes"],
        &["heap", "without.heap", "--dhat", "--value", "allocations"],
        &["heap", "with.heap", "--diff", "without.heap", "--value", "allocated-bytes"],
        &["heap", "without.heap", "--diff", "with.heap", "--collapsed", "--value", "allocations"],
        &["flamegraph", "without.heap", "--value", "allocations"],
    ] {
        let (status, text, errors) = run(&directory, args);
        assert_eq!((status, text.as_str()), (Some(1), ""), "{args:?}");
        let expected = format!(
            "lumalloc: {}: without.heap has live blocks only; --value {} needs a file that counts \
             allocations since the start (prof_accum:true)\n",
            args[0],
            args[args.len() - 1],
        );
        assert!(errors.ends_with(&expected), "{args:?}: {errors}");
    }
    for args in [
        &["heap", "without.heap", "--value", "live-blocks"][..],
        &["heap", "with.heap", "--diff", "without.heap"],
        &["heap", "with.heap", "--diff", "with.heap", "--value", "allocations"],
        &["flamegraph", "with.heap", "--value", "allocations"],
    ] {
        assert_eq!(run(&directory, args).0, Some(0), "{args:?}");
    }
    let (_, text, _) = run(&directory, &["heap", "with.heap", "--diff", "without.heap"]);
    let (_, tables) = text.split_once("\nStacks").expect("a table");
    assert!(!tables.contains("alloc"), "{text}");
    fs::remove_dir_all(&directory).expect("it is there");
}

#[test]
fn a_file_that_is_a_difference_is_not_written_for_dhat() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles-difference");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("d.pb"), difference()).expect("written");
    let (status, text, _) = run(&directory, &["heap", "d.pb"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("what was taken away"), "{text}");
    let (status, text, errors) = run(&directory, &["heap", "d.pb", "--dhat"]);
    assert_eq!((status, text.as_str()), (Some(1), ""));
    let expected = "lumalloc: heap: d.pb: it has negative numbers, as a difference of two profiles \
                    has; --dhat writes no differences\n";
    assert!(errors.ends_with(expected), "{errors}");
    let output = ["heap", "d.pb", "--dhat", "-o", "d.json"];
    assert_eq!(run(&directory, &output).0, Some(1));
    assert!(!directory.join("d.json").exists());
    fs::remove_dir_all(&directory).expect("it is there");
}
