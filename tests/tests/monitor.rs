//! The heap monitor: what known programs allocate and free, as `lumalloc events` shows it.

#[path = "monitor/ended.rs"]
mod ended;
#[path = "monitor/keys.rs"]
mod keys;

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lumalloc_tests::profiled::command;
use lumalloc_tests::run::{ending, find_program};
use lumalloc_tests::serving::{Serving, free_port};
use lumalloc_tests::template::matches;
use lumalloc_tests::{Run, cc, liblumalloc, scratch};

/// A line of `lumalloc events`.
struct Line {
    thread: String,
    time: String,
    address: String,
    size: String,
    kind: String,
    stack: Vec<String>,
}

/// Shows the events of a file. Also returns the messages.
fn shown(directory: &Path, file: &str) -> (Vec<Line>, String) {
    let (status, text, errors) = command(directory, &["events", file]);
    assert_eq!(status, "exit 0", "{errors}");
    assert!(text.starts_with("# lumalloc events 1\n"), "{text}");
    let line = |line: &str| {
        // After a message of the allocator.
        let line = line.strip_prefix('*').unwrap_or(line);
        let fields: Vec<&str> = line.split('\t').collect();
        let [thread, time, address, size, kind, stack] = fields[..] else { panic!("{line:?}") };
        let [thread, time, address, size, kind] =
            [thread, time, address, size, kind].map(str::to_owned);
        let stack = stack.split('|').map(str::to_owned).collect();
        Line { thread, time, address, size, kind, stack }
    };
    let is_event = |line: &&str| !["#", "* ", "**"].iter().any(|begin| line.starts_with(begin));
    let lines = text.lines().filter(is_event).map(line).collect();
    (lines, errors)
}

/// Shows the events of a whole file, after a check that they do not contradict each other.
fn whole(directory: &Path, file: &str) -> Vec<Line> {
    let (lines, errors) = shown(directory, file);
    assert_eq!(errors, "");
    check(&lines);
    lines
}

/// Checks that each block is allocated or old before it is freed, and that times rise.
fn check(lines: &[Line]) {
    let mut live = HashSet::new();
    let mut last = 0;
    for line in lines {
        let time = if line.time == "old" { 0 } else { line.time.parse::<u64>().expect("a time") };
        assert!(time >= last, "{} after {last}", line.time);
        last = time;
        let is_right = if line.size == "del" {
            live.remove(&line.address)
        } else {
            live.insert(&line.address)
        };
        assert!(is_right, "{} {} {}", line.time, line.address, line.size);
    }
}

fn count(lines: &[Line], of: impl Fn(&Line) -> bool) -> usize {
    lines.iter().filter(|line| of(line)).count()
}

fn is_from(line: &Line, functions: &[&str]) -> bool {
    line.stack.iter().map(String::as_str).take(functions.len()).eq(functions.iter().copied())
}

/// Returns the names of the files in a directory, in order.
fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn run(what: &str, name: &str, conf: &str) -> (std::path::PathBuf, std::process::Output) {
    let directory = scratch(name);
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let file = directory.join("own.events");
    let run = Run::preloaded(&program).args([what.as_ref(), file.as_os_str()]);
    let output = run.dir(&directory).conf(conf).output();
    (directory, output)
}

/// Runs the program, which must succeed and say nothing.
fn recorded(what: &str, name: &str, conf: &str) -> std::path::PathBuf {
    let (directory, output) = run(what, name, conf);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((ending(output.status).as_str(), errors.as_ref()), ("exit 0", ""));
    directory
}

