//! `lumalloc events` as a user sees it: what it writes where, its messages and its exit status.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory of a test, which is removed with what it contains.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        Directory::within(Path::new(env!("CARGO_TARGET_TMPDIR")), &format!("events-{name}"))
    }

    fn within(place: &Path, name: &str) -> Directory {
        let path = place.join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    /// Makes one where files without names can be made, in memory if the file system of the target
    /// directory has none.
    fn of_unnamed(name: &str) -> Directory {
        use std::os::unix::fs::OpenOptionsExt;
        let memory =
            || Directory::within(Path::new("/dev/shm"), &format!("lumalloc-events-{name}"));
        let has_unnamed = |directory: &Directory| {
            let mut file = fs::File::options();
            file.write(true).custom_flags(libc::O_TMPFILE).open(&directory.0).is_ok()
        };
        let directory = Some(Directory::new(name)).filter(has_unnamed);
        let directory = directory.or_else(|| Some(memory()).filter(has_unnamed));
        directory.expect("a file system with files without names (O_TMPFILE), as tmpfs at /dev/shm")
    }

    /// Writes a file.
    fn with(self, name: &str, bytes: &[u8]) -> Directory {
        fs::write(self.0.join(name), bytes).expect("written");
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
        command.arg("events").args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Returns the exit status, the output and the messages.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().expect("lumalloc starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn chunk(tag: u8, payload: &[u8]) -> Vec<u8> {
    [&[tag], &(payload.len() as u32).to_le_bytes()[..], payload].concat()
}

/// A recording of process 22 with the blocks 0x10 (old) and 0x20. All numbers have one byte.
fn recording() -> Vec<u8> {
    let process = chunk(b'P', b"\x16\x00\x00\x0elumalloc 0.1.0\x06/bin/x");
    let stack = chunk(b'S', &[1, 2, 0x71, 0x20]);
    let old = chunk(b'O', &[1, 0x20, 8, 0]);
    let events = chunk(b'E', &[7, 100, 2, 0, 0x40, 24, 1, 5 << 2 | 1, 0, 1, 0]);
    [b"LUMAEVT\x01".to_vec(), process, stack, old, events].concat()
}

fn end(dropped: u8) -> Vec<u8> {
    chunk(b'Z', &[127, 2, dropped])
}

const LINES: &str = "\
# lumalloc events 1
# process 22
# program /bin/x
# allocator lumalloc 0.1.0
# start 0
0-0\told\t0x10\t8\tnovtbl\t
22-7\t0\t0x20\t24\tnovtbl\t0x70|0x80
22-7\t0\t0x20\tdel\tnotype\t
";

#[test]
fn lines_go_to_the_output_or_a_file() {
    let directory = Directory::new("lines").with("x.events", &[recording(), end(0)].concat());
    let shown = (Some(0), LINES.to_owned(), String::new());
    assert_eq!(directory.run(&["x.events"]), shown);
    assert_eq!(directory.run(&["x.events", "-o", "out"]), (Some(0), String::new(), String::new()));
    assert_eq!(fs::read_to_string(directory.0.join("out")).expect("read"), LINES);
    let piped = directory
        .command(&["/dev/stdin"])
        .stdin(fs::File::open(directory.0.join("x.events")).expect("opened"))
        .output();
    assert_eq!(piped.expect("lumalloc starts").stdout, LINES.as_bytes());
}

#[test]
fn options_choose_the_view() {
    let directory = Directory::new("views").with("x.events", &[recording(), end(0)].concat());
    let shown = |args: &[&str]| {
        let (status, text, errors) = directory.run(&[&["x.events"], args].concat());
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{args:?}");
        text
    };
    let lines = |args: &[&str]| shown(args).lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(lines(&["--thread", "22-7"]), 2);
    assert_eq!(lines(&["--size", "8..16"]), 1);
    assert_eq!(lines(&["--size", "1k.."]), 0);
    assert_eq!(lines(&["--type", "^novtbl$"]), 1);
    assert_eq!(lines(&["--stack", "0x80$"]), 1);
    assert_eq!(lines(&["--age", "..5ns"]), 2);
    assert_eq!(lines(&["--old"]), 1);
    assert_eq!(lines(&["--no-old"]), 2);
    let blocks = |args: &[&str]| {
        let text = shown(args);
        text.lines().filter(|line| line.starts_with("0x")).count()
    };
    assert_eq!(blocks(&["--analyze"]), 2);
    assert_eq!(blocks(&["--analyze", "--live"]), 1);
    assert_eq!(blocks(&["--analyze", "--deleted", "0"]), 1);
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["--analyze", "--json"])).expect("JSON");
    assert_eq!(json["blocks"].as_array().map(Vec::len), Some(2));
    assert!(shown(&["--lifetimes"]).contains("\nSites by allocations\n"));
    assert!(shown(&["--lifetimes", "--by", "type"]).contains("\nTypes by allocations\n"));
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["--lifetimes", "--json", "--top", "1"])).expect("JSON");
    assert_eq!(json["rows"][0]["freed_by_next_event"], 1);
}

