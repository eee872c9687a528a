//! Counts for the layers above, which have none of their own.

use crate::front::life::fork;
use crate::front::life::thread_begin::real_cache;
use crate::ground::counters::SharedCount;
use crate::ground::os;

static ZERO_REALLOCS: SharedCount = SharedCount::new();

/// Counts one call of `realloc(p, 0)` with a block. Source: jemalloc(3) 5.3, `stats.zero_reallocs`.
pub fn note_zero_realloc() {
    ZERO_REALLOCS.add(1);
}

/// Returns how many calls [`note_zero_realloc`] counted.
#[must_use]
pub fn zero_reallocs() -> u64 {
    ZERO_REALLOCS.get()
}

/// Returns how many forks lie between this process and the first of its ancestors that allocated. A
/// forked child has one more than its parent. Takes a few instructions, while asking for the number
/// of the process is a system call.
///
/// ```
/// assert_eq!(lumalloc::observe::fork_generation(), 0);
/// ```
#[must_use]
pub fn fork_generation() -> u64 {
    // The start registers the fork handlers.
    real_cache();
    fork::GENERATION.get()
}

/// Returns a number that only the calling thread has while it lives. Takes a few instructions.
#[must_use]
pub fn thread_number() -> usize {
    os::thread_address()
}
