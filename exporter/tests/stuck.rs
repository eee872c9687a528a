//! A process in which a thread is stuck with the lock of an arena. The exporter says so.
#![allow(unsafe_code, reason = "system calls that a thread must not make")]
mod client;

use client::{any, body, get, status};
use lumalloc::control::{arenas, thread};
use lumalloc_exporter::{Exporter, Limits};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const MIB: usize = 1 << 20;

/// Makes the calling thread stop for ever at its next call of `mmap`.
fn stop_at_mmap() {
    extern "C" fn stop(_: libc::c_int) {
        STUCK.store(true, std::sync::atomic::Ordering::Relaxed);
        loop {
            // SAFETY: `pause` only waits for a signal.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: the handler only waits.
    unsafe { libc::signal(libc::SIGSYS, stop as *const () as libc::sighandler_t) };
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    // Loads the number of the system call. `mmap` is trapped, the others are allowed.
    let mut filter = [
        step((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        step((libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, libc::SYS_mmap as u32, 0, 1),
        step((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_TRAP, 0, 0),
        step((libc::BPF_RET | libc::BPF_K) as u16, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the call takes no pointers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the filter outlives the call, and applies to this thread alone.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

static STUCK: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Starts a thread that holds the lock of an arena's pages for ever.
fn stuck_thread() {
    std::thread::spawn(|| {
        let arena = arenas::create().unwrap();
        thread::set_arena(arena).unwrap();
        stop_at_mmap();
        std::hint::black_box(Vec::<u8>::with_capacity(64 * MIB));
        unreachable!("mmap was not called");
    });
    client::wait_until("it is stuck", || STUCK.load(std::sync::atomic::Ordering::Relaxed));
}

/// Asks on a separate thread.
fn ask(address: std::net::SocketAddr, path: &'static str) -> Receiver<String> {
    let (give, take) = channel();
    std::thread::spawn(move || give.send(get(address, path)));
    take
}

#[test]
fn health_is_answered_and_the_rest_refused_in_time() {
    let limits = Limits { patience: Duration::from_secs(3), ..Limits::default() };
    let exporter = Exporter::builder().listen(any()).limits(limits).start().unwrap();
    let address = exporter.address().unwrap();
    assert_eq!(status(&get(address, "/stats")), 200);
    stuck_thread();
    let late: Vec<_> = (0..3).map(|_| ask(address, "/stats")).collect();
    // Long enough for decay passes to be due on every thread that would run one.
    let begun = Instant::now();
    let mut healthy = 0;
    while begun.elapsed() < Duration::from_millis(1500) || healthy < 500 {
        assert_eq!(status(&get(address, "/-/healthy")), 200);
        healthy += 1;
    }
    for late in late {
        let answer = late.recv_timeout(client::LONG).unwrap();
        let says = "the allocator did not answer in time\n";
        assert_eq!((status(&answer), body(&answer)), (503, says));
    }
    // Too many requests wait, or none is served in time. Each gets an answer in either case.
    let many: Vec<_> = (0..40).map(|_| ask(address, "/stats")).collect();
    for late in many {
        assert_eq!(status(&late.recv_timeout(client::LONG).unwrap()), 503);
    }
    assert_eq!(status(&get(address, "/-/ready")), 200);
    let stopped = channel();
    std::thread::spawn(move || {
        drop(exporter);
        stopped.0.send(())
    });
    stopped.1.recv_timeout(client::LONG).expect("a stop waits for ever");
}