#[test]
fn pins_have_pages_and_rows() {
    let directory = Directory::new("pins").with("x.events", &[recording(), end(0)].concat());
    let shown = |args: &[&str]| {
        let (status, text, errors) = directory.run(&[&["x.events", "--pins"], args].concat());
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{args:?}");
        text
    };
    let pages = |size| format!("\n  pages   {size} in 1 page of {size}; ");
    let text = shown(&[]);
    assert!(text.contains(&pages("4.00 KiB")) && text.contains("\nSites by pinned"), "{text}");
    assert!(text.contains("\nPages that the fewest bytes keep, with their blocks\n"), "{text}");
    let text = shown(&["--page", "2m", "--by", "type", "--emptiest", "0"]);
    assert!(text.contains(&pages("2.00 MiB")) && text.contains("\nTypes by pinned"), "{text}");
    assert!(!text.contains("with their blocks"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["--json", "--top", "1", "--no-old"])).expect("JSON");
    assert_eq!(
        (&json["total"]["pinned_bytes"], &json["shown"]["pinned_bytes"]),
        (&4096.into(), &0.into())
    );
    assert_eq!(json["rows"], serde_json::json!([]));
}

#[test]
fn what_is_missing_is_told() {
    let directory = Directory::new("missing")
        .with("cut", &recording())
        .with("dropped", &[recording(), end(3)].concat());
    let cut = "lumalloc: events: warning: cut: it has no end: the process was killed, ended \
               by _exit, became another program by exec, or is still recorded; what is there is shown\n";
    assert_eq!(directory.run(&["cut"]), (Some(0), LINES.to_owned(), cut.to_owned()));
    let (status, text, errors) = directory.run(&["dropped"]);
    let dropped = "lumalloc: events: warning: dropped: 3 events could not be written; their blocks \
                   are shown wrongly\n";
    assert_eq!((status, errors.as_str()), (Some(0), dropped));
    assert!(text.contains("\n# dropped 3\n"), "{text}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let mut damaged = recording();
    let at = damaged.len();
    damaged.extend(chunk(b'E', &[7, 120, 1, 3]));
    let directory = Directory::new("unusable")
        .with("text", b"Dear reader,\n")
        .with("empty", b"")
        .with("late", &damaged)
        .with("whole", &damaged[..at]);
    for (file, what) in [
        ("nowhere", "no such file or directory"),
        (".", "is a directory"),
        ("text", "it is no recording of the heap monitor"),
        ("empty", "the file is empty"),
    ] {
        let expected = (Some(1), String::new(), format!("lumalloc: events: {file}: {what}\n"));
        assert_eq!(directory.run(&[file]), expected);
    }
    let (status, text, errors) = directory.run(&["late"]);
    assert_eq!((status, text.as_str()), (Some(1), LINES));
    let what = format!(
        "late: the chunk E at byte {at} is damaged: an event is of the unknown kind 3; the events \
         behind that are missing"
    );
    assert!(errors.ends_with(&format!("lumalloc: events: {what}\n")), "{errors}");
    for view in ["--analyze", "--lifetimes", "--pins"] {
        let (status, text, errors) = directory.run(&["late", view]);
        let (_, undamaged, _) = directory.run(&["whole", view]);
        assert_eq!((status, text), (Some(1), undamaged), "{view}");
        assert!(errors.ends_with(&format!("lumalloc: events: {what}\n")), "{errors}");
        let (status, text, _) = directory.run(&["late", view, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let warnings = json["warnings"].as_array().expect("warnings");
        assert!(warnings.contains(&what.clone().into()), "{view} {warnings:?}");
        assert_eq!(status, Some(1));
    }
}

#[test]
fn what_is_not_damaged_is_shown() {
    let begin = recording();
    let stack = begin.windows(5).position(|it| it == [b'S', 4, 0, 0, 0]).expect("a stack");
    let mut damaged = [begin, chunk(b'E', &[8, 110, 1, 0, 0x80, 1, 24, 1]), end(0)].concat();
    // It has one address now, and another stack that ends before its own.
    damaged[stack + 6] = 1;
    let directory = Directory::new("damaged").with("x.events", &damaged);
    let lost = "x.events: the chunk S at byte";
    let lost = format!(
        "{lost} {stack} is damaged: it ends within a value; the stacks behind that are missing, \
         and their events are shown without one"
    );
    let (status, text, errors) = directory.run(&["x.events"]);
    let lines = format!("{}22-8\t0\t0x40\t24\tnovtbl\t0x70\n", LINES.replace("|0x80", ""));
    assert_eq!((status, text), (Some(1), lines.clone()));
    assert_eq!(errors, format!("lumalloc: events: {lost}\n"));
    let (status, _, errors) = directory.run(&["x.events", "-o", "out"]);
    assert_eq!((status, errors), (Some(1), format!("lumalloc: events: {lost}\n")));
    assert_eq!(fs::read_to_string(directory.0.join("out")).expect("read"), lines);
    let (status, text, _) = directory.run(&["x.events", "--lifetimes", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &json["warnings"]), (Some(1), &serde_json::json!([lost])));
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let directory = Directory::new("outputs").with("x.events", &[recording(), end(0)].concat());
    for (path, what) in [
        ("nowhere/out", "no such file or directory"),
        (".", "is a directory"),
        ("/dev/full", "no space left on device"),
    ] {
        let errors = format!("lumalloc: events: {path}: {what}\n");
        assert_eq!(directory.run(&["x.events", "-o", path]), (Some(1), String::new(), errors));
    }
    let errors = "lumalloc: events: x.events: the output would replace the recording\n".to_owned();
    assert_eq!(directory.run(&["x.events", "-o", "./x.events"]), (Some(1), String::new(), errors));
}

/// The signal of a limit stands for Ctrl-C at an exact moment.
#[test]
fn nothing_is_left_of_an_output_that_a_signal_ends() {
    use std::os::unix::process::ExitStatusExt;
    let events = chunk(b'E', &[7, 100, 2, 0, 0x40, 24, 1, 5 << 2 | 1, 0, 1, 0]).repeat(1000);
    let recording = [recording(), events, end(0)].concat();
    let directory = Directory::of_unnamed("signal").with("x", &recording);
    let script = "ulimit -c 0; ulimit -f 8; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_lumalloc"), "events", "x", "-o", "out"]);
    let output = command.current_dir(&directory.0).output().expect("started");
    assert_eq!(output.status.signal(), Some(25), "{output:?}");
    let names = fs::read_dir(&directory.0).expect("a directory").flatten();
    assert_eq!(names.map(|name| name.file_name()).collect::<Vec<_>>(), ["x"]);
}

