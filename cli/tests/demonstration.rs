//! The demonstration as a user sees it: its table, its errors, and that it leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The label of every row of the table.
const ROWS: [&str; 16] = [
    "requests per second",
    "CPU time per request",
    "GETs that found",
    "latency p50",
    "latency p99",
    "latency p99.9",
    "latency max",
    "RSS peak",
    "RSS at end of load",
    "RSS after idle",
    "allocated",
    "active",
    "resident",
    "arenas",
    "thread caches",
    "remote frees",
];

/// A variable by which the processes of this run of the tests are told from those of another.
const RUN: &str = "LUMALLOC_TEST_RUN";

fn run() -> String {
    std::process::id().to_string()
}

/// Returns a small demonstration. `memory` in MiB also marks its child processes, so it differs in
/// every test. It ignores no signal, whatever a shell has these tests ignore.
fn demonstration(memory: u32, options: &[&str]) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_lumalloc")])
        .args(["--rounds", "1", "--idle", "0", "--connections", "8", "--memory"])
        .arg(memory.to_string())
        .args(options)
        .env(RUN, run())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the process number of this run's service marked with `memory`, if it runs.
fn service(memory: u32) -> Option<u32> {
    let (mark, run) = (format!("--memory={memory}"), format!("{RUN}={}", run()));
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = line.split(|&byte| byte == 0);
        let found = words.any(|word| word == b"demo-serve") && words.any(|w| w == mark.as_bytes());
        let variables = fs::read(entry.path().join("environ")).ok()?;
        let is_own = variables.split(|&byte| byte == 0).any(|word| word == run.as_bytes());
        (found && is_own).then_some(id)
    })
}

/// Waits until the demonstration's service runs.
fn await_service(memory: u32) -> u32 {
    let start = Instant::now();
    loop {
        if let Some(id) = service(memory) {
            return id;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "the service never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(signal: &str, process: u32) {
    let sent = Command::new("kill").arg(signal).arg(process.to_string()).status().unwrap();
    assert!(sent.success());
}

/// A demonstration that runs. If its test fails it is killed, and takes its children along.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // After its end both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the status and the last line of the errors of what ends by itself.
fn last_line(mut running: Running) -> (Option<i32>, String) {
    let mut errors = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let status = running.0.wait().unwrap();
    (status.code(), errors.lines().last().unwrap_or_default().to_owned())
}

/// A listener's queue is shorter than that.
#[test]
fn as_many_connections_as_the_help_says_are_opened() {
    let script = "ulimit -n 4200 2>&- || exit 99; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_lumalloc"), "--connections", "4096"]);
    command.args(["--rounds", "1", "--seconds", "1", "--idle", "0", "--memory", "31"]);
    let output = command.args(["--exporter", "127.0.0.1:0"]).output().unwrap();
    let refused = output.status.code() == Some(99);
    assert!(!refused, "this test needs 4200 descriptors: raise the hard limit (ulimit -Hn)");
    let errors = text(&output.stderr);
    assert!(output.status.success() && errors.contains("[2/2] system "), "{errors}");
}

