//! Counts of system calls by kind. Each call costs far more than counting it.

use super::counters::SharedCount;

/// System calls that are counted.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    Mmap,
    Munmap,
    Madvise,
    Mprotect,
    Mremap,
    FutexWait,
    FutexWake,
}

static COUNTS: [SharedCount; Call::FutexWake as usize + 1] =
    [const { SharedCount::new() }; Call::FutexWake as usize + 1];

/// Counts one call.
pub(crate) fn count(call: Call) {
    if let Some(count) = COUNTS.get(call as usize) {
        count.add(1);
    }
}

/// Returns how many calls of this kind were counted.
pub(crate) fn counted(call: Call) -> u64 {
    COUNTS.get(call as usize).map_or(0, SharedCount::get)
}