#[test]
fn an_output_takes_the_place_of_what_was_there() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = Directory::new("place").with("x", &[recording(), end(0)].concat());
    let at = |name: &str| directory.0.join(name);
    let done = (Some(0), String::new(), String::new());
    fs::write(at("secret"), "old").expect("written");
    fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).expect("set");
    assert_eq!(directory.run(&["x", "-o", "secret"]), done);
    assert_eq!(fs::metadata(at("secret")).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(at("secret")).expect("read"), LINES);

    // A link to a file that is not there yet, by way of another link.
    symlink("second", at("first")).expect("a link");
    symlink("made", at("second")).expect("a link");
    assert_eq!(directory.run(&["x", "-o", "first"]), done);
    assert!(at("first").is_symlink() && at("second").is_symlink());
    assert_eq!(fs::read_to_string(at("made")).expect("read"), LINES);

    let long = "x".repeat(255);
    assert_eq!(directory.run(&["x", "-o", &long]), done);
    assert_eq!(fs::read_to_string(at(&long)).expect("read"), LINES);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut file = recording();
    for _ in 0..20_000 {
        file.extend(chunk(b'E', &[7, 120, 1, 0, 0x60, 24, 1]));
    }
    let directory = Directory::new("pipe").with("x.events", &[file, end(0)].concat());
    let mut command = directory.command(&["x.events"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("lumalloc starts");
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().expect("its output"));
    reader.read_line(&mut first).expect("a line");
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    assert_eq!(first, "# lumalloc events 1\n");
}

