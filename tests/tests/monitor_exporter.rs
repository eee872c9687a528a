//! The heap monitor in a process with the exporter, which it does not record.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;
use lumalloc_tests::serving::{Serving, ask, free_port, start};
use lumalloc_tests::{cc, scratch};

#[test]
fn the_exporter_is_not_recorded() {
    let directory = scratch("monitor-exporter");
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let (port, file) = (free_port(), directory.join("own.events"));
    let arguments = ["served", file.to_str().expect("text")];
    let conf = "prof:true,lg_prof_sample:9";
    let mut process = start(&program, &arguments, &format!("127.0.0.1:{port}"), conf);
    for path in
        ["/", "/metrics", "/stats", "/debug/pprof/heap?debug=1", "/flamegraph", "/map"].repeat(5)
    {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the exporter listens");
        let answer = ask(stream, &format!("GET {path}"));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
    drop(process.0.stdin.take());
    assert_eq!(ending(process.0.wait().expect("it ends")), "exit 0");
    let (status, text, errors) = command(&directory, &["events", "own.events"]);
    assert_eq!(status, "exit 0", "{errors}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let (old, new): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.contains("\told\t"));
    let count = |what: &str| new.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("make_node|served|main"), count("drop_node|served|main")), (1, 1), "{new:?}");
    // Blocks of the program's arena that a thread of the exporter found in its cache. There would
    // be 100,000 of its own.
    assert!(new.len() < 100, "{}", new.len());
    // The C library's, and what starts the exporter.
    assert!(old.len() < 100, "{}", old.len());
}

/// Asks a program at a port, and returns the body of the answer, whose status is 200.
fn told(port: u16, request: &str) -> String {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the exporter listens");
    let answer = ask(stream, request);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{request}: {answer}");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// Starts the program, which does so much until its input ends, with a directory for recordings.
fn with_dumps(what: &str, directory: &Path) -> (Serving, u16) {
    let program = cc("monitor.c", &["-fno-optimize-sibling-calls"]);
    let port = free_port();
    let wish = format!("127.0.0.1:{port},dumps:{}", directory.display());
    (start(&program, &[what], &wish, ""), port)
}

fn file_of(answer: &str) -> PathBuf {
    let answer: serde_json::Value = serde_json::from_str(answer).expect("JSON");
    answer["file"].as_str().expect("a file").into()
}

#[test]
fn a_recording_over_http_does_not_stay_open_in_the_program() {
    let directory = scratch("monitor-http-closed");
    let (process, port) = with_dumps("busy", &directory);
    let descriptors = format!("/proc/{}/fd", process.0.id());
    for _ in 0..3 {
        let file = file_of(&told(port, "POST /monitor/start"));
        let unfinished = file.with_added_extension("tmp");
        while std::fs::metadata(&unfinished).expect("the file").len() < 1 << 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended: serde_json::Value =
            serde_json::from_str(&told(port, "POST /monitor/stop")).expect("JSON");
        assert_eq!(ended["dropped"], 0, "{ended}");
        let open = std::fs::read_dir(&descriptors).expect("the list").flatten();
        let open: Vec<PathBuf> =
            open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
        let is_its = |path: &&PathBuf| path.starts_with(&directory);
        assert_eq!(open.iter().find(is_its), None, "{open:?}");
        assert!(file.exists() && !open.is_empty());
    }
}

#[test]
fn the_thread_that_ends_a_recording_is_not_recorded() {
    let directory = scratch("monitor-http-asleep");
    let (process, port) = with_dumps("asleep", &directory);
    let file = file_of(&told(port, "POST /monitor/start?seconds=1"));
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let metrics = told(port, "GET /metrics");
    let events = metrics.lines().find_map(|line| line.strip_prefix("lumalloc_monitor_events "));
    let events: u32 = events.expect("the count").parse().expect("a number");
    let name = file.file_name().and_then(|name| name.to_str()).expect("text");
    let (_, text, _) = command(&directory, &["events", name, "--no-old"]);
    // What the standard library allocates before the thread's function is called.
    assert!(events <= 2 && !text.contains("lumalloc_exporter"), "{events}: {text}");
    drop(process);
}
