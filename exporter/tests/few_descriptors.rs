//! A process that can open no more files. Each test runs in a process of its own.
#![allow(unsafe_code, reason = "limits of the process")]
mod client;

use client::any;
use lumalloc_exporter::Exporter;
use socket2::{Domain, Socket, Type};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const CHILD: &str = "LUMALLOC_TEST_FEW_DESCRIPTORS";

/// Runs a test in a separate process.
fn alone(name: &str, test: fn()) {
    if std::env::var_os(CHILD).is_some() {
        test();
        return println!("it was run");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let done = command.env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("it was run\n"), "{:?}\n{errors}", done.status);
}

/// Opens files until only so many more can be opened.
fn leave(free: usize) -> Vec<File> {
    let bound = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: `setrlimit` reads a plain structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const bound) }, 0);
    let open = || File::open("/dev/null").ok();
    let mut files: Vec<File> = std::iter::from_fn(open).collect();
    files.truncate(files.len() - free);
    files
}

/// Asks on a connection that stays open, and returns the whole answer.
fn ask(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    while !answer.contains("\r\n\r\n") {
        read_more(stream, &mut answer);
    }
    let length = answer.to_lowercase();
    let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
    while client::body(&answer).len() < length {
        read_more(stream, &mut answer);
    }
    answer
}

fn read_more(stream: &mut TcpStream, answer: &mut String) {
    let mut part = [0; 4096];
    let count = stream.read(&mut part).unwrap();
    assert!(count > 0, "{answer}");
    answer.push_str(str::from_utf8(&part[..count]).unwrap());
}

fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(client::LONG)).unwrap();
    stream
}

/// A runtime would panic, or be ready for clients that it cannot take in.
#[test]
fn a_start_is_refused_with_its_reason() {
    let test = || {
        for (free, reason) in [
            (0, "cannot listen on 127.0.0.1:0: Too many open files (os error 24)"),
            (5, "cannot open what clients are answered with: Too many open files (os error 24)"),
        ] {
            let files = leave(free);
            let error = Exporter::builder().listen(any()).start().err().expect("it starts");
            drop(files);
            assert_eq!(error.to_string(), reason);
        }
        let files = leave(6);
        let exporter = Exporter::builder().listen(any()).start();
        drop(files);
        let address = exporter.as_ref().unwrap().address().unwrap();
        assert_eq!(client::status(&client::get(address, "/-/healthy")), 200);
    };
    alone("a_start_is_refused_with_its_reason", test);
}

/// The client's own socket takes the last descriptor. The exporter answers once it has one again.
#[test]
fn clients_that_cannot_be_taken_in_are_told_of_once() {
    let test = || {
        let exporter = Exporter::builder().listen(any()).start().unwrap();
        let address = exporter.address().unwrap();
        let path = client::directory("few-descriptors").join("errors");
        let said = File::create(&path).unwrap();
        // SAFETY: makes standard error another name of the file.
        assert_eq!(unsafe { libc::dup2(said.as_raw_fd(), 2) }, 2);
        for _ in 0..2 {
            let files = leave(1);
            let mut stream = connected(address);
            client::wait_until("it is told", || said.metadata().unwrap().len() > 0);
            drop(files);
            assert!(ask(&mut stream, "/-/healthy").ends_with("lumalloc: healthy\n"));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let line = "it takes no clients in: Too many open files (os error 24)\n";
        assert_eq!(text, format!("<lumalloc>: exporter: {line}"));
    };
    alone("clients_that_cannot_be_taken_in_are_told_of_once", test);
}

/// Has the exporter, with a table of its own, fail to take a client in. Checks what it says.
fn told_by_own_table(standard_error: &impl AsRawFd, read: impl FnOnce() -> String) {
    let exporter = Exporter::builder().listen(any()).own_descriptors().start().unwrap();
    // SAFETY: makes standard error another name of the file.
    assert_eq!(unsafe { libc::dup2(standard_error.as_raw_fd(), 2) }, 2);
    let client = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    // Standard streams and two more. The exporter has more than that open.
    let bound = libc::rlimit { rlim_cur: 5, rlim_max: 64 };
    // SAFETY: `setrlimit` reads a plain structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const bound) }, 0);
    client.connect(&exporter.address().unwrap().into()).unwrap();
    let line = "it takes no clients in: Too many open files (os error 24)\n";
    assert_eq!(read(), format!("<lumalloc>: exporter: {line}"));
}

/// The exporter has no descriptor for the standard error of the program.
#[test]
fn a_file_is_told_of_it_without_a_descriptor() {
    let test = || {
        let path = client::directory("few-descriptors-own").join("errors");
        let said =
            File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        told_by_own_table(&said, || {
            client::wait_until("it is told", || said.metadata().unwrap().len() > 0);
            let mut text = [0; 200];
            let length = said.read_at(&mut text, 0).unwrap();
            String::from_utf8_lossy(&text[..length]).into_owned()
        });
    };
    alone("a_file_is_told_of_it_without_a_descriptor", test);
}

/// Whether a process may copy its own standard error by its number. Before Linux 5.6, and in some
/// sandboxes, it may not.
fn may_copy_by_number() -> std::io::Result<()> {
    let opened = |result: i64| match RawFd::try_from(result) {
        // SAFETY: it was just opened, and belongs to nothing else.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: a system call without pointers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    let process = opened(process)?;
    // SAFETY: as before.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), 2, 0) };
    opened(copy).map(drop)
}

#[test]
fn a_socket_is_told_of_it_without_a_descriptor() {
    if let Err(error) = may_copy_by_number() {
        let line = format!("not tried: a line on a socket without a descriptor: {error}\n");
        return std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    let test = || {
        let (said, mut told) = UnixStream::pair().unwrap();
        told.set_read_timeout(Some(client::LONG)).unwrap();
        told_by_own_table(&said, || {
            let mut text = [0; 200];
            let length = told.read(&mut text).unwrap();
            String::from_utf8_lossy(&text[..length]).into_owned()
        });
    };
    alone("a_socket_is_told_of_it_without_a_descriptor", test);
}

/// The numbers of `/proc/self/statm` cannot be read. Nothing else may be told in their place.
#[test]
fn what_cannot_be_read_is_left_out() {
    let test = || {
        let exporter = Exporter::builder().listen(any()).start().unwrap();
        let mut stream = connected(exporter.address().unwrap());
        assert!(ask(&mut stream, "/-/healthy").ends_with("lumalloc: healthy\n"));
        let files = leave(0);
        let metrics = ask(&mut stream, "/metrics");
        drop(files);
        assert!(metrics.contains("\nlumalloc_allocated_bytes "));
        assert!(metrics.contains("\nlumalloc_collector_success{collector=\"process\"} 0\n"));
        for family in ["process_foreign_bytes", "process_resident_bytes", "heap_resident_bytes"] {
            assert!(!metrics.contains(&format!("\nlumalloc_{family} ")), "{family}");
        }
        for is_read in [true, false] {
            let files = leave(if is_read { 1 } else { 0 });
            let metrics = ask(&mut stream, "/metrics");
            drop(files);
            let success = u8::from(is_read);
            let success =
                format!("\nlumalloc_collector_success{{collector=\"process\"}} {success}\n");
            assert!(metrics.contains(&success), "{metrics}");
            assert_eq!(metrics.contains("\nlumalloc_process_foreign_bytes "), is_read);
        }
    };
    alone("what_cannot_be_read_is_left_out", test);
}
