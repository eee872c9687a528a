//! How many requests there are from one sample to the next: drawn at random, geometrically about
//! `opt.guarded_sample`, so that each request has the same chance.

use crate::ground::options;
use crate::ground::os;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One generator for all threads: two that draw at a time may draw the same, which harms nobody.
static STATE: AtomicU64 = AtomicU64::new(1);

/// Seeds the generator. Once, at start.
pub(crate) fn prepare() {
    STATE.store(os::random() | 1, Relaxed);
}

/// 32 random bits.
pub(crate) fn draw() -> u32 {
    let next = STATE.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005);
    STATE.store(next, Relaxed);
    (next >> 32) as u32
}

/// Requests from one sample to the next: geometric, so that each request has the same chance of one
/// in `mean`, whatever came before.
///
/// The binary digits of what a geometric variable is above 1 are independent of each other, so each
/// is drawn by itself. See [`digits`].
fn gap(mean: usize, mut draw: impl FnMut() -> u32) -> usize {
    let drawn = digits(mean).map(|(value, chance)| if draw() < chance { value } else { 0 });
    1 + drawn.sum::<usize>()
}

/// The binary digits of a gap's excess over 1: what each is worth, and its chance to be set in
/// 2^-32.
///
/// A request gets no sample by the chance q = 1 - 1 / `mean`, and the excess is n by the chance
/// (1 - q) q^n. So the digit that is worth v is set by the chance q^v / (1 + q^v).
fn digits(mean: usize) -> impl Iterator<Item = (usize, u32)> {
    // q^v in 2^-64; with a mean of 1 it is 0.
    let mean = (mean as u64).clamp(1, 1 << 32);
    let mut power = if mean == 1 { 0 } else { (u64::MAX / mean).wrapping_neg() };
    (0..LONGEST).map_while(move |digit| {
        let half = power >> 1;
        let chance = half / ((half | 1 << 63) >> 32);
        power = ((u128::from(power) * u128::from(power)) >> 64) as u64;
        (chance > 0).then_some((1 << digit, chance as u32))
    })
}

/// Binary digits of the longest gap: that of the largest mean, which is 2^32, has a chance below
/// 2^-32 to be longer.
const LONGEST: u32 = 37;

/// The next number of requests.
pub(crate) fn next() -> usize {
    gap(options::current().guarded_sample, draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [usize; 10] = [1, 2, 3, 7, 10, 100, 1000, 4096, 1_000_000, 1 << 32];

    /// Of the chance of a digit, in 2^-32.
    fn share(chance: u32) -> f64 {
        f64::from(chance) / 4_294_967_296.0
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected.abs() * 1e-6
    }

    /// On paper, from the chances alone: nothing is drawn.
    #[test]
    fn the_mean_gap_is_what_was_asked_for_and_each_request_has_the_same_chance() {
        for mean in MEANS {
            let mean_gap: f64 = 1.0 + digits(mean).map(|(v, p)| v as f64 * share(p)).sum::<f64>();
            assert!(is_near(mean_gap, mean as f64), "{mean_gap} for {mean}");
            // Of a geometric variable; so it is none of another kind with that mean.
            let of_digit = |(v, p): (usize, u32)| (v as f64).powi(2) * share(p) * (1.0 - share(p));
            let variance: f64 = digits(mean).map(of_digit).sum();
            let expected = mean as f64 * (mean as f64 - 1.0);
            assert!(is_near(variance, expected), "{variance} for {mean}");
            let at_once: f64 = digits(mean).map(|(_, p)| 1.0 - share(p)).product();
            assert!(is_near(at_once, 1.0 / mean as f64), "{at_once} for {mean}");
        }
    }

    #[test]
    fn a_mean_of_one_leaves_no_request_out() {
        assert_eq!(digits(1).count(), 0);
        assert_eq!([gap(1, || 0), gap(1, || u32::MAX), gap(0, || 0)], [1; 3]);
    }

    #[test]
    fn digits_add_up_to_the_gap() {
        let (first, rest) = (0, u32::MAX);
        let mut draws = [rest, first, first, rest].into_iter();
        assert_eq!(gap(1000, || draws.next().unwrap_or(rest)), 1 + 2 + 4);
        assert_eq!(gap(1000, || u32::MAX), 1);
        assert_eq!(gap(usize::MAX, || 0), 1 << LONGEST);
    }
}
