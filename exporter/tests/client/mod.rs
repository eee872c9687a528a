//! A minimal client.
#![allow(dead_code, reason = "each test program uses a part")]
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// More than anything takes that a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(300);

/// Waits until a condition holds, which is named in case it never does.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < LONG, "{what}: not after {LONG:?}");
        std::thread::yield_now();
    }
}

/// Sends bytes, and reads until the other side closes.
pub(crate) fn raw(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request).unwrap();
    all_of(stream)
}

/// Sends bytes over a unix socket, and reads until the other side closes.
pub(crate) fn raw_unix(path: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(request).unwrap();
    all_of(stream)
}

fn all_of(mut stream: impl Read) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns a request that ends its connection.
pub(crate) fn request(method: &str, path: &str, host: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n").into()
}

/// Sends `GET`, with the right `Host`.
pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    raw(address, &request("GET", path, &address.to_string(), ""))
}

/// Returns the status of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// Returns what follows the head of an answer.
pub(crate) fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |parts| parts.1)
}

/// Returns the address of any free port of this machine.
pub(crate) fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Returns a directory for this test program.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lumalloc-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}
