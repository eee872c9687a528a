//! Standard error that cannot be written to: the command goes on, with the exit status that it has
//! otherwise. Pipes and devices in place of files, and files in each other's place.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns the exit status and the output of a command whose messages find no room.
fn unheard(args: &[&str]) -> (Option<i32>, String) {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
    let output = command.args(args).stdin(Stdio::null()).stderr(full).output().expect("started");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

fn file(name: &str, bytes: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("streams-{name}"));
    fs::write(&path, bytes).expect("written");
    path.to_str().expect("text").to_owned()
}

#[test]
fn failures_keep_their_status() {
    assert_eq!(unheard(&["heap", "/nowhere/x.heap"]), (Some(1), String::new()));
    let library = std::env::current_exe().expect("a path");
    let library = library.to_str().expect("text");
    let program = ["run", "--library", library, "--", "no-such-program"];
    assert_eq!(unheard(&program), (Some(127), String::new()));
}

#[test]
fn warnings_stop_nothing() {
    let process = b"\x16\x00\x00\x0elumalloc 0.1.0\x06/bin/x";
    let cut = [b"LUMAEVT\x01P", &(process.len() as u32).to_le_bytes()[..], process].concat();
    let cut = file("cut.events", &cut);
    let (status, text) = unheard(&["events", &cut]);
    assert_eq!((status, text.lines().next()), (Some(0), Some("# lumalloc events 1")));

    let heap = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1010\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n\
                1000-2000 r-xp 00000000 00:00 1 /nowhere/program\n";
    let heap = file("names.heap", heap.as_bytes());
    let (status, text) = unheard(&["heap", "--by", "site", &heap]);
    assert_eq!((status, text.contains("program+0xf")), (Some(0), true), "{text}");
}

#[test]
fn mprof_reads_a_pipe() {
    let heap = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1010\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n";
    let heap = file("piped.heap", heap.as_bytes());
    let command = env!("CARGO_BIN_EXE_lumalloc");
    let script = format!("cat '{heap}' | '{command}' mprof /dev/stdin");
    let output = Command::new("sh").args(["-c", &script]).output().expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert!(text(&output.stdout).contains("Total bytes not freed: 8\n"), "{output:?}");
}

