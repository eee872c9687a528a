//! A process that has no memory left: at its own limit, and at the system's. The exporter answers
//! from its reserve, and never ends the process.
#![allow(unsafe_code, reason = "limits of the process")]
mod client;

use client::any;
use lumalloc::control::limits;
use lumalloc_exporter::Exporter;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Fills memory until nothing is left, in ever smaller pieces.
fn use_up() -> Vec<Vec<u8>> {
    let mut all = Vec::with_capacity(1 << 16);
    let mut size = 64 << 20;
    while size >= 4096 {
        let mut block = Vec::<u8>::new();
        if all.len() == all.capacity() || block.try_reserve_exact(size).is_err() {
            size /= 2;
        } else {
            all.push(block);
        }
    }
    all
}

/// The status of an answer, all of which is read; 0: the connection was closed. Takes no memory of
/// the heap.
fn get(address: SocketAddr, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(client::LONG)).unwrap();
    for part in ["GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"] {
        let _ = stream.write_all(part.as_bytes());
    }
    let (mut buffer, mut status) = ([0; 4096], 0);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let text = std::str::from_utf8(&buffer[..count]).unwrap_or_default();
        if status == 0 {
            status = client::status(text);
        }
    }
    status
}

fn healthy(address: SocketAddr) -> u16 {
    get(address, "/-/healthy")
}

/// Asks everything, many times, with idle connections beside. Whatever is answered, it is an answer
/// or a closed connection, and health is always answered.
fn besiege(address: SocketAddr) -> (usize, usize) {
    let (mut answered, mut refused) = (0, 0);
    let idle: [_; 100] = std::array::from_fn(|_| TcpStream::connect(address));
    for _ in 0..20 {
        assert_eq!(healthy(address), 200);
        for path in ["/stats", "/stats?format=json", "/nothing"] {
            match get(address, path) {
                200 | 404 => answered += 1,
                503 => refused += 1,
                other => panic!("{path}: {other}"),
            }
        }
    }
    assert_eq!(healthy(address), 200);
    drop(idle);
    (answered, refused)
}

const CHILD: &str = "LUMALLOC_TEST_NO_MEMORY";

/// Runs a test in a process of its own, where nobody else needs memory.
fn alone(name: &str, test: fn(SocketAddr)) {
    if std::env::var_os(CHILD).is_some() {
        let exporter = Exporter::builder().listen(any()).start().unwrap();
        let address = exporter.address().unwrap();
        assert_eq!(get(address, "/stats"), 200);
        return test(address);
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let done = command.env(CHILD, "1").output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}\n{errors}", done.status);
    assert!(errors.contains("besieged"), "{errors}");
}

#[test]
fn at_the_hard_limit_health_is_answered() {
    alone("at_the_hard_limit_health_is_answered", |address| {
        limits::set_hard(limits::held());
        let (answered, refused) = besiege(address);
        limits::set_hard(0);
        eprintln!("besieged: {answered} answered, {refused} refused");
        assert!(refused > 0, "nothing was too much");
        assert_eq!(get(address, "/stats"), 200);
    });
}

/// The address space is bounded, and used up.
#[test]
fn without_addresses_health_is_answered() {
    alone("without_addresses_health_is_answered", |address| {
        let bound = libc::rlimit { rlim_cur: 1 << 30, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a plain structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const bound) }, 0);
        let all = use_up();
        assert!(all.len() > 10);
        let (answered, refused) = besiege(address);
        drop(all);
        eprintln!("besieged: {answered} answered, {refused} refused");
    });
}