#[test]
fn each_allocation_and_each_free_is_a_line() {
    for (name, conf) in [
        ("monitor-record", ""),
        ("monitor-hardened", "hardened:true"),
        ("monitor-uncached", "tcache:false"),
        ("monitor-profiled", "prof:true,lg_prof_sample:0"),
    ] {
        let directory = recorded("record", name, conf);
        let lines = whole(&directory, "own.events");
        let olds: Vec<&Line> = lines.iter().filter(|line| line.time == "old").collect();
        let is_old = |line: &&&Line| line.thread == "0-0" && line.stack == [""];
        assert_eq!(olds.iter().filter(is_old).count(), olds.len());
        let of_size = |size: &str| olds.iter().filter(|line| line.size == size).count();
        let shortest = if conf.starts_with("hardened") { "56" } else { "48" };
        assert_eq!(of_size(shortest), 1, "{conf}");
        let large = olds.iter().find(|line| line.size == "114688" || line.size == "100000");
        let large = &large.unwrap_or_else(|| panic!("{conf}")).address;

        let made = |line: &Line| is_from(line, &["make_node", "work"]);
        let dropped = |line: &Line| is_from(line, &["drop_node", "work"]);
        assert_eq!(count(&lines, |line| made(line) && line.size == "16"), 2000);
        assert_eq!(count(&lines, |line| dropped(line) && line.size == "del"), 2000);
        assert_eq!(
            count(&lines, |line| line.size == "777" && is_from(line, &["record", "main"])),
            1
        );
        // Its first word was read when the recording ended.
        let live = view(&directory, "own.events", &["--analyze", "--live"]);
        let blocks = live["blocks"].as_array().expect("blocks").iter();
        let kinds: Vec<_> = blocks.filter(|it| it["size"] == 777).map(|it| &it["type"]).collect();
        assert_eq!(kinds, ["novtbl"], "{conf}");
        let freed = count(&lines, |line| line.size == "del" && &line.address == large);
        assert_eq!(freed, 1);
        let mut threads: HashMap<&str, usize> = HashMap::new();
        for line in lines.iter().filter(|line| made(line) || dropped(line)) {
            *threads.entry(&line.thread).or_default() += 1;
        }
        assert_eq!(threads.values().collect::<Vec<_>>(), [&2000, &2000], "{threads:?}");
        assert!(
            lines
                .iter()
                .all(|line| line.size == "del" || line.time == "old" || line.kind == "novtbl")
        );
    }
}

#[test]
fn a_child_of_fork_has_its_own_recording() {
    for conf in ["", "hardened:true"] {
        let directory = recorded("forks", "monitor-forks", conf);
        let made = |line: &Line| line.size == "16" && is_from(line, &["make_node"]);
        let lines = whole(&directory, "own.events");
        assert_eq!(count(&lines, made), 1200);
        let child = whole(&directory, "own.events.child");
        assert_eq!(count(&child, made), 10);
        let process = |lines: &[Line]| {
            let line = lines.iter().find(|line| made(line)).expect("a node");
            line.thread.split('-').next().expect("a number").to_owned()
        };
        assert_ne!(process(&lines), process(&child));
    }
}

#[test]
fn what_a_full_disk_refuses_is_counted_and_told() {
    let directory = recorded("full", "monitor-full", "");
    let (lines, errors) = shown(&directory, "own.events");
    assert!(errors.contains(" events could not be written; "), "{errors}");
    assert!(count(&lines, |line| line.size == "16") > 500);
    assert!(!directory.join("own.events.tmp").exists());
}

#[test]
fn a_recording_needs_no_free_descriptor() {
    let (lines, errors) = shown(&recorded("no descriptors", "monitor-open", ""), "own.events");
    assert!(errors.is_empty() && count(&lines, |line| line.size == "16") >= 10_000);
}

#[test]
fn dropped_events_are_told_at_exit() {
    let (what, conf) = ("full for a while", "monitor:true,prof_prefix:own");
    let (directory, output) = run(what, "monitor-full-for-a-while", conf);
    assert_eq!(ending(output.status), "exit 0");
    let expected = format!(
        "<lumalloc>: a part of the heap monitor's recording could not be written to \
         {}/own.{{n}}.0.events: file too large\n",
        directory.display()
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches(&expected, &errors), "{errors}");
}

/// Returns the pages that live blocks from a function touch, and no other live block does.
fn pages_of(lines: &[Line], function: &str) -> usize {
    let mut live = HashMap::new();
    for line in lines {
        match line.size.as_str() {
            "del" => live.remove(&line.address),
            _ => live.insert(&line.address, line),
        };
    }
    let mut pages: HashMap<u64, bool> = HashMap::new();
    for line in live.values() {
        let address = u64::from_str_radix(&line.address[2..], 16).expect("an address");
        let size: u64 = line.size.parse().expect("a size");
        for page in address / 4096..=(address + size.max(1) - 1) / 4096 {
            *pages.entry(page).or_insert(true) &= line.stack[0] == function;
        }
    }
    pages.values().filter(|is_own| **is_own).count()
}

