//! Forks. A child has none of the exporter's threads, so it closes the sockets that it inherited.
//! The port is then free when the parent ends, and no connection stays open in the child.
//!
//! The exporter notes each of its open sockets here. Opening and noting a socket is one step, and
//! so is forgetting and closing it. A fork waits for the few instructions of such a step.
use crate::descriptors;
use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

/// The most sockets at once, of all exporters of a process.
const SOCKETS: usize = 2048;
const NONE: i32 = -1;

static NOTED: [AtomicI32; SOCKETS] = [const { AtomicI32::new(NONE) }; SOCKETS];

/// Taken while a socket is opened or closed, and while the process forks.
static STEP: AtomicBool = AtomicBool::new(false);

/// Keeps forks out until it is dropped. The holder must do nothing that may wait.
#[must_use]
pub(super) struct Step(());

impl Step {
    pub(super) fn begin() -> Step {
        // Acquire: pairs with the Release in `drop`.
        while STEP.swap(true, Ordering::Acquire) {
            thread::yield_now();
        }
        Step(())
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in the next `begin`.
        STEP.store(false, Ordering::Release);
    }
}

/// A socket that a child will close. Dropping it forgets the socket, in one step with closing it.
pub(super) struct Noted(Option<&'static AtomicI32>);

impl Noted {
    /// Notes a socket, within the step that opened it. If the table is full, the socket is not
    /// noted, and a child keeps it. If the exporter has a table of descriptors of its own, a child
    /// has no such socket.
    pub(super) fn new(_step: &Step, socket: RawFd) -> Noted {
        if descriptors::are_own() {
            return Noted(None);
        }
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

/// Has forks look at the table. The first exporter registers the handlers.
pub(super) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay valid, and call nothing that a forked child must not call.
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
            // SAFETY: this is the child's copy of a socket that no thread of the child uses.
            unsafe { libc::close(socket) };
        }
    }
    drop(Step(()));
}
