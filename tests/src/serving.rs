//! Programs that are preloaded with the exporter, and requests to them.

use crate::build::{liblumalloc, liblumalloc_exporter};
use crate::run::Run;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// The variable that says where a program serves.
pub const VARIABLE: &str = "LUMALLOC_EXPORTER";

/// The value of `LD_PRELOAD` with both libraries.
pub fn preload() -> OsString {
    let mut both = liblumalloc().into_os_string();
    both.push(":");
    both.push(liblumalloc_exporter());
    both
}

/// A program with both libraries that is told to serve at an address.
pub fn serving(program: impl AsRef<OsStr>, wish: &str) -> Run {
    Run::plain(program).env("LD_PRELOAD", preload()).env(VARIABLE, wish)
}

/// A port that is free and stays free. It is below the ports that the system gives to a request for
/// any port, as the other tests and all clients make, and it is different for each test.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 1000) as u16 * 20;
    let ports = || Some(first + NEXT.fetch_add(1, Relaxed));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::from_fn(ports).find(is_free).expect("a port")
}

/// Sends a request to a running program, by TCP or a unix socket, and returns the answer.
pub fn ask(stream: impl Read + Write, request: &str) -> String {
    send(stream, request, "")
}

/// As [`ask`], with a body.
pub fn send(mut stream: impl Read + Write, request: &str, body: &str) -> String {
    let length = body.len();
    let whole = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(whole.as_bytes()).expect("the request leaves");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A program that serves until it is dropped.
pub struct Serving(pub Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program that serves, and returns once it has printed something. `conf` has its options.
pub fn start(program: impl AsRef<OsStr>, arguments: &[&str], wish: &str, conf: &str) -> Serving {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_PRELOAD", preload()).env(VARIABLE, wish);
    command.env("LUMALLOC_CONF", conf);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // The program prints as soon as it runs, and the exporter was started before.
    let mut byte = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut byte).expect("a sign of life");
    Serving(child)
}
