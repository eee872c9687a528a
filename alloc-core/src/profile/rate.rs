//! How often samples are taken: on average one in 2^lg bytes that are allocated.
//!
//! Every byte has the same chance, whatever came before. So the bytes up to the next sample are
//! drawn from a geometric distribution, anew for each bin of each cache, and for the large blocks
//! of each cache. An allocation of `n` bytes is sampled with the chance 1 - e^(-n / 2^lg).

use crate::ground::geometric::{self, LONGEST};
use core::iter;
use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// What a state of the generator splitmix64 differs by from the next one.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

static LG: AtomicU32 = AtomicU32::new(19);
/// How often the rate was set. What was drawn at another rate does not count any more.
static TIMES_SET: AtomicU32 = AtomicU32::new(0);
/// The chances of the digits of a gap; 0 behind the last one.
static CHANCES: [AtomicU32; LONGEST] = [const { AtomicU32::new(0) }; LONGEST];
/// The state of the random numbers.
static RANDOM: AtomicU64 = AtomicU64::new(0);

/// Sets how many bytes there are between two samples on average, as log2.
pub(crate) fn set(lg: u32) {
    let lg = lg.min(63);
    let fails = if lg == 0 { 0 } else { geometric::none_in_one(lg) };
    let chances = geometric::chances(fails).chain(iter::repeat(0));
    CHANCES.iter().zip(chances).for_each(|(place, chance)| place.store(chance, Relaxed));
    LG.store(lg, Relaxed);
    // Release: pairs with the Acquire in `times_set`.
    TIMES_SET.fetch_add(1, Ordering::Release);
}

/// Returns how often the rate was set. What is drawn after that is of this rate, or a newer one.
#[inline]
pub(crate) fn times_set() -> u32 {
    // Acquire: pairs with the Release in `set`, which has set the chances before.
    TIMES_SET.load(Ordering::Acquire)
}

/// Returns log2 of the bytes between two samples on average.
pub(crate) fn lg() -> u32 {
    LG.load(Relaxed)
}

/// Sets the first state of the random numbers. Called once, at start.
pub(super) fn seed(seed: u64) {
    RANDOM.store(seed, Relaxed);
}

/// Returns 32 random bits of a state of the generator.
fn mixed(state: u64) -> u32 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as u32
}

/// Returns the number of bytes up to and with the next one that is sampled.
pub(crate) fn bytes() -> usize {
    // Takes the states for all digits at once, because threads share them.
    let mut state = RANDOM.fetch_add(STEP.wrapping_mul(LONGEST as u64), Relaxed);
    let draw = || {
        state = state.wrapping_add(STEP);
        mixed(state)
    };
    let chances = CHANCES.iter().map(|chance| chance.load(Relaxed));
    geometric::gap_of(chances.take_while(|chance| *chance > 0), draw)
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
