//! Forks: a child has none of the exporter's threads, so it closes what it inherited of sockets.
//! The port is free when the parent ends, and no connection lives on in the child.
//!
//! The exporter notes each socket here while it has it. Opening and noting one, and forgetting and
//! closing one, are one step to a fork: it waits for those few instructions.
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

/// Sockets at once, of all exporters of a process.
const SOCKETS: usize = 2048;
const NONE: i32 = -1;

static NOTED: [AtomicI32; SOCKETS] = [const { AtomicI32::new(NONE) }; SOCKETS];

/// Taken while a socket is opened or closed, and while the process forks.
static STEP: AtomicBool = AtomicBool::new(false);

/// Keeps forks out. Nothing that may wait is done meanwhile.
#[must_use]
pub(super) struct Step(());

impl Step {
    pub(super) fn begin() -> Step {
        // Acquire: pairs with the Release of the end.
        while STEP.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        Step(())
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next begin.
        STEP.store(false, Ordering::Release);
    }
}

/// A socket that a child will close. Dropping it forgets it, which is to be one step with closing.
pub(super) struct Noted(Option<&'static AtomicI32>);

impl Noted {
    /// Within the step that opened it. Beyond the table nothing is noted; a child keeps those.
    pub(super) fn new(_step: &Step, socket: RawFd) -> Noted {
        let free = |cell: &&AtomicI32| {
            cell.compare_exchange(NONE, socket, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        Noted(NOTED.iter().find(free))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(cell) = self.0 {
            cell.store(NONE, Ordering::Relaxed);
        }
    }
}

/// Has forks look at the table, from the first exporter on.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay, and call nothing that a forked child must not.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

unsafe extern "C" fn before() {
    std::mem::forget(Step::begin());
}

unsafe extern "C" fn in_parent() {
    drop(Step(()));
}

unsafe extern "C" fn in_child() {
    for cell in &NOTED {
        let socket = cell.swap(NONE, Ordering::Relaxed);
        if socket != NONE {
            // SAFETY: the child's copy of a socket that no thread of the child uses.
            unsafe { libc::close(socket) };
        }
    }
    drop(Step(()));
}
