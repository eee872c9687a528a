//! Heap profiles over HTTP, of a known program, as pprof and jeprof fetch them.

use lumalloc_tests::profile_reports::{go_pprof_errors, go_pprof_text, jeprof, pprof, pprof_text};
use lumalloc_tests::profiled::command;
use lumalloc_tests::serving::{Serving, ask, free_port, send, start};
use lumalloc_tests::{cc, scratch};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The program `profile_sites`, which serves.
struct Served {
    program: PathBuf,
    port: u16,
    running: Serving,
}

impl Served {
    fn start(conf: &str) -> Served {
        Served::start_with(conf, "")
    }

    /// The same, with more wishes for the exporter.
    fn start_with(conf: &str, wishes: &str) -> Served {
        let program = cc("profile_sites.cc", &[]);
        let port = free_port();
        let running = start(&program, &["serve"], &format!("127.0.0.1:{port}{wishes}"), conf);
        Served { program, port, running }
    }

    /// Returns the status and the body.
    fn ask(&self, request: &str) -> (String, String) {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        split(&ask(stream, request))
    }

    fn post(&self, path: &str, body: &str) -> (String, String) {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        split(&send(stream, &format!("POST {path}"), body))
    }

    fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// Returns the status and the body of an answer.
fn split(answer: &str) -> (String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    let status = head.split(' ').nth(1).expect("a status");
    (status.to_owned(), body.to_owned())
}

const EXACT: &str = "prof:true,lg_prof_sample:0,prof_accum:true";

#[test]
fn pprof_works_on_the_address() {
    let served = Served::start(EXACT);
    let heap = served.address("/debug/pprof/heap");
    // The program is found by the mapping in the profile.
    let live = pprof(Path::new(""), Path::new(&heap), "-sample_index=inuse_space", &[]);
    assert_eq!((live.alone("leaf"), live.alone("large")), (112_000, 100 << 20));
    assert_eq!(live.alone("dropped"), 0);
    assert!(
        pprof_text(&served.program, Path::new(&heap), &["-raw"])
            .contains("inuse_space/bytes[dflt]")
    );
    let allocs = served.address("/debug/pprof/allocs");
    let ever = pprof(&served.program, Path::new(&allocs), "-symbolize=local", &[]);
    assert_eq!(ever.with_callees("dropped"), 500 * (224 + 48), "alloc_space is shown first");
    // Names of functions that no file of the client's tells, here those of all.
    let remote = pprof(Path::new(""), Path::new(&heap), "-symbolize=remote", &[]);
    assert_eq!((remote.alone("leaf"), remote.alone("large")), (112_000, 100 << 20));
    let addresses = vec!["0x1234567890abcdef"; 20_000].join("+");
    let (status, names) = served.post("/debug/pprof/symbol", &addresses);
    assert_eq!((status.as_str(), names.as_str()), ("200", "num_symbols: 1\n"));
    let (status, words) = served.ask("GET /debug/pprof/cmdline");
    assert_eq!((status.as_str(), words), ("200", format!("{}\0serve", served.program.display())));
}

/// Go's tool has the names and lines that the process found, of the program and of inlined
/// functions.
#[test]
fn go_tool_pprof_shows_lines() {
    let served = Served::start(EXACT);
    let heap = served.address("/debug/pprof/heap?lines=true");
    let text = go_pprof_text(Path::new(&heap), &["-top", "-lines", "-sample_index=inuse_space"]);
    let source = include_str!("../c/profile_sites.cc");
    for (function, bytes, what) in [("leaf", "112000B", "malloc"), ("large", "104857600B", "")] {
        let row = text.lines().find(|line| line.contains(&format!("  {function}")));
        let row = row.unwrap_or_else(|| panic!("no {function}: {text}"));
        let (_, place) = row.rsplit_once("profile_sites.cc:").unwrap_or_else(|| panic!("{row}"));
        let number: usize = place.split(' ').next().and_then(|number| number.parse().ok()).unwrap();
        let line = source.lines().nth(number - 1).expect("a line");
        assert!(row.trim_start().starts_with(bytes) && line.contains(what), "{row}\n{line}");
    }
    let change = served.address("/debug/pprof/heap?lines=true&seconds=1");
    let text = go_pprof_text(Path::new(&change), &["-top"]);
    assert!(text.contains("Showing nodes accounting for 0"), "nothing changes: {text}");
}

/// A difference has what was allocated meanwhile, and nothing else.
#[test]
fn what_changes_is_told_by_pprof() {
    let mut served = Served::start(EXACT);
    let heap = served.address("/debug/pprof/heap?seconds=1");
    let mut input = served.running.0.stdin.take().expect("piped");
    let is_done = AtomicBool::new(false);
    let change = std::thread::scope(|scope| {
        // The program allocates a large block for each byte, before, meanwhile and after.
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                input.write_all(b"x").expect("the program reads");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let change = pprof(&served.program, Path::new(&heap), "-sample_index=inuse_space", &[]);
        is_done.store(true, Relaxed);
        change
    });
    let grown = change.alone("large");
    assert!(grown > 0 && grown % (1 << 20) == 0, "{grown}");
    assert_eq!((change.alone("leaf"), change.total), (0, grown));
}

/// Returns the status and the body of an answer that is no text.
fn fetch(port: u16, path: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the request leaves");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a body");
    let body = answer.split_off(end + 4);
    (split(&String::from_utf8_lossy(&answer)).0, body)
}