/// Returns the exit status, standard output and standard error of a script, in which `$L` is the
/// command. Its address space is bounded, so that a command which reads without end ends soon.
fn script(text: &str) -> (Option<i32>, String, String) {
    let text = format!("ulimit -v 16000000; L='{}'; {text}", env!("CARGO_BIN_EXE_lumalloc"));
    let output = Command::new("sh").args(["-c", &text]).output().expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn refused(command: &str, message: &str) {
    let expected = (Some(1), String::new(), format!("lumalloc: {message}\n"));
    assert_eq!(script(command), expected, "{command}");
}

/// Rust's runtime opens /dev/null in its place.
#[test]
fn output_that_is_closed_is_said() {
    let heap = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1010\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n";
    let heap = file("closed.heap", heap.as_bytes());
    let out = format!("{heap}.out");
    let message = "standard output: bad file descriptor";
    refused(&format!("\"$L\" heap --json '{heap}' >&-"), &format!("heap: {message}"));
    refused(&format!("\"$L\" mprof '{heap}' >&-"), &format!("mprof: {message}"));
    refused("\"$L\" --version >&-", message);
    // Nothing is written to it.
    let done = (Some(0), String::new(), String::new());
    assert_eq!(script(&format!("\"$L\" heap --json '{heap}' -o '{out}' >&-")), done);
}

/// What is in the file before stays, and what others write to it follows.
#[test]
fn output_to_a_descriptor_replaces_no_file() {
    let heap = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1010\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n";
    let heap = file("descriptor.heap", heap.as_bytes());
    let log = file("descriptor.log", b"");
    let link = format!("{log}.link");
    script(&format!("ln -sf /dev/stdout '{link}'"));
    let whole = script(&format!("\"$L\" heap --collapsed '{heap}'")).1;
    assert!(!whole.is_empty());
    let written = |before: &str, out: &str, to: &str| {
        let one = format!("\"$L\" heap --collapsed '{heap}' -o '{out}'");
        let failed = script(&format!("{before} > '{log}'; {{ {one}; echo last; }} {to}")).2;
        (failed, fs::read_to_string(&log).expect("the file"))
    };
    for (out, number) in [
        ("/dev/stdout", 1),
        ("/dev/fd/1", 1),
        ("/proc/self/fd/1", 1),
        ("/proc/thread-self/fd/1", 1),
        (link.as_str(), 1),
        ("/dev/fd/7", 7),
    ] {
        let last = if number == 1 { "last\n" } else { "" };
        let to = format!("{number}> '{log}'");
        assert_eq!(written("true", out, &to), (String::new(), format!("{whole}{last}")), "{out}");
        let to = format!("{number}>> '{log}'");
        let expected = format!("first\n{whole}{last}");
        assert_eq!(written("echo first", out, &to), (String::new(), expected), "{out}");
    }
    let closed = "heap: /dev/stdout: bad file descriptor";
    refused(&format!("\"$L\" heap --json '{heap}' -o /dev/stdout >&-"), closed);
    let no_such = "heap: /dev/fd/88: bad file descriptor";
    refused(&format!("\"$L\" heap --json '{heap}' -o /dev/fd/88"), no_such);
}

#[test]
fn help_that_cannot_be_written_is_said() {
    for words in ["--help", "--version", "-h", "help", "run --help", "region stat --help"] {
        let message = "standard output: no space left on device";
        refused(&format!("\"$L\" {words} > /dev/full"), message);
        let (status, text, errors) = script(&format!("\"$L\" {words}"));
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{words}");
        assert!(!text.is_empty(), "{words}");
    }
    // Whoever reads has seen enough.
    let (status, _, errors) = script("{ \"$L\" --help; echo $? >&2; } | true");
    assert_eq!((status, errors.as_str()), (Some(0), "0\n"));
    // What is wrong with arguments goes elsewhere.
    assert_eq!(script("\"$L\" heap > /dev/full").0, Some(2));
}

/// The program's loader needs one descriptor beside the streams, and a runtime more than that.
#[test]
fn parts_without_descriptors_are_said() {
    for words in ["", "serve", "demo-serve", "demo-load --port 1"] {
        let message = "cannot start the runtime: too many open files";
        refused(&format!("ulimit -n 4; exec \"$L\" {words}"), message);
    }
}

/// The part of the demonstration tells its parent where it listens, and its parent is gone.
#[test]
fn a_part_without_its_demonstration_is_said() {
    let message = "the demonstration is gone: no space left on device";
    refused("\"$L\" demo-serve > /dev/full < /dev/null", message);
}

/// A device that never ends.
#[test]
fn what_cannot_be_a_profile_is_not_read_to_its_end() {
    let neither = "it is neither pprof nor heap_v2";
    let no_map = "is not what `lumalloc map --json` writes: expected value at line 1 column 1";
    for (words, message) in [
        ("heap /dev/zero", format!("heap: /dev/zero: {neither}")),
        ("heap --program /dev/zero /dev/zero", "heap: /dev/zero: it is no regular file".into()),
        ("flamegraph /dev/zero", format!("flamegraph: /dev/zero: {neither}")),
        ("mprof /bin/true /dev/zero", format!("mprof: /dev/zero: {neither}")),
        ("mprof /dev/zero", "mprof: /dev/zero: it is no regular file".into()),
        ("events /dev/zero", "events: /dev/zero: it is no recording of the heap monitor".into()),
        ("map /dev/zero", format!("map: /dev/zero {no_map}")),
        ("map --at 10 /dev/zero", format!("map: /dev/zero {no_map}")),
        ("map --diff /dev/zero 127.0.0.1:1", format!("map: /dev/zero {no_map}")),
        (
            "map --token-file /dev/zero 127.0.0.1:1",
            "map: cannot read /dev/zero: a token has at most 4096 bytes".into(),
        ),
        ("replay /dev/zero", "replay: /dev/zero:1: not a line of a trace".into()),
        ("region stat /dev/zero", "region: /dev/zero: no region, or cut off".into()),
    ] {
        refused(&format!("\"$L\" {words}"), &message);
    }
}

#[test]
fn what_is_too_long_is_not_read() {
    for (command, name, begin) in [("heap", "long.heap", "heap_v2/1\n"), ("map", "long.json", "{")]
    {
        let path = file(name, format!("{begin}{}", " ".repeat(64)).as_bytes());
        let long = File::options().write(true).open(&path).expect("the file");
        long.set_len((1 << 30) + 1).expect("made longer");
        let message = match command {
            "heap" => format!("heap: {path}: it has more than 1 GiB"),
            _ => format!("map: cannot read {path}: it has more than 1 GiB"),
        };
        refused(&format!("\"$L\" {command} '{path}'"), &message);
        fs::remove_file(path).expect("removed");
    }
}

#[test]
fn pipes_are_read_up_to_a_length() {
    let line = "  t*: 1: 8 [0: 0]";
    let heap = format!("printf 'heap_v2/1\\n{line}\\n@ 0x1010\\n{line}\\n\\nMAPPED_LIBRARIES:\\n'");
    for words in ["heap --by size /dev/stdin", "flamegraph /dev/stdin"] {
        let (status, text, errors) = script(&format!("{heap} | \"$L\" {words}"));
        assert_eq!((status, errors.as_str(), text.is_empty()), (Some(0), "", false), "{words}");
    }
    let map = "printf '{\"page\":4096,\"runs\":[],\"next\":null}' | \"$L\" map --json /dev/stdin";
    let json = "{\"page\":4096,\"runs\":[\n\n],\"next\":null}\n";
    assert_eq!(script(map), (Some(0), json.to_owned(), String::new()));
    let endless = format!("{{ {heap}; yes '{line}'; }} | \"$L\" heap /dev/stdin");
    refused(&endless, "heap: /dev/stdin: it has more than 1 GiB");
    refused(
        "{ printf 'LUMAEVT\\001'; cat /dev/zero; } | \"$L\" events /dev/stdin",
        "events: /dev/stdin: it has more than 1 GiB",
    );
}

/// The same file may have two names.
#[test]
fn an_output_does_not_replace_what_is_read() {
    let process = b"\x16\x00\x00\x0elumalloc 0.1.0\x06/bin/x";
    let recording = [b"LUMAEVT\x01P", &(process.len() as u32).to_le_bytes()[..], process].concat();
    let recording = file("kept.events", &recording);
    let heap = "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1010\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n";
    let heap = file("kept.heap", heap.as_bytes());
    let old = file("old.heap", &fs::read(&heap).expect("the profile"));
    let program = file("kept-program", &fs::read("/bin/true").expect("a program"));
    let [second, link] = ["second", "link"].map(|name| format!("{program}.{name}"));
    for name in [&second, &link] {
        let _ = fs::remove_file(name);
    }
    fs::hard_link(&program, &second).expect("a second name");
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    let kept = [&recording, &heap, &old, &program];
    let contents = kept.map(|path| fs::read(path).expect("a file"));
    for (command, input, name) in [
        ("heap", &heap, "profile"),
        ("flamegraph", &heap, "profile"),
        ("events", &recording, "recording"),
    ] {
        let input_alone = format!("\"$L\" {command} '{input}'");
        refused(
            &format!("{input_alone} -o '{input}'"),
            &format!("{command}: {input}: the output would replace the {name}"),
        );
        for output in [&program, &second, &link] {
            refused(
                &format!("{input_alone} --program '{program}' -o '{output}'"),
                &format!("{command}: {program}: the output would replace the program"),
            );
        }
    }
    refused(
        &format!("\"$L\" heap --diff '{old}' '{heap}' -o '{old}'"),
        &format!("heap: {old}: the output would replace the profile"),
    );
    assert_eq!(kept.map(|path| fs::read(path).expect("a file")), contents);
    refused("\"$L\" heap /dev/null -o /dev/null", "heap: /dev/null: the file is empty");
}