#[test]
fn the_table_has_every_row_with_numbers() {
    let output = demonstration(9, &["--seconds", "1"]).output().unwrap();
    let (table, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(table.lines().any(|line| {
        line.split_whitespace().collect::<Vec<_>>() == ["lumalloc", "system", "ratio"]
    }));
    for label in ROWS {
        let start = format!("  {label}  ");
        let row = table.lines().find_map(|line| line.strip_prefix(&start));
        let Some(row) = row else { panic!("no row {label:?} in\n{table}") };
        let first = row.split_whitespace().next().unwrap();
        assert!(first.replace(',', "").parse::<f64>().is_ok(), "{label}: {row}\n{table}");
    }
    let ratio = |label: &str| {
        let line = table.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
        line.split_whitespace().last().unwrap().parse::<f64>().unwrap()
    };
    for label in &ROWS[..10] {
        assert!(ratio(label) > 0.0, "{label}");
    }
    assert!(errors.contains("while lumalloc is measured: http://127.0.0.1:"), "{errors}");
    for run in ["[1/2] lumalloc ", "[2/2] system "] {
        assert!(errors.contains(run), "{errors}");
    }
    assert!(!table.contains('\x1b') && !errors.contains('\r'), "control characters in a file");
    assert_eq!(service(9), None);
}

#[test]
fn an_interruption_ends_everything() {
    for (memory, signal, status) in [(10, "-INT", 130), (11, "-TERM", 143), (12, "-HUP", 129)] {
        let running = Running(demonstration(memory, &["--seconds", "3600"]).spawn().unwrap());
        await_service(memory);
        send(signal, running.0.id());
        assert_eq!(last_line(running), (Some(status), "lumalloc: interrupted".to_owned()));
        assert_eq!(service(memory), None);
    }
}

#[test]
fn a_killed_demonstration_takes_its_children_along() {
    let mut running = Running(demonstration(13, &["--seconds", "3600"]).spawn().unwrap());
    await_service(13);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let start = Instant::now();
    while service(13).is_some() {
        assert!(start.elapsed() < Duration::from_secs(300), "the service lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_dead_service_is_named_as_the_cause() {
    let running = Running(demonstration(14, &["--seconds", "3600"]).spawn().unwrap());
    send("-KILL", await_service(14));
    let line = "lumalloc: the service on lumalloc ended early: signal: 9 (SIGKILL)";
    assert_eq!(last_line(running), (Some(1), line.to_owned()));
}

#[test]
fn a_taken_port_is_one_line() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let running = demonstration(15, &["--port", &port.to_string()]).spawn().unwrap();
    let running = Running(running);
    let line = format!("lumalloc: the service on lumalloc failed: port {port} is already taken");
    assert_eq!(last_line(running), (Some(1), line));
}

#[test]
fn the_parts_do_not_run_by_hand() {
    let output = Command::new(env!("CARGO_BIN_EXE_lumalloc"))
        .arg("demo-serve")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "lumalloc: this is a part of the demonstration; run lumalloc instead\n"
    );
}

#[test]
fn what_is_unknown_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_lumalloc")).arg("frobnicate").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: unrecognized subcommand 'frobnicate'\n"));
    let output = Command::new(env!("CARGO_BIN_EXE_lumalloc")).arg("--version").output().unwrap();
    assert_eq!(text(&output.stdout), concat!("lumalloc ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Returns the rest of the first line of standard error that begins with `start`.
fn line_after(child: &mut Child, start: &str) -> String {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    lines.find_map(|line| line.strip_prefix(start).map(str::to_owned)).expect(start)
}

/// Returns the answer of a server on this machine for a path.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// `lumalloc serve`, with the exporter's address. It is killed if its test fails.
struct Service {
    child: Child,
    address: String,
}

impl Service {
    /// Starts it with options for the allocator, as `nohup` does.
    fn start(words: &[&str], options: &str) -> Service {
        let child = Command::new("sh")
            .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_lumalloc")])
            .args(["serve", "--connections", "4", "--exporter", "127.0.0.1:0"])
            .args(words)
            .env("LUMALLOC_CONF", options)
            .env(RUN, run())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut service = Service { child, address: String::new() };
        let url = line_after(&mut service.child, "its allocator: http://");
        service.address = url.split_once('/').unwrap().0.to_owned();
        service
    }

    /// Ends it, which must succeed.
    fn end(mut self) {
        send("-TERM", self.child.id());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // After its end both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_service_alone_runs_under_load_and_shows_its_allocator() {
    let running = Service::start(&["--memory", "15"], "");
    let healthy = get(&running.address, "/-/healthy");
    assert!(healthy.ends_with("lumalloc: healthy\n"), "{healthy}");
    let stats = get(&running.address, "/stats");
    assert!(stats.contains("Begin lumalloc statistics"), "{stats}");
    assert!(service(15).is_some());
    send("-HUP", running.child.id());
    // It would have ended by the time that it has answered.
    assert!(get(&running.address, "/map").starts_with("HTTP/1.1 200 "));
    running.end();
    assert_eq!(service(15), None);
}

#[test]
fn a_leak_is_found_by_its_line() {
    // The options are added to those of `--leak`, and win.
    let running = Service::start(&["--leak", "--memory", "18"], "lg_prof_sample:12");
    let begin = Instant::now();
    let stacks = loop {
        let stacks = get(&running.address, "/flamegraph?format=collapsed&lines=true");
        // Beside the load of other tests a build for tests may read its debug information too long.
        let is_late = stacks.ends_with("\r\n\r\nthe allocator did not answer in time\n")
            || stacks.ends_with("\r\n\r\nanother dump or profile is being written: try again\n");
        assert!(is_late || stacks.starts_with("HTTP/1.1 200 "), "{stacks}");
        if stacks.contains("remember") {
            break stacks;
        }
        assert!(begin.elapsed() < Duration::from_secs(300), "{stacks}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    let line = include_str!("../src/service/leak.rs")
        .lines()
        .position(|line| line.contains("excerpt.to_vec()"));
    let place = format!("service/leak.rs:{})", line.unwrap() + 1);
    assert!(stacks.contains("History::remember (") && stacks.contains(&place), "{stacks}");
    running.end();
}

#[test]
fn a_port_that_is_taken_moves_the_demonstrations_exporter_and_stops_the_service_alone() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_lumalloc"))
        .args(["serve", "--memory", "16", "--exporter", &address])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stderr),
        format!(
            "lumalloc: the service failed: exporter: cannot listen on {address}: Address already \
             in use (os error 98)\n"
        )
    );
    let output = demonstration(17, &["--seconds", "1", "--exporter", &address]).output().unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("while lumalloc is measured: http://127.0.0.1:"), "{errors}");
    assert!(!errors.contains(&address), "{errors}");
}

#[test]
fn an_exporter_that_needs_a_token_names_the_options_of_the_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_lumalloc"))
        .args(["serve", "--memory", "16", "--exporter", "0.0.0.0:9473"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stderr),
        "lumalloc: the service failed: exporter: cannot listen on 0.0.0.0:9473: what is not a \
         loopback address needs a token file (--token-file PATH); metrics alone may be served \
         there without one (--metrics ADDRESS)\n"
    );
}