/// Returns the difference of two profiles between which the program frees its blocks, one after
/// each pause. A machine that takes the first profile after the last of them needs longer pauses.
fn while_freed(served: &Served, input: &mut ChildStdin, pause: Duration) -> Vec<u8> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..90 {
                if !is_done.load(Relaxed) {
                    std::thread::sleep(pause);
                }
                input.write_all(b"-").expect("the program reads");
            }
            input.write_all(&[b'x'; 90]).expect("the program reads");
        });
        let (_, file) = fetch(served.port, "/debug/pprof/heap?seconds=1");
        is_done.store(true, Relaxed);
        file
    })
}

/// A reset between the two readings leaves no difference to tell. One before the first reading does
/// no harm, so the test tries again with a longer pause before it.
#[test]
fn a_reset_meanwhile_is_said() {
    let mut served = Served::start(EXACT);
    let mut input = served.running.0.stdin.take().expect("piped");
    let refused = (0..7).find_map(|tries| {
        // Something to forget.
        input.write_all(&[b'x'; 8]).expect("the program reads");
        let (reset, answer) = std::thread::scope(|scope| {
            let asked = scope.spawn(|| fetch(served.port, "/debug/pprof/heap?seconds=2"));
            std::thread::sleep(Duration::from_millis(25 << tries));
            (served.ask("POST /profile/reset").0, asked.join().expect("an answer"))
        });
        assert_eq!(reset, "200");
        let (status, body) = answer;
        (status != "200").then(|| (status, String::from_utf8(body).expect("text")))
    });
    let text = "the samples were reset between the two profiles\n";
    assert_eq!(refused, Some(("409".to_owned(), text.to_owned())));
}

/// What was freed meanwhile is a negative number in the file.
#[test]
fn what_becomes_less_is_shown_as_a_difference() {
    let mut served = Served::start(EXACT);
    let mut input = served.running.0.stdin.take().expect("piped");
    let directory = scratch("profile-less");
    let show = |args: &[&str]| {
        let (status, text, errors) = command(&directory, &[args, &["less.pb.gz"]].concat());
        assert_eq!((status.as_str(), errors.as_str()), ("exit 0", ""), "{args:?}");
        text
    };
    let less = (0..7).find_map(|tries| {
        let file = while_freed(&served, &mut input, Duration::from_millis(15 << tries));
        std::fs::write(directory.join("less.pb.gz"), file).expect("written");
        let text = show(&["heap", "--bytes", "--by", "site"]);
        let row = text.lines().find(|line| line.ends_with("  large"))?.to_owned();
        let change = row.split_whitespace().next().expect("a number").replace(',', "");
        let change: i64 = change.parse().unwrap_or_else(|_| panic!("{row}"));
        (change < 0).then_some((change, row, text))
    });
    let (change, row, text) = less.expect("a profile with less than the one before");
    assert!(text.starts_with("less.pb.gz: what was added\n"), "{text}");
    assert!(text.contains("\ncompared with what was taken away\n"), "{text}");
    assert_eq!(change % (1 << 20), 0, "{row}");
    let folded = show(&["heap", "--collapsed"]);
    assert!(folded.contains(&format!(";large {} 0\n", -change)), "{folded}");
    let (status, _, errors) = command(&directory, &["flamegraph", "less.pb.gz"]);
    let refused = "lumalloc: flamegraph: less.pb.gz: it has negative numbers, as a difference of \
                   two profiles has; lumalloc heap shows it\n";
    assert_eq!((status.as_str(), errors.as_str()), ("exit 1", refused));
}

