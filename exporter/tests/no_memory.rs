//! A process that has no memory left: at its own limit, and at the system's. The exporter answers
//! from its reserve, and never ends the process.
#![allow(unsafe_code, reason = "limits of the process")]
mod client;

use client::{any, get, status};
use lumalloc::control::limits;
use lumalloc_exporter::Exporter;
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

fn healthy(address: SocketAddr) -> u16 {
    status(&get(address, "/-/healthy"))
}

/// Asks everything, many times, with idle connections beside. Whatever is answered, it is an answer
/// or a closed connection, and health is always answered.
fn besiege(address: SocketAddr) -> (usize, usize) {
    let (mut answered, mut refused) = (0, 0);
    let idle: Vec<TcpStream> = (0..100).filter_map(|_| TcpStream::connect(address).ok()).collect();
    for _ in 0..20 {
        assert_eq!(healthy(address), 200);
        for path in ["/stats", "/stats?format=json", "/nothing"] {
            match status(&get(address, path)) {
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

#[test]
fn at_the_hard_limit_health_is_answered() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    assert_eq!(status(&get(address, "/stats")), 200);
    limits::set_hard(limits::held());
    let (_, refused) = besiege(address);
    assert!(refused > 0, "nothing was too much");
    limits::set_hard(0);
    assert_eq!(status(&get(address, "/stats")), 200);
}

const CHILD: &str = "LUMALLOC_TEST_USE_UP";

/// In a process of its own, whose address space is bounded and used up.
#[test]
fn without_addresses_health_is_answered() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(this);
    command.args(["--exact", "without_addresses_health_is_answered", "--nocapture"]);
    let done = command.env(CHILD, "1").output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}\n{errors}", done.status);
    assert!(errors.contains("besieged"), "{errors}");
}

fn child() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    assert_eq!(status(&get(address, "/stats")), 200);
    // This thread's part of the test needs a little too.
    let spare = Vec::<u8>::with_capacity(1 << 20);
    let bound = libc::rlimit { rlim_cur: 1 << 30, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a plain structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const bound) }, 0);
    let all = use_up();
    assert!(all.len() > 10);
    drop(spare);
    let (answered, refused) = besiege(address);
    drop(all);
    eprintln!("besieged: {answered} answered, {refused} refused");
}
