//! What is counted for layers above, which have no counts of their own.

use crate::front::life::fork;
use crate::front::life::thread_begin::real_cache;
use crate::ground::counters::SharedCount;
use crate::ground::os;

static ZERO_REALLOCS: SharedCount = SharedCount::new();

/// Notes one call of `realloc(p, 0)` with a block. Source: jemalloc(3) 5.3, `stats.zero_reallocs`.
pub fn note_zero_realloc() {
    ZERO_REALLOCS.add(1);
}

/// How many there were.
#[must_use]
pub fn zero_reallocs() -> u64 {
    ZERO_REALLOCS.get()
}

/// How many forks lie between this process and the first of its line that allocated: a forked child
/// has one more than its parent. A few instructions, where asking for the process's number is a
/// system call.
///
/// ```
/// assert_eq!(lumalloc::observe::fork_generation(), 0);
/// ```
#[must_use]
pub fn fork_generation() -> u64 {
    // The handlers are registered at the start.
    real_cache();
    fork::GENERATION.get()
}

/// A number that is the calling thread's alone while it lives: a few instructions.
#[must_use]
pub fn thread_number() -> usize {
    os::thread_address()
}