/// The program grows until there is a snapshot of a peak. It has the profile of that moment.
#[test]
fn a_peak_has_its_profile() {
    let mut served = Served::start(EXACT);
    let mut input = served.running.0.stdin.take().expect("piped");
    let paths = || {
        let (status, list) = served.ask("GET /dumps");
        assert_eq!(status, "200", "{list}");
        let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
        list["dumps"].as_array().expect("a list").clone()
    };
    // The first look is what later ones are compared with. If it was before the program had its
    // blocks, these are a peak, which the first request finds.
    let peak = (0..500).find_map(|written: u64| {
        let peak = paths().first().cloned();
        input.write_all(b"xxxxxxxx").expect("the program reads");
        Some((written, peak?))
    });
    let (written, peak) = peak.expect("a peak");
    let path = served.address(peak["profile"].as_str().expect("a path"));
    // pprof would ask for names at a path that belongs to /debug/pprof alone.
    let local = ["-symbolize=local"];
    let live = pprof(Path::new(""), Path::new(&path), "-sample_index=inuse_space", &local);
    let large = live.alone("large");
    assert!((100 << 20..=(100 + 8 * written) << 20).contains(&large), "{large}");
    assert!(large.is_multiple_of(1 << 20), "{large}");
    assert_eq!((live.alone("leaf"), live.alone("dropped")), (112_000, 0));
}

/// A dump has the heap profile too.
#[test]
fn a_dump_has_the_profile() {
    let directory = scratch("profile-dump");
    let served = Served::start_with(EXACT, &format!(",dumps:{}", directory.display()));
    let (status, names) = served.post("/dump", "");
    assert_eq!(status, "200", "{names}");
    let names: serde_json::Value = serde_json::from_str(&names).expect("JSON");
    let path = Path::new(names["profile"].as_str().expect("a path"));
    assert!(path.starts_with(&directory) && names["text"].is_string() && names["json"].is_string());
    assert_eq!(std::fs::read_dir(&directory).expect("the directory").count(), 3);
    let live = pprof(Path::new(""), path, "-sample_index=inuse_space", &[]);
    assert_eq!((live.alone("leaf"), live.alone("large")), (112_000, 100 << 20));
}

