//! Counts of guarded samples (`opt.guarded_sample`).

use crate::front::modes::guarded::{FAILED, FREED_SO_FAR, MADE};

/// Counts of guarded samples since the start, and of those in use.
///
/// A sample is not counted as a request of its size class, nor its page as memory of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardedSamples {
    /// Samples handed out.
    pub made: u64,
    /// Samples that are in use.
    pub live: u64,
    /// Requests that were chosen for a sample and got an ordinary block, because all slots were in
    /// use, the alignment was more than a page's, or the system had no memory.
    pub failed: u64,
}

/// Returns the counts as they stand. Other threads may allocate meanwhile.
///
/// ```
/// // Without the option there are none.
/// let samples = lumalloc::observe::guarded_samples();
/// assert_eq!((samples.made, samples.live, samples.failed), (0, 0, 0));
/// ```
#[must_use]
pub fn guarded_samples() -> GuardedSamples {
    // Freed samples are read first, because none is freed before it was made.
    let freed = FREED_SO_FAR.get();
    let made = MADE.get();
    GuardedSamples { made, live: made.saturating_sub(freed), failed: FAILED.get() }
}
