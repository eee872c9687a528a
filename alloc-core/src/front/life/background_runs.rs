//! Counts of the background thread's passes.

use crate::ground::counters::SharedCount;

/// Passes made by background threads.
pub(super) static RUNS: SharedCount = SharedCount::new();
/// Milliseconds slept between them.
pub(super) static SLEPT: SharedCount = SharedCount::new();

/// Returns the number of passes, and the mean time between two of them in nanoseconds.
pub(crate) fn runs() -> (u64, u64) {
    let runs = RUNS.get();
    (runs, SLEPT.get().saturating_mul(1_000_000).checked_div(runs).unwrap_or(0))
}
