//! The time around a fork in which the forking thread holds all locks.
//!
//! The C library runs handlers of a program or a library in that time, on that thread, if they were
//! registered before those of the allocator. What they allocate takes locks that the thread has
//! already. So a lock that is taken is taken again there, and a release releases nothing: the fork
//! releases all locks afterwards.
//!
//! A thread that ends the process by a fatal error is in such a time too, because it may hold
//! locks, and a handler of the program may call the allocator or fork.

#[cfg(not(loom))]
use crate::ground::os;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(not(loom))]
const NOBODY: usize = 0;

/// The address of the forking thread. All accesses are relaxed: the thread itself finds what it has
/// stored, and each other finds an address that is not its own.
#[cfg(not(loom))]
static FORKER: AtomicUsize = AtomicUsize::new(NOBODY);

/// Begins the time. The calling thread has just taken all locks, or ends the process.
#[cfg(not(loom))]
pub(crate) fn begin() {
    FORKER.store(os::thread_address(), Relaxed);
}

/// Ends the time. The calling thread releases the locks now.
#[cfg(not(loom))]
pub(crate) fn end() {
    FORKER.store(NOBODY, Relaxed);
}

/// Returns whether it is that time, and the calling thread is the one that forks.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn is_callers() -> bool {
    FORKER.load(Relaxed) != NOBODY && is_forker()
}

/// No fork is modelled.
#[cfg(loom)]
pub(crate) fn is_callers() -> bool {
    false
}

#[cfg(not(loom))]
#[cold]
fn is_forker() -> bool {
    FORKER.load(Relaxed) == os::thread_address()
}
