//! Random numbers of trials from one success to the next (a geometric distribution).
//!
//! They are computed by integers, because a program may have asked for a signal at each inexact
//! operation on floating-point numbers (`feenableexcept`).

use core::num::NonZero;

/// Returns an exponential variable whose mean is 1, in units of 2^-64. `draw` returns 64 random
/// bits.
///
/// It draws numbers for as long as each is less than the one before. If an odd number of them were,
/// the first is the part after the point; otherwise it begins again, and the whole part is one
/// more (von Neumann 1951, "Various techniques used in connection with random digits"). That takes
/// 4.3 draws on average, and has no error but the unit.
pub(crate) fn exponential(mut draw: impl FnMut() -> u64) -> u128 {
    let mut whole = 0;
    loop {
        let first = draw();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = draw();
            if next >= last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            return whole << 64 | u128::from(first);
        }
        whole += 1;
    }
}

/// Returns the number of trials from one success to the next, at least 1, where one in `mean`
/// trials succeeds. A mean above 2^32 counts as 2^32.
pub(crate) fn gap(mean: usize, draw: impl FnMut() -> u64) -> usize {
    let mean = NonZero::new((mean as u64).min(1 << 32));
    let Some(mean) = mean.filter(|mean| mean.get() > 1) else { return 1 };
    // A Poisson process with this many events in a trial has one or more with the chance 1 / mean.
    let events = u128::from(events_in_a_trial(mean));
    let fails = exponential(draw).checked_div(events).unwrap_or(0);
    usize::try_from(fails).unwrap_or(usize::MAX).saturating_add(1)
}

/// Returns -ln(1 - 1 / mean) in units of 2^-64. `mean` is 2 to 2^32.
fn events_in_a_trial(mean: NonZero<u64>) -> u64 {
    // 1/m + 1/2m^2 + 1/3m^3 …
    let (mut sum, mut power, mut n) = (0, u64::MAX / mean, NonZero::<u64>::MIN);
    while power >= n.get() {
        sum += power / n;
        power /= mean;
        n = n.saturating_add(1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::shared_random::SharedRandom;

    const UNITS: f64 = 18_446_744_073_709_551_616.0;

    /// Draws many numbers from a fixed seed, the same ones each time.
    fn drawn<T>(many: usize, draw: impl Fn(&SharedRandom) -> T) -> Vec<T> {
        let random = SharedRandom::new();
        random.seed(1);
        (0..many).map(|_| draw(&random)).collect()
    }

    /// The mean, and the share of what is above the mean, above twice the mean and so on.
    #[test]
    fn exponential_variables_are_distributed_as_such() {
        let many = 200_000;
        let numbers = drawn(many, |random| exponential(random.draws()) as f64 / UNITS);
        let mean = numbers.iter().sum::<f64>() / many as f64;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        for bound in [0.001, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0] {
            let above = numbers.iter().filter(|number| **number > bound).count() as f64;
            let expected = many as f64 * (-bound).exp();
            let deviation = (expected * (1.0 - (-bound).exp())).sqrt();
            assert!((above - expected).abs() < 4.0 * deviation, "{bound}: {above} {expected}");
        }
    }

    #[test]
    fn a_run_of_falling_numbers_is_taken_if_its_length_is_odd() {
        let variable = |numbers: &[u64]| {
            let mut left = numbers.iter().copied();
            let variable = exponential(|| left.next().expect("a number"));
            assert_eq!(left.next(), None, "{numbers:?}");
            variable
        };
        assert_eq!(variable(&[7, 7]), 7);
        assert_eq!(variable(&[9, 8, 5, 6]), 9);
        assert_eq!(variable(&[9, 8, 8, 3, 4]), 1 << 64 | 3);
        assert_eq!(variable(&[9, 8, 9, 2, 1, 5, 0, 0]), 2 << 64);
    }

    #[test]
    fn each_trial_has_the_same_chance() {
        for mean in [2, 3, 10, 1000, 4096] {
            let many = 100_000;
            let gaps = drawn(many, |random| gap(mean, random.draws()));
            let share = many as f64 / gaps.iter().sum::<usize>() as f64;
            assert!((share * mean as f64 - 1.0).abs() < 0.02, "{share} for {mean}");
            let at_once = gaps.iter().filter(|gap| **gap == 1).count() as f64;
            let expected = many as f64 / mean as f64;
            assert!((at_once - expected).abs() < 4.0 * expected.sqrt(), "{at_once} for {mean}");
        }
    }

    #[test]
    fn a_trial_that_always_succeeds_leaves_no_gap() {
        assert_eq!([gap(0, || 9), gap(1, || 9)], [1; 2]);
        assert_eq!(gap(usize::MAX, || 1 << 63), gap(1 << 32, || 1 << 63));
    }

    #[test]
    fn the_events_in_a_trial_are_those_of_a_poisson_process() {
        for mean in [2, 3, 7, 10, 100, 4096, 1_000_000, 1 << 32] {
            let expected = -(-1.0 / mean as f64).ln_1p();
            let got = NonZero::new(mean).map_or(0, events_in_a_trial) as f64 / UNITS;
            assert!((got / expected - 1.0).abs() < 1e-9, "{got} for {mean}: {expected}");
        }
    }
}