#[test]
fn the_flame_graph_has_the_places() {
    let served = Served::start(EXACT);
    let (status, svg) = served.ask("GET /flamegraph");
    assert_eq!(status, "200", "{svg}");
    for part in ["<svg ", "leaf", "outer", "large", "profile_sites"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    assert!(!svg.contains("dropped"), "it has nothing in use");
    let (_, numbers) = served.ask("GET /flamegraph?format=json&lines=true");
    let numbers: serde_json::Value = serde_json::from_str(&numbers).expect("JSON");
    let sites = numbers["live-bytes"]["sites"].as_object().expect("sites");
    let large = sites.iter().find(|(name, _)| name.starts_with("large (")).expect("a place");
    assert!(large.0.contains("profile_sites.cc:") && *large.1 == 100 << 20, "{large:?}");
    let stacks = numbers["alloc-objects"]["stacks"].as_object();
    assert!(stacks.is_none(), "values have the names of the parameter");
    let stacks = numbers["allocations"]["stacks"].as_object().expect("stacks");
    assert!(stacks.keys().any(|stack| stack.contains("large (")), "{stacks:?}");
    let (_, stacks) = served.ask("GET /flamegraph?format=collapsed&value=allocations");
    let number = |end: &str| -> u64 {
        let numbers = stacks.lines().filter_map(|line| {
            let (stack, number) = line.rsplit_once(' ')?;
            stack.ends_with(end).then(|| number.parse::<u64>().expect("a number"))
        });
        numbers.sum()
    };
    assert_eq!((number(";outer;inner;leaf"), number(";large")), (1000, 100), "{stacks}");
    assert_eq!(number(";dropped"), 1000, "{stacks}");
}

#[test]
fn jeprof_works_on_the_address() {
    let served = Served::start(EXACT);
    let home = scratch("profile-jeprof");
    let output = std::process::Command::new("jeprof")
        .args(["--text", "--show_bytes", &served.address("/pprof/heap")])
        .env("HOME", &home)
        .output()
        .expect("jeprof starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let row = |name: &str| text.lines().find(|line| line.ends_with(&format!(" {name}")));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(row("leaf").is_some_and(|row| row.contains("112000")), "{text}{errors}");
    assert!(row("large").is_some_and(|row| row.contains("104857600")), "{text}{errors}");
}

#[test]
fn jeprof_reads_the_text() {
    let served = Served::start(EXACT);
    let directory = scratch("profile-paths");
    for path in ["/heap", "/debug/pprof/heap?debug=1"] {
        let (status, text) = served.ask(&format!("GET {path}"));
        assert_eq!(status, "200", "{text}");
        let file = directory.join("now.heap");
        std::fs::write(&file, text).expect("the profile is written");
        let report = jeprof(&served.program, &file, &[]);
        assert_eq!((report.alone("leaf"), report.alone("large")), (112_000, 100 << 20));
    }
}

/// The threads of the exporter allocate for each answer, and are in no profile.
#[test]
fn the_exporter_is_left_out() {
    let served = Served::start(EXACT);
    (0..10).for_each(|_| drop(served.ask("GET /stats")));
    let (_, first) = served.ask("GET /heap");
    (0..10).for_each(|_| drop(served.ask("GET /stats")));
    let (_, second) = served.ask("GET /heap");
    let live = |line: &str| line.strip_prefix("  t*: ")?.split(' ').nth(1)?.parse::<usize>().ok();
    // The places of the program and of its libraries have more than 1 KiB each. Of the exporter
    // there is only how it was told to serve, and what the C library keeps of its first thread.
    let others: usize = first.lines().skip(2).filter_map(live).filter(|bytes| *bytes < 1024).sum();
    assert!(others <= 640, "{others} bytes: {first}");
    let totals = |text: &str| text.lines().nth(1).map(str::to_owned);
    assert_eq!(totals(&first), totals(&second));
}

#[test]
fn the_profiler_is_stopped_started_and_begun_anew() {
    let served = Served::start("prof:true,lg_prof_sample:12");
    let active = || served.ask("GET /ctl/prof.active?format=text").1;
    let stopped = "no samples are taken; those that were stay\n";
    assert_eq!(served.ask("POST /profile/stop"), ("200".into(), stopped.into()));
    assert_eq!(active(), "false\n");
    let started = ("200".into(), "samples are taken\n".into());
    assert_eq!(served.ask("POST /profile/start"), started);
    assert_eq!(active(), "true\n");
    let text = |lg| {
        let text = format!("the samples are forgotten; one is taken in 2^{lg} bytes on average\n");
        ("200".to_owned(), text)
    };
    assert_eq!(served.ask("POST /profile/reset"), text(12));
    assert_eq!(served.ask("POST /profile/reset?lg_sample=20"), text(20));
    assert_eq!(served.ask("GET /ctl/prof.lg_sample?format=text").1, "20\n");
    let (_, heap) = served.ask("GET /heap");
    assert!(heap.starts_with("heap_v2/1048576\n"), "{heap}");
}

#[test]
fn without_the_profiler_each_path_says_so() {
    let served = Served::start("");
    let go = go_pprof_errors(Path::new(&served.address("/debug/pprof/heap")));
    let reason = "server response: 404 Not Found - this process takes no heap profile: start it \
                  with prof:true in LUMALLOC_CONF\n";
    assert!(go.contains(reason), "{go}");
    let off = "this process takes no heap profile: start it with prof:true in LUMALLOC_CONF\n";
    for request in [
        "GET /heap",
        "GET /debug/pprof/heap",
        "GET /debug/pprof/allocs",
        "POST /profile/start",
        "POST /profile/stop",
        "POST /profile/reset",
    ] {
        assert_eq!(served.ask(request), ("404".into(), off.into()), "{request}");
    }
}
