//! Regions for C from outside: the programs `tests/c/region_*`, each linked with the shared object
//! and static; and the examples of vmalloc(3).

use std::fs;

use lumalloc_tests::linked;
use lumalloc_tests::profiled::command;
use lumalloc_tests::{root, scratch};

/// Compiles a program with the shared object, and returns what it prints.
fn linked(source: &str) -> String {
    linked::linked(source).stdout()
}

/// As [`linked`], with arguments of the program.
fn linked_with(source: &str, arguments: &[&str]) -> String {
    linked::linked(source).args(arguments).stdout()
}

/// Defines a module per program.
macro_rules! programs {
    ($($name:ident $source:literal)*) => {$(
        mod $name {
            #[test]
            fn linked() {
                assert_eq!(super::linked($source), "ok\n");
            }

            #[test]
            fn fully_static() {
                assert_eq!(super::linked::fully_static($source).stdout(), "ok\n");
            }
        }
    )*};
}

programs! {
    promises "region_promises.c"
    disciplines "region_disciplines.c"
    failed "region_failed.c"
    trace "region_trace.c"
    heap "region_heap.c"
    stand_in "region_stand_in.c"
    walk "region_walk.c"
    threads "region_threads.c"
    debug "region_debug.c"
    profile "region_profile.c"
    shared "region_shared.c"
    files "region_files.c"
    unfenced "region_unfenced.c"
    system "region_system.c"
    many "region_many.c"
    keys "region_keys.c"
}

/// In C++.
#[test]
fn exceptions_may_leave_functions_of_the_program() {
    assert_eq!(linked("region_thrown.cc"), "ok\n");
}

/// There a block is no longer than was requested, and what lies behind is checked when it is freed.
#[test]
fn the_heap_of_the_hardened_tier_is_a_region_too() {
    let program = linked::linked("region_heap.c").env("LUMALLOC_CONF", "hardened:true");
    assert_eq!(program.stdout(), "ok\n");
}

#[test]
fn guarded_samples_are_in_no_segment() {
    let program = linked::linked("region_heap.c").args(["guarded"]);
    assert_eq!(program.env("LUMALLOC_CONF", "guarded_sample:1").stdout(), "ok\n");
}

/// Processes are killed at random moments, which are sometimes inside a call.
#[test]
fn killed_processes_leave_regions_that_can_be_used() {
    assert_eq!(linked("region_killed.c"), "ok\n");
}

/// Returns what is said of a region in which a process ended.
fn said_of_a_killed_process(argument: &str) -> String {
    let output = linked::linked("region_killed.c").args([argument]).output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (before, after) = said.split_once("region ").expect("a message");
    let (address, rest) = after.split_once(": ").expect("an address");
    assert_eq!(before, "<lumalloc>: ");
    assert!(usize::from_str_radix(address, 16).is_ok(), "{said}");
    rest.to_owned()
}

#[test]
fn a_process_that_ended_in_a_call_is_told_of() {
    let said = said_of_a_killed_process("message");
    assert_eq!(said, "a process ended in a call of it; what is free was found anew\n");
    let said = said_of_a_killed_process("lost");
    assert_eq!(said, "a process ended in a call of it; it can only be cleared or closed now\n");
}

/// Daemons close all descriptors, and the numbers of files of `VMALLOC_OPTIONS` go to their own.
#[test]
fn nothing_is_written_to_a_file_that_got_the_number() {
    let directory = scratch("malloc-closed");
    let [innocent, file] = ["innocent", "written"].map(|name| directory.join(name));
    for what in ["trace", "method=debug,warn", "profile"] {
        let run = linked::linked("malloc_options.c").args(["closes"]).args([&innocent]);
        let text = format!("{what}={}", file.display());
        assert_eq!(run.env("VMALLOC_OPTIONS", text).stdout(), "calls made\n");
        assert_eq!(fs::read_to_string(&innocent).expect("a file"), "", "{what}");
        fs::remove_file(&file).expect(what);
        fs::remove_file(&innocent).expect(what);
    }
}

