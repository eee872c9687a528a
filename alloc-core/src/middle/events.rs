//! Counts of what the slow paths did. They show scaling where time on two cores does not.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What [`EventCounts`] counts.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Event {
    /// A refill from slabs that the cache owns.
    RefillOwned,
    /// A refill from slabs that a bin guards.
    RefillShared,
    /// A slab that a cache took over from a bin.
    Adopted,
    /// A slab made of fresh pages.
    Fresh,
    /// A batch of blocks that was returned to slabs.
    Flush,
    /// A group in such batches: blocks of one slab, or of one word of a slab with another guard.
    Group,
    /// An atomic OR into a word of a slab that the calling thread does not guard.
    RemoteWord,
    /// A slab pushed on its guard's pending stack.
    Push,
    /// A compare-exchange of a remote free that was repeated because another thread came between.
    Retry,
    /// A slab whose remote frees were taken in.
    Drained,
    /// A large block that a cache kept, and one that it used again.
    RunKept,
    RunReused,
}

const EVENTS: usize = Event::RunReused as usize + 1;

/// The events of one owner, counted under its lock. Those of [`UNCACHED`] are counted by any
/// thread.
pub(crate) struct EventCounts {
    shared: bool,
    counts: [AtomicU64; EVENTS],
}

/// The events past all caches.
pub(crate) static UNCACHED: EventCounts = EventCounts { shared: true, ..EventCounts::new() };

impl EventCounts {
    /// Counts of zero, for one writer at a time.
    pub(crate) const fn new() -> EventCounts {
        EventCounts { shared: false, counts: [const { AtomicU64::new(0) }; EVENTS] }
    }

    /// Counts an event `n` times.
    #[inline]
    pub(crate) fn add(&self, event: Event, n: u64) {
        let Some(count) = self.counts.get(event as usize) else { return };
        if self.shared {
            count.fetch_add(n, Relaxed);
        } else {
            count.store(count.load(Relaxed).wrapping_add(n), Relaxed);
        }
    }

    /// Returns how often an event was counted.
    pub(crate) fn get(&self, event: Event) -> u64 {
        self.counts.get(event as usize).map_or(0, |count| count.load(Relaxed))
    }
}
