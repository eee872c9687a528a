//! A forked child does not serve, keeps nothing of the exporter open, and stops nothing.
#![allow(unsafe_code, reason = "fork")]
mod client;

use client::{any, directory, get, raw_unix, request, status};
use lumalloc_exporter::Exporter;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::Mutex;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// Lets one test run at a time. A child of one test would keep what another has just opened.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a closure in a forked child. Returns 0 if the closure returns `true`.
fn in_child(check: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child only calls code that allocates, which lumalloc allows.
    match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        0 => {
            let code = i32::from(!check());
            // SAFETY: `_exit` ends the child without the handlers that the parent registered.
            unsafe { libc::_exit(code) }
        }
        child => wait_for(child),
    }
}

fn wait_for(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `waitpid` writes the status to a valid place.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(ended, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + status }
}

/// Counts the sockets of this process that have an address. Unnamed pairs belong to the runtime,
/// which has them for signals if another crate of the build asks for signals.
fn sockets() -> usize {
    let has_address = |number: &i32| {
        // SAFETY: the socket is only looked at, and not closed.
        let tcp = ManuallyDrop::new(unsafe { TcpListener::from_raw_fd(*number) });
        // SAFETY: the socket is only looked at, and not closed.
        let unix = ManuallyDrop::new(unsafe { UnixListener::from_raw_fd(*number) });
        tcp.local_addr().is_ok() || unix.local_addr().is_ok_and(|name| !name.is_unnamed())
    };
    (0..1024).filter(has_address).count()
}

#[test]
fn a_child_closes_what_it_inherited_and_does_not_serve() {
    let _alone = ALONE.lock();
    let path = directory("forking").join("socket");
    let before = sockets();
    let exporter = Exporter::builder().listen_unix(&path).metrics_on(any()).start().unwrap();
    let address = exporter.metrics_address().unwrap();
    let mut kept = TcpStream::connect(address).unwrap();
    assert_eq!(status(&get(address, "/-/healthy")), 200);
    // One of the sockets is this test's end of the connection.
    let exporter = std::cell::Cell::new(Some(exporter));
    let code = in_child(|| {
        let inherited = sockets();
        // As in a child that unwinds its parent's frames, this does not wait and removes nothing.
        drop(exporter.take());
        if inherited != before + 1 {
            eprintln!("the child has {inherited} sockets; there were {before} before");
        }
        inherited == before + 1 && path.exists()
    });
    assert_eq!(code, 0, "{before} sockets before");
    assert!(path.exists(), "the child removed the parent's socket");
    kept.write_all(&request("GET", "/-/ready", "localhost", "")).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut kept, &mut answer).unwrap();
    assert_eq!(status(&answer), 200, "the parent's connections live on");
    let unix = raw_unix(&path, &request("GET", "/-/healthy", "localhost", ""));
    assert_eq!(status(&unix), 200);
    drop(exporter.take());
    assert!(!path.exists());
}

/// A child that outlives the exporter does not keep the exporter's port.
#[test]
fn the_port_is_free_when_the_exporter_ends() {
    let _alone = ALONE.lock();
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let open: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(status(&get(address, "/-/healthy")), 200);
    let (mut go, wait) = pipe();
    let (mut begun, mut ready) = pipe();
    // SAFETY: the child reads from a pipe, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(go);
        let _ = begun.write_all(b"x");
        let mut byte = [0u8; 1];
        let _ = std::io::Read::read(&mut { wait }, &mut byte);
        // SAFETY: `_exit` ends the child.
        unsafe { libc::_exit(0) }
    }
    // The child has closed what it closes at its beginning.
    std::io::Read::read_exact(&mut ready, &mut [0]).unwrap();
    drop(wait);
    drop(open);
    drop(exporter);
    assert!(TcpStream::connect(address).is_err(), "the child still listens");
    assert!(TcpListener::bind(address).is_ok(), "the port is taken");
    let _ = go.write_all(b"x");
    drop(go);
    assert_eq!(wait_for(child), 0);
}

fn pipe() -> (std::fs::File, std::fs::File) {
    let mut ends = [0; 2];
    // SAFETY: `pipe` writes two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the descriptor is new, and no other code owns it.
    let read = unsafe { std::fs::File::from_raw_fd(ends[0]) };
    // SAFETY: the descriptor is new, and no other code owns it.
    let write = unsafe { std::fs::File::from_raw_fd(ends[1]) };
    (write, read)
}

/// A program may fork as soon as it has its exporter.
#[test]
fn a_child_of_the_first_moment_holds_nothing_either() {
    let _alone = ALONE.lock();
    for _ in 0..50 {
        let exporter = Exporter::builder().listen(any()).start().unwrap();
        let address = exporter.address().unwrap();
        assert_eq!(in_child(|| listens_nowhere(address)), 0);
    }
}

/// Forks while connections are opened and closed.
#[test]
fn forks_and_connections_do_not_wait_for_each_other() {
    let _alone = ALONE.lock();
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(status(&get(address, "/-/healthy")), 200);
                }
            });
        }
        for _ in 0..100 {
            assert_eq!(in_child(|| listens_nowhere(address)), 0);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Whether no descriptor of this process is bound to the address.
fn listens_nowhere(address: SocketAddr) -> bool {
    (0..1024).all(|number| {
        // SAFETY: the socket is only looked at, and not closed.
        let socket = unsafe { TcpListener::from_raw_fd(number) };
        let bound = socket.local_addr();
        std::mem::forget(socket);
        bound.is_err() || bound.is_ok_and(|bound| bound != address)
    })
}

/// A program that is started inherits nothing of the exporter.
#[test]
fn programs_inherit_nothing() {
    let _alone = ALONE.lock();
    let exporter = Exporter::builder().listen(any()).metrics_on(any()).start().unwrap();
    let _open = TcpStream::connect(exporter.address().unwrap()).unwrap();
    assert_eq!(status(&get(exporter.address().unwrap(), "/-/healthy")), 200);
    let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(" 0 -> ") && !listed.contains("socket:"), "{listed}");
    assert!(!listed.contains("eventpoll"), "{listed}");
}
