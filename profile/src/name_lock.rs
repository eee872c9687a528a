//! The name of a file, which threads may change.

use crate::path::Path;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// A path, which one thread has at a time.
pub(crate) struct NameLock {
    is_taken: AtomicBool,
    path: UnsafeCell<Path>,
}

// SAFETY: the path is used by the thread that has taken it.
unsafe impl Sync for NameLock {}

impl NameLock {
    /// Creates an empty name.
    pub(crate) const fn new() -> NameLock {
        NameLock { is_taken: AtomicBool::new(false), path: UnsafeCell::new(Path::new()) }
    }

    /// Calls `f` with the name.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Path) -> T) -> T {
        // Acquire: pairs with the Release below.
        while self.is_taken.swap(true, Ordering::Acquire) {
            // SAFETY: the call has no requirements.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: this thread has taken the name.
        let result = f(unsafe { &mut *self.path.get() });
        // Release: pairs with the Acquire above.
        self.is_taken.store(false, Ordering::Release);
        result
    }
}
