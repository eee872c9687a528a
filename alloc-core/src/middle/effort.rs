//! What the slow paths did, counted: scaling on paper, where time on two cores says nothing.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Deed {
    /// A refill from slabs of the cache's own.
    RefillOwned,
    /// A refill from slabs that a bin guards.
    RefillShared,
    /// A slab taken over from a bin.
    Adopted,
    /// A slab made of fresh pages.
    Fresh,
    /// A batch sent home.
    Flush,
    /// A group in such batches: of one slab, or of one word of somebody else's.
    Group,
    /// An atomic OR into a word of a slab that somebody else guards.
    RemoteWord,
    /// A slab pushed on its guard's pending stack.
    Push,
    /// A compare-exchange repeated in these two, because another thread came between.
    Retry,
    /// A slab whose remote frees were taken in.
    Drained,
    /// A large block that was kept, and one that came from there.
    RunKept,
    RunReused,
}

const DEEDS: usize = Deed::RunReused as usize + 1;

/// The deeds of one owner, written under its lock; or of everybody else, written by anyone.
pub(crate) struct Effort {
    shared: bool,
    counts: [AtomicU64; DEEDS],
}

/// What went past all caches.
pub(crate) static UNCACHED: Effort = Effort { shared: true, ..Effort::new() };

impl Effort {
    /// Nothing was done; one writer at a time.
    pub(crate) const fn new() -> Effort {
        Effort { shared: false, counts: [const { AtomicU64::new(0) }; DEEDS] }
    }

    /// Counts `n` deeds.
    #[inline]
    pub(crate) fn add(&self, deed: Deed, n: u64) {
        let Some(count) = self.counts.get(deed as usize) else { return };
        if self.shared {
            count.fetch_add(n, Relaxed);
        } else {
            count.store(count.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// How many there were.
    pub(crate) fn get(&self, deed: Deed) -> u64 {
        self.counts.get(deed as usize).map_or(0, |count| count.load(Relaxed))
    }
}
