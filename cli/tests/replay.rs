//! `lumalloc replay` as a user sees it: what it writes, its messages and its exit status.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A file of a test, which is removed at its end.
struct Trace(PathBuf);

impl Trace {
    fn new(name: &str, text: &str) -> Trace {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{name}"));
        fs::write(&path, text).expect("written");
        Trace(path)
    }

    /// Returns the exit status, the output and the messages.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lumalloc"));
        let output = command.arg("replay").args(args).arg(&self.0).output();
        let output = output.expect("lumalloc starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Returns the lines of the output without the numbers that differ from run to run.
    fn lines(&self, args: &[&str]) -> Vec<String> {
        let (status, text, errors) = self.run(args);
        assert_eq!((status, errors.as_str()), (Some(0), ""));
        text.lines().filter(|line| !line.starts_with("time ")).map(str::to_owned).collect()
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Two regions; the second one frees a block that it never had.
const TRACE: &str = "\
0:10:100:0:7000:b:file=a.c,line=1:
0:20:50:0:7000:b:file=b.c,line=2,func=f:
10:30:200:0:7000:b:
20:0:56:0:7000:b:
0:40:8:0:9000:l:
0:50:8:0:9000:l:
40:0:16:0:9000:l:
60:0:16:0:9000:l:
0:0:0:0:7000:b:
";

#[test]
fn the_report_counts_calls_and_what_is_left() {
    let trace = Trace::new("report", TRACE);
    let lines = trace.lines(&[]);
    let expected = [
        "regions          2",
        "calls            8: 4 allocations, 1 resizes, 2 frees, 1 compactions",
        "                 1 calls about blocks that the trace had not seen",
        "                 1 frees that the method refused",
        "peak in use      250 bytes",
    ];
    assert_eq!(lines[..5], expected);
    assert!(
        lines[5].starts_with("peak extent      ") && lines[5].ends_with(" times the peak in use"),
        "{lines:?}"
    );
    let extent =
        lines[6].strip_prefix("extent at end    ").and_then(|it| it.strip_suffix(" bytes"));
    assert!(extent.is_some_and(|bytes| bytes.parse::<usize>().is_ok()), "{lines:?}");
    assert_eq!(
        lines[7..],
        [
            "live at end      2 blocks, 208 bytes",
            "           200 bytes          1 blocks  a.c:1",
            "             8 bytes          1 blocks  ?",
        ]
    );
    assert_eq!(trace.lines(&["--top", "1"])[9], "  and 1 places more");
}

#[test]
fn an_empty_trace_tells_no_time_of_a_call() {
    let (status, text, errors) = Trace::new("empty", "").run(&[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let time = text.lines().find(|line| line.starts_with("time ")).expect("a time");
    assert!(time.ends_with(" ms"), "{time}");
}

/// The block that a region hands out a second time shows that the region was cleared.
#[test]
fn clearings_are_counted() {
    let trace = Trace::new("clearings", "0:10:100:0:7000:b:\n0:10:100:0:7000:b:\n");
    let lines = trace.lines(&[]);
    assert_eq!(lines[2], "                 1 times a region was cleared");
}

/// All regions are open at once, and each has at least a page.
#[test]
fn regions_that_find_no_memory_are_said() {
    let regions = || 0x1000..0x1000 + 60_000;
    let allocated = regions().map(|n| format!("0:{n:x}0:8:0:{n:x}:b:\n"));
    let freed = regions().map(|n| format!("{n:x}0:0:8:0:{n:x}:b:\n"));
    let trace = Trace::new("no-memory", &allocated.chain(freed).collect::<String>());
    let script = "ulimit -v 2097152; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_lumalloc"), "replay", "--rounds", "1"]);
    let output = command.arg(&trace.0).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let expected = (Some(1), "lumalloc: replay: no memory for a region\n");
    assert_eq!((output.status.code(), errors.as_str()), expected);
}

#[test]
fn each_method_and_discipline_replays_it() {
    let trace = Trace::new("methods", TRACE);
    for method in ["best", "last", "debug", "profile", "malloc"] {
        for discipline in ["system", "heap"] {
            let lines = trace.lines(&["-m", method, "-d", discipline, "--rounds", "1"]);
            let end = lines.iter().find(|line| line.starts_with("live at end"));
            assert_eq!(end.unwrap(), "live at end      2 blocks, 208 bytes", "{method}");
        }
    }
    let lines = trace.lines(&["-m", "pool"]);
    assert!(lines.contains(&"                 2 calls that got no memory".to_owned()), "{lines:?}");
}

#[test]
fn json_does_not_control_a_terminal() {
    let trace = Trace::new("controls", "0:10:100:0:7000:b:file=a\u{202e}\u{9b}\".c,line=1:\n");
    let (_, text, _) = trace.run(&["--json"]);
    assert!(text.contains("\"a\\u202e\\u009b\\\".c:1\""), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["live"][0]["place"], "a\u{202e}\u{9b}\".c:1");
}

#[test]
fn json_has_the_same_numbers() {
    let trace = Trace::new("json", TRACE);
    let (_, text, _) = trace.run(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&report["allocs"], &report["live_bytes"]), (&4.into(), &208.into()));
    assert_eq!(report["live"][0]["place"], "a.c:1");
    assert_eq!((&report["unknown"], &report["refused"]), (&1.into(), &1.into()));
}

#[test]
fn a_last_line_without_an_end_is_left_out() {
    let trace = Trace::new("cut", "0:10:100:0:7000:b:\n0:20:5");
    assert_eq!(
        trace.lines(&[])[1],
        "calls            1: 1 allocations, 0 resizes, 0 frees, 0 compactions"
    );
}

/// A file of another kind is no empty trace.
#[test]
fn a_first_line_without_an_end_must_be_one_of_a_trace() {
    let trace = Trace::new("one", "0:10:100:0:7000:b:");
    assert_eq!(
        trace.lines(&[])[1],
        "calls            1: 1 allocations, 0 resizes, 0 frees, 0 compactions"
    );
    let other = Trace::new("other", "hello");
    let message = format!("lumalloc: replay: {}:1: not a line of a trace\n", other.0.display());
    assert_eq!(other.run(&[]), (Some(1), String::new(), message));
}

#[test]
fn broken_traces_and_wrong_arguments_are_refused() {
    let trace = Trace::new("broken", "0:10:100:0:7000:b:\nhello\n");
    let path = trace.0.display();
    let message = format!("lumalloc: replay: {path}:2: not a line of a trace\n");
    assert_eq!(trace.run(&[]), (Some(1), String::new(), message));
    let nowhere = Trace(PathBuf::from("/nowhere/trace"));
    let message = "lumalloc: replay: /nowhere/trace: no such file or directory\n".to_owned();
    assert_eq!(nowhere.run(&[]), (Some(1), String::new(), message));
    let (status, _, errors) = trace.run(&["--method", "worst"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("invalid value 'worst' for '--method <METHOD>'"), "{errors}");
}

/// A process may have no more than some 65000 mappings at a time.
#[test]
fn regions_that_came_one_after_another_are_not_open_at_once() {
    let lines = |number: u32| format!("0:10:8:0:{:x}:b:\n", 0x7000 + number);
    let text: String = (0..70_000).map(lines).collect();
    let seen = Trace::new("many", &text).lines(&["--rounds", "1"]);
    assert_eq!(seen[0], "regions          70000");
    assert_eq!(
        seen[1],
        "calls            70000: 70000 allocations, 0 resizes, 0 frees, 0 compactions"
    );
    assert_eq!(seen[3], "peak extent      131072 bytes, 16384.00 times the peak in use");
}

/// With a look at the blocks of all regions for each clearing, or at all regions for each call,
/// this takes minutes.
#[test]
fn large_traces_with_many_regions_and_clearings_are_replayed() {
    let live = (0..200_000).map(|n| format!("0:{:x}:16:0:7:b:\n", 0x10_0000 + 32 * n));
    let cleared = (0..20_000).map(|_| "0:10:16:0:9:b:\n".to_owned());
    let cleared = Trace::new("cleared", &live.chain(cleared).collect::<String>());
    assert_eq!(cleared.lines(&["--rounds", "1"])[0], "regions          2");
    let regions = (0..20_000).map(|n| format!("0:{:x}:16:0:{n:x}:b:\n", 0x10_0000 + 32 * n));
    let freed = (0..20_000).map(|n| format!("{:x}:0:16:0:{n:x}:b:\n", 0x10_0000 + 32 * n));
    let regions = Trace::new("regions", &regions.chain(freed).collect::<String>());
    assert_eq!(regions.lines(&["--rounds", "1"])[0], "regions          20000");
}

#[test]
fn a_block_of_malloc_that_shrinks_to_nothing_is_freed_once() {
    let trace = Trace::new("nothing", "0:10:8:0:7:b:\n10:20:0:0:7:b:\n20:0:0:0:7:b:\n");
    let lines = trace.lines(&["--method", "malloc"]);
    assert_eq!(lines[1], "calls            3: 1 allocations, 1 resizes, 1 frees, 0 compactions");
    assert_eq!(lines[2], "peak in use      8 bytes");
}

#[test]
fn the_blocks_of_malloc_are_freed_after_each_round() {
    let trace = Trace::new("live", &format!("0:10:{}:0:7:b:\n", 1 << 30));
    let script = "ulimit -v 4194304; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_lumalloc"), "replay"]);
    let output = command.args(["-m", "malloc", "--rounds", "9"]).arg(&trace.0).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains("got no memory"), "{text}");
}

#[test]
fn places_do_not_control_the_terminal() {
    let trace = Trace::new("control", "0:10:100:0:7000:b:file=a\x1b[2J.c,line=7:\n");
    let lines = trace.lines(&[]);
    let place = "           100 bytes          1 blocks  a\u{fffd}[2J.c:7";
    assert_eq!(lines.last().map(String::as_str), Some(place));
}

#[test]
fn a_line_without_an_end_is_no_line_of_a_trace() {
    let trace = Trace::new("endless", &"0".repeat(1 << 17));
    let expected = format!("lumalloc: replay: {}:1: not a line of a trace\n", trace.0.display());
    assert_eq!(trace.run(&[]), (Some(1), String::new(), expected));
}

/// As a damaged trace may.
#[test]
fn sizes_may_be_more_than_an_address_space_together() {
    let most = usize::MAX;
    let trace = format!("0:10:{most}:0:7000:b:\n0:20:{most}:0:7000:b:\n");
    let (status, text, errors) = Trace::new("sizes", &trace).run(&["--json"]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for name in ["peak_busy", "live_bytes"] {
        assert_eq!(json[name], most, "{name}: {text}");
    }
}
