//! The name of a file, which threads may change.

use crate::path::Path;
use crate::process::this_process;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

/// A path, which one thread has at a time.
///
/// The lock names the generation of forks that holds it. In a child of fork a thread of the parent
/// may hold it, which does not exist there: the child takes it over.
pub(crate) struct NameLock {
    /// The generation of the holder plus 1; 0: nobody has the name.
    holder: AtomicU64,
    path: UnsafeCell<Path>,
}

// SAFETY: the path is used by the thread that has taken it.
unsafe impl Sync for NameLock {}

impl NameLock {
    /// Creates an empty name.
    pub(crate) const fn new() -> NameLock {
        NameLock { holder: AtomicU64::new(0), path: UnsafeCell::new(Path::new()) }
    }

    /// Calls `f` with the name.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Path) -> T) -> T {
        let this_process = this_process();
        // Acquire: pairs with the Release below.
        let take = |from| {
            self.holder.compare_exchange(from, this_process, Ordering::Acquire, Ordering::Relaxed)
        };
        while let Err(holder) = take(0) {
            if holder != this_process && take(holder).is_ok() {
                break;
            }
            // SAFETY: the call has no requirements.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: this thread has taken the name.
        let result = f(unsafe { &mut *self.path.get() });
        // Release: pairs with the Acquire above.
        self.holder.store(0, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_thread_of_the_parent_holds_is_taken_over() {
        let lock = NameLock::new();
        lock.with(|path| path.push(b"name").map(|_| ()));
        lock.holder.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(lock.with(|path| std::ffi::CString::from(path.as_c_str())).as_c_str(), c"name");
        assert_eq!(lock.holder.load(Ordering::Relaxed), 0);
    }
}
