//! The heap monitor in a process with the exporter, which it does not record.

use std::net::TcpStream;

use lumalloc_tests::profiled::command;
use lumalloc_tests::run::ending;
use lumalloc_tests::serving::{ask, free_port, start};
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
