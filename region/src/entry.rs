//! How threads enter a region, and what the word of its lock then has.

use crate::owner;

/// What the word has while threads of one process take turns.
pub(crate) const HELD: u64 = 1;

/// How threads enter a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The region belongs to one thread at a time.
    Alone,
    /// Threads take turns. Source: vmalloc(3), `VM_SHARE`.
    Shared,
    /// Threads of several processes take turns. Source: vmalloc(3), `vmmopen`; and `VM_SHARE` in
    /// memory that may be shared.
    Processes,
}

impl Entry {
    /// Returns what says in the word of the lock who is in the region.
    pub(crate) fn own(self) -> u64 {
        if self == Entry::Processes { owner::own() } else { HELD }
    }
}
