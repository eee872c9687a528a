//! Forks. A child has none of the exporter's threads, so it closes the sockets that it inherited.
//! The port is then free when the parent ends, and no connection stays open in the child.
//!
//! The exporter notes each of its open sockets here. Opening and noting a socket is one step, and
//! so is forgetting and closing it. A fork waits for the few instructions of such a step.
use crate::descriptors;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::ptr;
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

/// An open socket that a child will close. Dropping it forgets and closes the socket, in one step.
/// It must not be dropped within a step.
pub(super) struct Noted<S> {
    socket: ManuallyDrop<S>,
    cell: Option<&'static AtomicI32>,
}

impl<S> Noted<S> {
    /// Notes a socket, within the step that opened it. If the table is full, the socket is not
    /// noted, and a child keeps it. If the exporter has a table of descriptors of its own, a child
    /// has no such socket.
    pub(super) fn new(_step: &Step, socket: S) -> Noted<S>
    where
        S: AsRawFd,
    {
        let number = socket.as_raw_fd();
        let free = |cell: &&AtomicI32| {
            cell.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let cell = if descriptors::are_own() { None } else { NOTED.iter().find(free) };
        Noted { socket: ManuallyDrop::new(socket), cell }
    }

    /// Changes what holds the socket, in one step. The descriptor stays the same, or is closed if
    /// that fails.
    pub(super) fn change<T>(self, change: impl FnOnce(S) -> io::Result<T>) -> io::Result<Noted<T>> {
        let _step = Step::begin();
        let noted = ManuallyDrop::new(self);
        // SAFETY: the value is not used again, and not dropped.
        let socket = ManuallyDrop::into_inner(unsafe { ptr::read(&raw const noted.socket) });
        match change(socket) {
            Ok(socket) => Ok(Noted { socket: ManuallyDrop::new(socket), cell: noted.cell }),
            Err(error) => {
                forget(noted.cell);
                Err(error)
            }
        }
    }
}

/// Forgets a socket, within the step in which it is closed.
fn forget(cell: Option<&AtomicI32>) {
    cell.into_iter().for_each(|cell| cell.store(NONE, Ordering::Relaxed));
}

impl<S> Drop for Noted<S> {
    fn drop(&mut self) {
        let _step = Step::begin();
        forget(self.cell);
        // SAFETY: the socket is not used again.
        unsafe { ManuallyDrop::drop(&mut self.socket) };
    }
}

impl<S> Deref for Noted<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.socket
    }
}

impl<S> DerefMut for Noted<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.socket
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::RawFd;

    /// Stands for a socket with a number that no descriptor has. It is closed when it is dropped.
    struct Socket<'a> {
        number: RawFd,
        closed: &'a AtomicBool,
    }

    impl AsRawFd for Socket<'_> {
        fn as_raw_fd(&self) -> RawFd {
            self.number
        }
    }

    impl Drop for Socket<'_> {
        fn drop(&mut self) {
            assert!(STEP.load(Ordering::Relaxed), "no fork comes in between");
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    fn is_noted(number: RawFd) -> bool {
        NOTED.iter().any(|cell| cell.load(Ordering::Relaxed) == number)
    }

    #[test]
    fn a_socket_is_forgotten_in_one_step_with_closing_it() {
        let number = i32::MAX;
        let closed = AtomicBool::new(false);
        let new = || Noted::new(&Step::begin(), Socket { number, closed: &closed });
        let noted = new();
        assert!(is_noted(number));
        drop(noted);
        assert!(!is_noted(number) && closed.swap(false, Ordering::Relaxed));
        // What holds the socket changes.
        let noted = new().change(Ok).expect("a socket");
        assert!(is_noted(number) && !closed.load(Ordering::Relaxed));
        assert!(noted.change(|_| Err::<(), _>(io::ErrorKind::Other.into())).is_err());
        assert!(!is_noted(number) && closed.load(Ordering::Relaxed));
    }
}
