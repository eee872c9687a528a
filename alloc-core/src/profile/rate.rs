//! How often samples are taken: on average one in 2^lg bytes that are allocated.
//!
//! Every byte has the same chance, whatever came before. So the bytes up to the next sample are
//! drawn from a geometric distribution, anew for each bin of each cache, and for the large blocks
//! of each cache. An allocation of `n` bytes is sampled with the chance 1 - e^(-n / 2^lg).

use crate::ground::geometric;
use crate::ground::shared_random::SharedRandom;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{self, Relaxed};

static LG: AtomicU32 = AtomicU32::new(19);
/// How often the rate was set. What was drawn at another rate does not count any more.
static TIMES_SET: AtomicU32 = AtomicU32::new(0);
static RANDOM: SharedRandom = SharedRandom::new();

/// Sets how many bytes there are between two samples on average, as log2.
pub(crate) fn set(lg: u32) {
    LG.store(lg.min(63), Relaxed);
    // Release: pairs with the Acquire in `times_set`.
    TIMES_SET.fetch_add(1, Ordering::Release);
}

/// Returns how often the rate was set. What is drawn after that is of this rate, or a newer one.
#[inline]
pub(crate) fn times_set() -> u32 {
    // Acquire: pairs with the Release in `set`, which has set the rate before.
    TIMES_SET.load(Ordering::Acquire)
}

/// Returns log2 of the bytes between two samples on average.
pub(crate) fn lg() -> u32 {
    LG.load(Relaxed)
}

/// Sets the first state of the random numbers. Called once, at start.
pub(super) fn seed(seed: u64) {
    RANDOM.seed(seed);
}

/// Returns the number of bytes up to and with the next one that is sampled.
pub(crate) fn bytes() -> usize {
    let lg = lg();
    if lg == 0 {
        return 1;
    }
    let between = geometric::exponential(RANDOM.draws()) >> (u64::BITS - lg);
    usize::try_from(between).unwrap_or(usize::MAX).saturating_add(1)
}

/// Returns the number of requests for `size` bytes up to and with the next one that is sampled.
pub(crate) fn requests(size: usize) -> usize {
    bytes().div_ceil(size.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed is fixed, so the test draws the same numbers each time.
    #[test]
    fn the_share_of_sampled_requests_is_that_of_their_bytes() {
        let before = lg();
        set(19);
        for size in [16, 1000, 32 << 10, 1 << 20] {
            seed(1);
            let samples = 20_000;
            let drawn: usize = (0..samples).map(|_| requests(size)).sum();
            let share = samples as f64 / drawn as f64;
            let expected = -(-(size as f64) / 524_288.0).exp_m1();
            assert!((share / expected - 1.0).abs() < 0.03, "{share} of {size}: {expected}");
        }
        set(0);
        assert!((0..100).all(|_| requests(1) == 1 && bytes() == 1), "each byte");
        set(before);
    }
}
