//! The one thread, if any, that takes locks which are already taken.
//!
//! It is a thread that forks, while it holds all locks. The C library runs handlers of a program or
//! a library in that time, on that thread, if they were registered before those of the allocator.
//! What they allocate takes locks that the thread has already. So a lock that is taken is taken
//! again there, and a release releases nothing: the fork releases all locks afterwards.
//!
//! Or it is a thread that ends the process by a fatal error, because it may hold locks, and a
//! handler of the program may call the allocator or fork.

#[cfg(not(loom))]
use crate::ground::os;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(not(loom))]
const NOBODY: usize = 0;

/// The address of the thread. All accesses are relaxed: the thread itself finds what it has stored,
/// and each other finds an address that is not its own.
#[cfg(not(loom))]
static EXEMPT: AtomicUsize = AtomicUsize::new(NOBODY);

/// Makes the calling thread exempt. It has just taken all locks, or ends the process.
#[cfg(not(loom))]
pub(crate) fn begin() {
    EXEMPT.store(os::thread_address(), Relaxed);
}

/// Makes no thread exempt. The calling thread releases the locks now.
#[cfg(not(loom))]
pub(crate) fn end() {
    EXEMPT.store(NOBODY, Relaxed);
}

/// Returns whether the calling thread is exempt.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) fn is_caller() -> bool {
    EXEMPT.load(Relaxed) != NOBODY && is_it()
}

/// No fork is modelled.
#[cfg(loom)]
pub(crate) fn is_caller() -> bool {
    false
}

#[cfg(not(loom))]
#[cold]
fn is_it() -> bool {
    EXEMPT.load(Relaxed) == os::thread_address()
}
