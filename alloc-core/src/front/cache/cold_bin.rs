//! What the slow paths of a cache remember of a bin.

use crate::front::modes::until_sample::UntilSample;
use crate::ground::counters::OwnedCount;
use core::cell::Cell;

/// What the slow paths remember of a bin. For the bin's thread, or under the owner's lock once that
/// thread has ended.
pub(crate) struct ColdBin {
    /// log2 of the array's slots. 0 if there is no array.
    pub(crate) lg_array: Cell<u8>,
    /// How many blocks the next refill asks for.
    pub(crate) want: Cell<u16>,
    /// Refills so far, as far as they matter: the first few come from shared slabs.
    pub(crate) refills: Cell<u8>,
    /// Whether blocks that went to slabs were needed again: see
    /// [`crate::middle::owners::overflow`].
    pub(crate) bulk: Cell<bool>,
    /// The most blocks that the bin may hold, or
    /// [`BY_CLASS`](crate::ground::cache_limits::BY_CLASS).
    pub(crate) most: Cell<u16>,
    /// Whether the bin missed or overflowed since the last look of collection.
    pub(crate) missed: Cell<bool>,
    /// Requests at the last look of collection, and at the last overflow.
    pub(crate) seen_requests: Cell<u64>,
    pub(crate) overflow_requests: Cell<u64>,
    /// Sum of all countdowns set so far.
    pub(crate) armed: OwnedCount,
    /// Requests until the next guarded sample, and until the next one of the heap profiler.
    pub(crate) until_guarded: UntilSample,
    pub(crate) until_profiled: UntilSample,
}

impl ColdBin {
    pub(super) const fn new() -> ColdBin {
        ColdBin {
            lg_array: Cell::new(0),
            want: Cell::new(0),
            most: Cell::new(0),
            refills: Cell::new(0),
            bulk: Cell::new(false),
            missed: Cell::new(false),
            seen_requests: Cell::new(0),
            overflow_requests: Cell::new(0),
            armed: OwnedCount::new(),
            until_guarded: UntilSample::new(),
            until_profiled: UntilSample::new(),
        }
    }
}
