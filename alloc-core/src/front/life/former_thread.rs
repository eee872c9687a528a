//! The background thread as the C library knows it: it is waited for, so that a program whose other
//! threads have all been joined has one thread, for the C library and for the system. `setuid` and
//! `unshare` ask for that.

use super::may_start;
use crate::ground::os;
use crate::ground::own_thread::{self, Body, OwnThread};
use crate::ground::sync::lock::{Guard, RankedMutex};
use crate::ground::sync::lock_rank::LockRank;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Held while the thread is started or stopped, and by a fork.
pub(crate) static CHANGE: RankedMutex<FormerThread> =
    RankedMutex::new(LockRank::Background, FormerThread(None));

/// Whether a thread that holds the lock waits for the end of the background thread. Only
/// the thread that is waited for must see it, sooner or later.
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

/// The thread that was started last, until somebody has waited for its end.
pub(crate) struct FormerThread(Option<OwnThread>);

impl FormerThread {
    /// Starts a thread, after the end of the former one, which was told to end.
    pub(super) fn start(&mut self, body: Body) -> Result<(), c_int> {
        self.wait();
        self.0 = Some(own_thread::start(body)?);
        Ok(())
    }

    /// Waits for the end of the thread, which was told to end or does so by itself. A child that
    /// was forked without the handlers has none to wait for.
    pub(super) fn wait(&mut self) {
        if let Some(thread) = self.0.take().filter(|_| may_start::is_own_process()) {
            IS_AWAITED.store(true, Relaxed);
            thread.join();
            IS_AWAITED.store(false, Relaxed);
        }
    }

    /// Forgets the thread, which does not exist in a forked child.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

/// Takes the lock, by the background thread. Returns `None` if the one who holds it waits for the
/// end of this thread.
pub(super) fn lock() -> Option<Guard<'static, FormerThread>> {
    loop {
        match CHANGE.try_lock() {
            None if IS_AWAITED.load(Relaxed) => return None,
            None => os::yield_now(),
            change => return change,
        }
    }
}