#[test]
fn wrong_arguments_have_status_2() {
    let directory = Directory::new("arguments");
    for (args, message) in [
        (&[][..], "error: the following required arguments were not provided:"),
        (
            &["x", "--size", "2..1"],
            "error: invalid value '2..1' for '--size <RANGE>': the first value is larger than the \
             second one",
        ),
        (
            &["x", "--age", "10"],
            "error: invalid value '10' for '--age <RANGE>': '10' is not a duration like 10ms, 2s \
             or 1h",
        ),
        (
            &["x", "--thread", "a"],
            "error: invalid value 'a' for '--thread <THREAD>': 'a' is not TID or PID-TID",
        ),
        (&["x", "--type", "("], "error: invalid value '(' for '--type <REGEX>': unclosed group"),
        (
            &["x", "--stack", "["],
            "error: invalid value '[' for '--stack <REGEX>': unclosed character class",
        ),
        (&["x", "--old", "--no-old"], "error: the argument '--old' cannot be used with '--no-old'"),
        (
            &["x", "--analyze", "--lifetimes"],
            "error: the argument '--analyze' cannot be used with '--lifetimes'",
        ),
        (&["x", "--json"], "error: the following required arguments were not provided:"),
        (&["x", "--live"], "error: the following required arguments were not provided:"),
        (
            &["x", "--lifetimes", "--top", "0"],
            "error: invalid value '0' for '--top <N>': 0 is not in 1..=4294967295",
        ),
        (
            &["x", "--analyze", "--by", "type"],
            "error: the argument '--analyze' cannot be used with '--by <WHAT>'",
        ),
        (
            &["x", "--lifetimes", "--pins"],
            "error: the argument '--lifetimes' cannot be used with '--pins'",
        ),
        (&["x", "--pins", "--live"], "error: the argument '--pins' cannot be used with '--live'"),
        (
            &["x", "--pins", "--page", "5k"],
            "error: invalid value '5k' for '--page <SIZE>': '5k' is not a power of two from 4k to 1G",
        ),
        (
            &["x", "--lifetimes", "--page", "4k"],
            "error: the argument '--lifetimes' cannot be used with '--page <SIZE>'",
        ),
        (
            &["x", "--analyze", "--emptiest", "4"],
            "error: the argument '--analyze' cannot be used with '--emptiest <N>'",
        ),
        (&["x", "--page", "4k"], "error: the following required arguments were not provided:"),
        (&["x", "--by", "type"], "error: the following required arguments were not provided:"),
        (&["x", "--lifetimes", "--by", "size"], "error: invalid value 'size' for '--by <WHAT>'"),
    ] {
        let (status, text, errors) = directory.run(args);
        assert_eq!((status, text.as_str()), (Some(2), ""), "{args:?}");
        assert_eq!(errors.lines().next(), Some(message), "{args:?}");
    }
    let (status, text, _) = directory.run(&["--help"]);
    assert!(status == Some(0) && text.contains("lumalloc events [OPTIONS] FILE"), "{text}");
}
