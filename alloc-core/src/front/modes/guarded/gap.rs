//! The number of requests from one sample to the next. It is drawn at random, from a geometric
//! distribution whose mean is `opt.guarded_sample`, so that each request has the same chance.

use crate::ground::options;
use crate::ground::os;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One generator for all threads. Two threads that draw at a time may draw the same number, which
/// is harmless.
static STATE: AtomicU64 = AtomicU64::new(1);

/// Seeds the generator. Called once, at start.
pub(crate) fn prepare() {
    STATE.store(os::random() | 1, Relaxed);
}

/// Returns 32 random bits.
pub(crate) fn draw() -> u32 {
    let next = STATE.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005);
    STATE.store(next, Relaxed);
    (next >> 32) as u32
}

/// Returns the number of requests from one sample to the next. It is geometric, so that each
/// request has a chance of one in `mean`, whatever came before.
///
/// The binary digits of a geometric variable minus 1 are independent of each other. So each digit
/// is drawn by itself. See [`digits`].
fn gap(mean: usize, mut draw: impl FnMut() -> u32) -> usize {
    let drawn = digits(mean).map(|(value, chance)| if draw() < chance { value } else { 0 });
    1 + drawn.sum::<usize>()
}

/// Returns the binary digits of a gap minus 1: the value of each digit, and its chance to be set in
/// units of 2^-32.
///
/// A request gets no sample with the chance q = 1 - 1 / `mean`, and a gap minus 1 is n with the
/// chance (1 - q) q^n. So the digit of value v is set with the chance q^v / (1 + q^v).
fn digits(mean: usize) -> impl Iterator<Item = (usize, u32)> {
    // q^v in units of 2^-64. With a mean of 1 it is 0.
    let mean = (mean as u64).clamp(1, 1 << 32);
    let mut power = if mean == 1 { 0 } else { (u64::MAX / mean).wrapping_neg() };
    (0..LONGEST).map_while(move |digit| {
        let half = power >> 1;
        let chance = half / ((half | 1 << 63) >> 32);
        power = ((u128::from(power) * u128::from(power)) >> 64) as u64;
        (chance > 0).then_some((1 << digit, chance as u32))
    })
}

/// Binary digits of the longest gap. With the largest mean, which is 2^32, a gap is longer with a
/// chance below 2^-32.
const LONGEST: u32 = 37;

/// Returns the number of requests until the next sample.
pub(crate) fn next() -> usize {
    gap(options::current().guarded_sample, draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [usize; 10] = [1, 2, 3, 7, 10, 100, 1000, 4096, 1_000_000, 1 << 32];

    /// The chance of a digit, given in units of 2^-32.
    fn share(chance: u32) -> f64 {
        f64::from(chance) / 4_294_967_296.0
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected.abs() * 1e-6
    }

    /// Computed from the chances alone: nothing is drawn.
    #[test]
    fn the_mean_gap_is_what_was_asked_for_and_each_request_has_the_same_chance() {
        for mean in MEANS {
            let mean_gap: f64 = 1.0 + digits(mean).map(|(v, p)| v as f64 * share(p)).sum::<f64>();
            assert!(is_near(mean_gap, mean as f64), "{mean_gap} for {mean}");
            // The variance of a geometric variable, so that other distributions with that mean
            // fail.
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
