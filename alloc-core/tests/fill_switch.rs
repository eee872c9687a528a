//! Fill is switched on and off under running threads.
#![allow(unsafe_code)]

mod common;

use common::{alone, assert_empty};
use lumalloc::control::{self, Fill, thread as own};
use lumalloc::raw;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

const ROUNDS: u32 = 200;

/// Fill is switched under threads that only allocate. Allocations that begin after the switch has
/// returned are filled.
#[test]
fn fill_is_switched_under_running_threads() {
    let _alone = alone();
    static ROUND: AtomicU32 = AtomicU32::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    let seen = |index: usize| {
        let mut seen = 0;
        while !STOP.load(Ordering::Relaxed) {
            // Acquire: pairs with the Release in the loop over `ROUNDS`.
            let round = ROUND.load(Ordering::Acquire);
            let size = 16 + index * 16;
            let block = raw::malloc(size);
            // SAFETY: a live block of that size.
            let byte = unsafe { block.wrapping_add(size - 1).read() };
            // SAFETY: a live block of that size.
            unsafe { block.write_bytes(1, size) };
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
            if round % 2 == 1 && ROUND.load(Ordering::Acquire) == round {
                assert_eq!(byte, 0xa5, "round {round}");
                seen += 1;
            }
            if seen % 64 == 0 {
                // The thread's fronts change while the switch looks at them.
                let _scope = own::enter(seen / 64 % 2);
                drop(own::enter(2));
            }
        }
        seen
    };
    let threads: Vec<_> = (0..3).map(|index| thread::spawn(move || seen(index))).collect();
    for round in 1..=ROUNDS {
        let fill = Fill { junk_allocated: round % 2 == 1, ..Fill::default() };
        assert!(control::set_fill(fill));
        assert_eq!(control::fill(), fill);
        // Release: pairs with the Acquire in `seen`.
        ROUND.store(round, Ordering::Release);
        let short = thread::spawn(move || {
            let block = raw::malloc(500);
            // SAFETY: a live block of that size.
            let byte = unsafe { block.read() };
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
            byte
        });
        let byte = short.join().expect("a short-lived thread");
        assert!(round % 2 == 0 || byte == 0xa5, "a thread that began after the switch");
        thread::yield_now();
        ROUND.store(round + round % 2, Ordering::Release);
    }
    STOP.store(true, Ordering::Relaxed);
    let seen: u32 = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    assert!(seen > 0);
    assert_empty();
}

/// Refuses a system call to the calling thread from now on.
fn refuse(call: i64) {
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (load, jump, end) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0x15, libc::BPF_RET);
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let mut filter = [
        op(load as u16, 0, 0, 0),
        op(jump, 0, 1, u32::try_from(call).expect("a number of a call")),
        op(end as u16, 0, 0, refusal),
        op(end as u16, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the program is readable, and is copied.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) }, 0);
}

/// A program may enter a sandbox while it fills. Each operation would be slow for ever.
#[test]
fn fill_ends_also_where_membarrier_is_refused_by_then() {
    let _alone = alone();
    thread::spawn(|| {
        let fill = Fill { junk_allocated: true, ..Fill::default() };
        assert!(control::set_fill(fill));
        refuse(libc::SYS_membarrier);
        assert!(!control::set_fill(Fill { zero: true, ..fill }));
        assert_eq!(control::fill(), fill);
        assert!(control::set_fill(Fill::default()));
        assert_eq!(control::fill(), Fill::default());
        assert!(!control::set_fill(fill));
        assert_eq!(control::fill(), Fill::default());
    })
    .join()
    .expect("the thread");
}