/// The command looks at a region that a program left, and loses nothing.
#[test]
fn the_command_shows_regions_in_files() {
    let directory = scratch("region-left");
    let _ = fs::remove_file(directory.join("left"));
    let file = directory.join("left").display().to_string();
    let blocks = linked_with("region_left.c", &[&file]);
    let region = |action: &str, file: &str| command(&directory, &["region", action, file]);
    let good = |text: &str| ("exit 0".to_owned(), text.to_owned(), String::new());
    assert_eq!(region("walk", "left"), good(&blocks));
    assert_eq!(region("check", "left"), good(""));
    assert_eq!(region("compact", "left"), good(""));
    let (ending, text, errors) = region("stat", "left");
    assert_eq!((ending.as_str(), errors.as_str()), ("exit 0", ""));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("address   "), "{text}");
    assert_eq!(lines[1], "in use    3 blocks, 5128 bytes, the largest 3048");
    assert!(lines[2].starts_with("free      2 blocks, "), "{text}");
    assert_eq!(lines[3], "extent    8192 bytes, room for 1048576");
    assert_eq!(lines[4..], ["lock      free"]);
    let (ending, json, _) = command(&directory, &["region", "stat", "--json", "left"]);
    assert_eq!(ending, "exit 0");
    assert!(json.contains("\"busy\": 3,") && json.contains("\"process\": null,"), "{json}");
    assert_eq!(region("walk", "left"), good(&blocks));
}

#[test]
fn the_command_tells_what_is_wrong_with_a_file() {
    let directory = scratch("region-wrong");
    for (name, text) in [("empty", ""), ("text", "hello"), ("zeros", "\0\0\0\0\0\0\0\0\0")] {
        fs::write(directory.join(name), text).expect("a file");
    }
    for (name, what) in [
        ("none", "no such file or directory"),
        ("empty", "no region, or cut off"),
        ("text", "no region, or cut off"),
        ("zeros", "no region, or cut off"),
        (".", "is a directory"),
    ] {
        let (ending, text, errors) = command(&directory, &["region", "stat", name]);
        let message = format!("lumalloc: region: {name}: {what}\n");
        assert_eq!((ending.as_str(), text.as_str(), errors), ("exit 1", "", message));
    }
    assert!(!directory.join("none").exists());
    assert_eq!(fs::read(directory.join("empty")).expect("the file"), b"");
    let _ = fs::remove_file(directory.join("overrun"));
    let file = directory.join("overrun").display().to_string();
    linked_with("region_left.c", &[&file, "overrun"]);
    let (ending, _, errors) = command(&directory, &["region", "check", "overrun"]);
    assert_eq!(ending, "exit 1");
    let last = "lumalloc: region: overrun: words between blocks were overwritten\n";
    assert!(errors.ends_with(last), "{errors}");
}

/// A system call that a shared region needs is refused, each alone.
#[test]
fn refused_calls_of_shared_regions() {
    let directory = scratch("region-refused");
    let _ = fs::remove_file(directory.join("refused"));
    let directory = directory.display().to_string();
    assert_eq!(linked_with("region_refused.c", &[&directory]), "ok\n");
}

/// A trace leads to the same blocks in use when it is replayed.
#[test]
fn a_replayed_trace_ends_as_the_program_did() {
    let directory = scratch("region-replayed");
    let trace = directory.join("trace.txt");
    let said = linked_with("region_replayed.c", &[trace.to_str().expect("a path in UTF-8")]);
    for method in [&[][..], &["--method", "best"], &["--method", "malloc"]] {
        let args = [&["replay", "--json", "trace.txt"], method].concat();
        let (ending, text, errors) = command(&directory, &args);
        assert_eq!((ending.as_str(), errors.as_str()), ("exit 0", ""));
        let number = |name: &str| {
            let value = text.split(&format!("\"{name}\": ")).nth(1).expect("the number");
            value.split([',', '\n']).next().expect("its end").to_owned()
        };
        assert_eq!(format!("{} {}\n", number("live_blocks"), number("live_bytes")), said);
        let left_out = ["unknown", "failed", "refused", "clears"].map(number);
        assert_eq!(left_out, ["0"; 4]);
    }
}

/// What the examples of the page print, in their order.
const PRINTED: [&str; 5] = [
    "4 words\n",
    "63 blocks, refused: 1\n",
    "1 block of 24 bytes, in segments\n",
    "1 corrupt\n",
    "4000\n",
];

#[test]
fn the_examples_of_the_page_print_what_they_should() {
    let page = fs::read_to_string(root().join("capi/man/vmalloc.3")).expect("the page");
    let dir = scratch("region-examples-run");
    let examples: Vec<&str> = page.split(".EX\n").skip(1).collect();
    assert_eq!(examples.len(), PRINTED.len());
    for (place, (example, printed)) in examples.iter().zip(PRINTED).enumerate() {
        let code = example.split(".EE\n").next().expect("its end");
        let file = dir.join(format!("region_example_{place}.c"));
        fs::write(&file, code.replace("\\e", "\\").replace("\\-", "-")).expect("a file");
        assert_eq!(linked(file.to_str().expect("a path in UTF-8")), printed);
    }
}
