//! A thousand hostile clients at once. They stop no other client, and cost a bounded amount of
//! memory.
mod client;

use client::{any, body, get, request, status};
use lumalloc_exporter::{Exporter, Limits};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const CLIENTS: usize = 1000;
/// How long a client waits between two bytes. A client that does not wait floods the server, and is
/// not slow.
const BETWEEN: Duration = Duration::from_millis(20);

/// Returns the bytes of this process that are in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

fn exporter(patience: Duration) -> Exporter {
    let limits = Limits { patience, ..Limits::default() };
    Exporter::builder().listen(any()).limits(limits).start().unwrap()
}

fn ended(exporter: &Exporter, reason: &str) -> u64 {
    exporter.counts().ended.iter().find(|(name, _)| *name == reason).unwrap().1
}

/// Keeps so many connections open. Each sends a part of a request, a byte at a time, and is opened
/// again when the server has closed it.
fn drip(address: SocketAddr, which: usize, text: &[u8], stop: &AtomicBool) {
    let open = || {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((stream, 0))
    };
    let mut clients: Vec<Option<(TcpStream, usize)>> = (0..which).map(|_| open()).collect();
    while !stop.load(Relaxed) {
        for client in &mut clients {
            let Some((stream, sent)) = client else {
                *client = open();
                continue;
            };
            let byte = text[*sent % text.len()];
            *sent += 1;
            let gone = |result: std::io::Result<usize>| match result {
                Ok(count) => count == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if gone(stream.write(&[byte])) || gone(stream.read(&mut [0; 64])) {
                *client = None;
            }
        }
        std::thread::sleep(BETWEEN);
    }
}

/// Stops the clients, however the test ends.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_thousand_that_drip_stop_nobody() {
    let exporter = exporter(Duration::from_secs(10));
    let address = exporter.address().unwrap();
    let stop = AtomicBool::new(false);
    let texts: [&[u8]; 4] = [
        b"GET /stats HTTP/1.1\r\nHost: localhost\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"POST /ctl/epoch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n{{{{{{{{{{{{",
        b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    assert_eq!(status(&get(address, "/stats")), 200);
    let before = resident();
    std::thread::scope(|threads| {
        for text in texts {
            let stop = &stop;
            threads.spawn(move || drip(address, CLIENTS / texts.len(), text, stop));
        }
        let _stops = Stops(&stop);
        let mut asked = 0;
        client::wait_until("the slow ones are displaced", || {
            for (path, says) in [("/-/healthy", "lumalloc: healthy\n"), ("/-/ready", "ready")] {
                let answer = get(address, path);
                assert!(body(&answer).contains(says), "{path}: {answer}");
            }
            let scraped = get(address, "/metrics");
            assert_eq!(status(&scraped), 200, "{scraped}");
            asked += 1;
            ended(&exporter, "displaced") >= 2 * CLIENTS as u64 && asked >= 5
        });
    });
    let grown = resident().saturating_sub(before);
    // The clients are in this process too. The exporter's part is a few MiB of this.
    assert!(grown < 24 << 20, "{grown} bytes more");
}

/// A client never takes its answers, and asks again and again, for more than the system keeps.
#[test]
fn who_takes_no_answer_is_cut_off() {
    let exporter = exporter(Duration::from_secs(1));
    let address = exporter.address().unwrap();
    let ask = b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2000);
    let greedy = TcpStream::connect(address).unwrap();
    std::thread::scope(|threads| {
        // Blocks when the server reads no more, until the server closes.
        threads.spawn(|| while (&greedy).write_all(&ask).is_ok() {});
        client::wait_until("it is cut off", || {
            assert_eq!(status(&get(address, "/-/healthy")), 200);
            ended(&exporter, "slow") > 0
        });
    });
}

/// A connection is kept for the next request, and ended when none comes. The first request must
/// come before that time is over, on a busy machine too.
#[test]
fn idle_connections_end() {
    let limits = Limits { idle: Duration::from_secs(3), ..Limits::default() };
    let exporter = Exporter::builder().listen(any()).limits(limits).start().unwrap();
    let mut stream = TcpStream::connect(exporter.address().unwrap()).unwrap();
    stream.set_read_timeout(Some(client::LONG)).unwrap();
    let ask = b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(&ask.repeat(2)).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2);
    assert_eq!(ended(&exporter, "idle"), 1);
}

/// Heads of requests are bounded in length and in the number of headers.
#[test]
fn long_heads_are_refused() {
    let exporter = exporter(Duration::from_secs(10));
    let address = exporter.address().unwrap();
    let host = "localhost";
    let many = (0..100).map(|at| format!("X-{at}: 1\r\n")).collect::<String>();
    assert_eq!(status(&client::raw(address, &request("GET", "/-/ready", host, &many))), 431);
    // A browser sends the cookies of all servers of this host.
    let cookies = format!("Cookie: {}\r\n", "x".repeat(24 << 10));
    assert_eq!(status(&client::raw(address, &request("GET", "/-/ready", host, &cookies))), 200);
    let mut stream = TcpStream::connect(address).unwrap();
    let long = format!("X: {}\r\n", "x".repeat(60 << 10));
    let _ = stream.write_all(&request("GET", "/-/ready", host, &long));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || status(&answer) == 431, "{answer}");
    // A refused head is counted when its connection is closed.
    client::wait_until("both are counted", || ended(&exporter, "malformed") >= 2);
}
