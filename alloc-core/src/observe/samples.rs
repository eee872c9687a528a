//! How many guarded samples there are (`opt.guarded_sample`).

use crate::front::modes::guarded::{FAILED, FREED_SO_FAR, MADE};

/// Counts of guarded samples since the start, and of those in use.
///
/// A sample is no request of its size class, and its page no memory of any arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardedSamples {
    /// Samples handed out.
    pub made: u64,
    /// Those that are in use.
    pub live: u64,
    /// Requests that were to get a sample and got an ordinary block: all slots were in use, the
    /// alignment is more than a page's, or the system had no memory.
    pub failed: u64,
}

/// The counts as they stand; others may allocate meanwhile.
///
/// ```
/// // Without the option there are none.
/// let samples = lumalloc::observe::guarded_samples();
/// assert_eq!((samples.made, samples.live, samples.failed), (0, 0, 0));
/// ```
#[must_use]
pub fn guarded_samples() -> GuardedSamples {
    // Freed ones first: none is freed before it was made.
    let freed = FREED_SO_FAR.get();
    let made = MADE.get();
    GuardedSamples { made, live: made.saturating_sub(freed), failed: FAILED.get() }
}