#[test]
fn blocks_that_stay_pin_the_pages_that_they_are_in() {
    let directory = recorded("pins", "monitor-pins", "");
    let pages = pages_of(&whole(&directory, "own.events"), "keep");
    assert!((900..=1000).contains(&pages), "{pages}");
    let args = ["events", "own.events", "--pins", "--json", "--stack", "^keep", "--emptiest", "1"];
    let (status, text, errors) = command(&directory, &args);
    assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""));
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let row = &json["rows"][0];
    assert!(row["functions"][0].as_str().is_some_and(|it| it.starts_with("keep")), "{row}");
    let numbers = ["blocks", "bytes", "pinned_pages", "filled_bytes"].map(|name| &row[name]);
    // Each of these pages has about one block.
    let filled = row["filled_bytes"].as_u64().expect("a number");
    assert!(filled <= 64_000 && filled / 64 >= pages as u64, "{row}");
    assert_eq!(numbers, [1000, 64_000, pages as u64, filled]);
    let kept = &json["emptiest"][0];
    assert_eq!((&kept["bytes"], &kept["pinned_bytes"]), (&64.into(), &4096.into()));
}

#[test]
fn the_option_records_from_the_start_to_the_exit() {
    let directory = recorded("work", "monitor-option", "monitor:true,prof_prefix:own");
    let [name] = &files(&directory)[..] else { panic!("more files than one") };
    assert!(name.starts_with("own.") && name.ends_with(".0.events"), "{name}");
    let lines = whole(&directory, name);
    assert_eq!(count(&lines, |line| is_from(line, &["make_node", "work", "main"])), 1000);

    let (_, output) = run("work", "monitor-nowhere", "monitor:true,prof_prefix:/nowhere/at/all");
    assert_eq!(ending(output.status), "exit 0");
    let expected = "<lumalloc>: the file of the heap monitor could not be written to \
                    /nowhere/at/all.{n}.0.events: no such file or directory\n";
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches(expected, &errors), "{errors}");
}

#[test]
fn a_process_that_is_killed_leaves_what_was_written() {
    let (directory, output) = run("killed", "monitor-killed", "monitor:true,prof_prefix:own");
    assert_eq!(ending(output.status), "signal 9");
    let [name] = &files(&directory)[..] else { panic!("more files than one") };
    assert!(name.ends_with(".0.events.tmp"), "{name}");
    let (lines, errors) = shown(&directory, name);
    check(&lines);
    assert!(errors.contains("it has no end"), "{errors}");
    // All but what the last buffer held.
    assert!(count(&lines, |line| is_from(line, &["make_node", "work", "main"])) > 400);
}

/// The shell is recorded too, and another program takes its place, with its process number.
#[test]
fn what_a_process_of_the_same_number_left_is_kept() {
    let directory = scratch("monitor-same-number");
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let script = "\"$0\" work none; exec \"$0\" work none";
    let shell = Run::preloaded(find_program("sh")).args([
        "-c".as_ref(),
        script.as_ref(),
        program.as_os_str(),
    ]);
    let output = shell.dir(&directory).conf("monitor:true,prof_prefix:own").output();
    assert_eq!((ending(output.status).as_str(), output.stderr.as_slice()), ("exit 0", &[][..]));
    let names = files(&directory);
    let left = names.iter().find(|name| name.ends_with(".0.events.tmp")).expect("of the shell");
    let (_, errors) = shown(&directory, left);
    assert!(errors.contains("became another program by exec"), "{errors}");
    let next = left.replace(".0.events.tmp", ".1.events");
    let lines = whole(&directory, &next);
    assert_eq!(count(&lines, |line| is_from(line, &["make_node", "work", "main"])), 1000);
    // The first call of the program has a process of its own.
    assert_eq!(names.len(), 3, "{names:?}");
}

/// Whether messages say nothing but that programs were stripped.
fn is_about_symbols(messages: &str) -> bool {
    messages.lines().all(|line| line.contains(": it has no symbols for some addresses"))
}

/// Returns a view as JSON.
fn view(directory: &Path, file: &str, args: &[&str]) -> serde_json::Value {
    let (status, text, errors) = command(directory, &[&["events", file, "--json"], args].concat());
    assert!(status == "exit 0" && is_about_symbols(&errors), "{args:?}: {errors}");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["dropped"], 0, "{args:?}");
    json
}

