//! How long the use of memory has not fallen far.

use crate::middle::handed_out;
use crate::middle::passes::decay_pass;

/// A background thread that runs for a time ends when memory has not fallen far in so many decay
/// times.
const PERIODS: u32 = 2;

/// The decay times in which the use of memory has not fallen far, as seen by one thread.
pub(super) struct Quiet {
    periods: u32,
    /// When the present decay time began.
    began: u64,
}

impl Quiet {
    /// Begins at `now`, in milliseconds.
    pub(super) fn since(now: u64) -> Quiet {
        Quiet { periods: 0, began: now }
    }

    /// Notes the time. Returns whether the use of memory has not fallen far for long.
    pub(super) fn note(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.began) >= decay_pass::decay_time() {
            self.began = now;
            handed_out::begin_period();
            self.periods = if handed_out::has_fallen() { 0 } else { self.periods + 1 };
        }
        self.periods >= PERIODS
    }
}
