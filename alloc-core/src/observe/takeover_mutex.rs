//! [`TakeoverMutex`]: a lock for the layers above, which fork does not take.

use super::mutex_stats::MutexStats;
use super::process;
use crate::ground::sync::takeover_lock::{Taken, TakeoverLock};
use core::cell::UnsafeCell;

/// A value that one thread has at a time. Others that want it sleep meanwhile. A process may fork
/// while a thread has it: the child takes it over.
///
/// It does not allocate, and takes no lock of the standard library.
///
/// ```
/// use lumalloc::observe::TakeoverMutex;
///
/// static NAME: TakeoverMutex<[u8; 4]> = TakeoverMutex::new(*b"heap");
/// NAME.with(|name, _| name[0] = b'l');
/// assert_eq!(NAME.with(|name, was_left_behind| (*name, was_left_behind)), (*b"leap", false));
/// assert_eq!(NAME.stats().num_ops, 2);
/// NAME.with(|_, _| NAME.reset_stats());
/// assert_eq!(NAME.stats().num_ops, 0);
/// ```
pub struct TakeoverMutex<T> {
    lock: TakeoverLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached under the lock only, by one thread at a time. `T: Send` is needed
// because any thread may take it.
unsafe impl<T: Send> Sync for TakeoverMutex<T> {}

/// Releases the lock when it goes out of scope.
struct Held<'a>(&'a TakeoverLock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<T> TakeoverMutex<T> {
    /// A value that nobody has.
    #[must_use]
    pub const fn new(value: T) -> TakeoverMutex<T> {
        TakeoverMutex { lock: TakeoverLock::new(), value: UnsafeCell::new(value) }
    }

    /// Calls `f` with the value, and with whether a thread of the parent was left behind that had
    /// it at the fork: what that thread did may be half done. `f` must not ask for the value again.
    pub fn with<R>(&self, f: impl FnOnce(&mut T, bool) -> R) -> R {
        let taken = self.lock.take(process::fork_generation());
        let _held = Held(&self.lock);
        // SAFETY: the lock is held, so this is the only reference; it ends before `_held` is
        // dropped.
        let value = unsafe { &mut *self.value.get() };
        f(value, taken == Taken::LeftBehind)
    }

    /// Returns the statistics of the lock.
    #[must_use]
    pub fn stats(&self) -> MutexStats {
        let mut stats = MutexStats::EMPTY;
        stats.add_history(self.lock.history());
        stats
    }

    /// Sets the statistics of the lock to zero. Called by who has the value, because others would
    /// lose what it counts meanwhile.
    pub fn reset_stats(&self) {
        self.lock.reset_history();
    }
}