/// Checks that all views of a whole recording have the counts of its lines. Returns the lines.
fn views_agree(directory: &Path, file: &str) -> Vec<Line> {
    let (lines, errors) = shown(directory, file);
    assert!(is_about_symbols(&errors), "{errors}");
    check(&lines);
    let old = count(&lines, |line| line.time == "old");
    let deleted = count(&lines, |line| line.size == "del");
    let (allocated, live) = (lines.len() - old - deleted, lines.len() - 2 * deleted);
    let analysis = view(directory, file, &["--analyze", "--deleted", "0"]);
    let numbers = ["allocations", "deletions", "old_blocks", "more_anomalies"];
    let numbers = numbers.map(|name| analysis[name].as_u64().expect("a number") as usize);
    assert_eq!(numbers, [allocated, deleted, old, 0]);
    let none = serde_json::json!([]);
    assert_eq!((&analysis["anomalies"], &analysis["unlisted"]), (&none, &none));
    assert_eq!(analysis["blocks"].as_array().map(Vec::len), Some(live));
    let lifetimes = view(directory, file, &["--lifetimes", "--top", "1000000"]);
    let rows = lifetimes["rows"].as_array().expect("rows");
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum::<u64>() as usize;
    assert_eq!(
        (sum("allocations"), lifetimes["old_blocks"].as_u64()),
        (allocated, Some(old as u64))
    );
    let freed = ["below_1ms", "below_100ms", "below_10s", "older"].map(sum);
    assert_eq!(freed.iter().sum::<usize>() + sum("live"), allocated);
    let pins = view(directory, file, &["--pins", "--top", "1000000"]);
    let rows = pins["rows"].as_array().expect("rows");
    let blocks: u64 = rows.iter().filter_map(|row| row["blocks"].as_u64()).sum();
    assert_eq!((blocks, pins["total"]["blocks"].as_u64()), (live as u64, Some(live as u64)));
    lines
}

#[test]
fn redis_is_recorded_and_all_views_agree() {
    let directory = scratch("monitor-redis");
    let port = free_port();
    let mut server = Command::new(find_program("redis-server"));
    server.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
    server.current_dir(&directory).env("LD_PRELOAD", liblumalloc());
    server.env("LUMALLOC_CONF", "monitor:true,prof_prefix:own").stdout(Stdio::null());
    let mut server = Serving(server.spawn().expect("it starts"));
    let connect = || TcpStream::connect(("127.0.0.1", port)).ok();
    let wait = || std::thread::sleep(Duration::from_millis(20));
    let mut stream = (0..500).find_map(|_| connect().or_else(|| (wait(), None).1)).expect("redis");
    let mut commands = String::new();
    for number in 0..3000 {
        commands += &format!("SET key{number} {}\r\nRPUSH list {number}\r\n", "x".repeat(200));
        commands += &format!("DEL key{}\r\n", number / 2);
    }
    let answers = 3 * 3000;
    stream.write_all(commands.as_bytes()).expect("redis reads");
    let read = BufReader::new(stream.try_clone().expect("a descriptor")).lines().take(answers);
    assert!(read.map(|line| line.expect("an answer")).all(|line| !line.starts_with('-')));
    stream.write_all(b"SHUTDOWN NOSAVE\r\n").expect("redis reads");
    assert_eq!(ending(server.0.wait().expect("it ends")), "exit 0");
    let [name] = &files(&directory)[..] else { panic!("{:?}", files(&directory)) };
    let lines = views_agree(&directory, name);
    // Each key has a block for its value at least, and half of them are deleted.
    assert!(count(&lines, |line| line.time != "old" && line.size != "del") > 6000);
    assert!(count(&lines, |line| line.size == "del") > 3000);
}

#[test]
fn python_is_recorded_without_a_contradiction() {
    let directory = scratch("monitor-python");
    let code = "import json, threading\n\
                def f():\n    [json.loads(json.dumps(list(range(n)))) for n in range(300)]\n\
                ts = [threading.Thread(target=f) for _ in range(3)]\n\
                [t.start() for t in ts]\n[t.join() for t in ts]\n";
    let run = Run::preloaded(find_program("python3")).args(["-X", "dev", "-c", code]);
    let run =
        run.env("PYTHONMALLOC", "malloc").dir(&directory).conf("monitor:true,prof_prefix:own");
    assert_eq!(run.stdout(), "");
    // Where python3 is a script, its shell is recorded too.
    let size = |name: &String| std::fs::metadata(directory.join(name)).expect("the file").len();
    let name = files(&directory).into_iter().max_by_key(size).expect("a file");
    let (lines, errors) = shown(&directory, &name);
    assert!(!errors.contains("written") && !errors.contains("no end"), "{errors}");
    check(&lines);
    assert!(lines.len() > 100_000, "{}", lines.len());
}
