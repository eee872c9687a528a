//! Random numbers of trials from one success to the next (a geometric distribution).

/// Binary digits of the longest gap that is drawn.
pub(crate) const LONGEST: usize = 62;

/// Returns the number of trials from one success to the next, if a trial fails with the chance
/// `fails` in units of 2^-64. It is at least 1.
///
/// The binary digits of a geometric variable minus 1 are independent of each other. So each digit
/// is drawn by itself. See [`chances`].
pub(crate) fn gap(fails: u64, draw: impl FnMut() -> u32) -> usize {
    gap_of(chances(fails), draw)
}

/// Returns a gap whose digits have these [`chances`].
pub(crate) fn gap_of(chances: impl Iterator<Item = u32>, mut draw: impl FnMut() -> u32) -> usize {
    let digits = chances.enumerate();
    1 + digits.map(|(digit, chance)| usize::from(draw() < chance) << digit).sum::<usize>()
}

/// Returns the chance of each binary digit of a gap minus 1 to be set, in units of 2^-32, the least
/// digit first. Digits above these are never set.
///
/// A gap minus 1 is n with the chance (1 - q) q^n, where q is the chance of a failure. So the digit
/// of value v is set with the chance q^v / (1 + q^v).
pub(crate) fn chances(fails: u64) -> impl Iterator<Item = u32> {
    let mut power = fails;
    (0..LONGEST).map_while(move |_| {
        let half = power >> 1;
        let chance = half / ((half | 1 << 63) >> 32);
        power = ((u128::from(power) * u128::from(power)) >> 64) as u64;
        (chance > 0).then_some(chance as u32)
    })
}

/// Returns e^(-2^-lg) in units of 2^-64, the chance that a Poisson process with one event in 2^lg
/// units has none in one unit. `lg` is at most 63.
pub(crate) fn none_in_one(lg: u32) -> u64 {
    // 1 - x + x^2/2 - x^3/6 …, in units of 2^-64, where x = 2^-lg.
    let (mut sum, mut term) = (1i128 << 64, 1i128 << 64);
    for n in 1..=24 {
        term = -(term >> lg) / n;
        sum += term;
    }
    u64::try_from(sum).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: [u64; 10] = [1, 2, 3, 7, 10, 100, 1000, 4096, 1_000_000, 1 << 32];

    /// The chance of a failure at which the mean gap is `mean`.
    fn fails(mean: u64) -> u64 {
        if mean == 1 { 0 } else { (u64::MAX / mean).wrapping_neg() }
    }

    /// The chance of a digit, given in units of 2^-32.
    fn share(chance: u32) -> f64 {
        f64::from(chance) / 4_294_967_296.0
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected.abs() * 1e-6
    }

    /// Computed from the chances alone: nothing is drawn.
    #[test]
    fn the_mean_gap_is_what_was_asked_for_and_each_trial_has_the_same_chance() {
        for mean in MEANS {
            let digits = || (0..).map(|digit| 1usize << digit).zip(chances(fails(mean)));
            let mean_gap: f64 = 1.0 + digits().map(|(v, p)| v as f64 * share(p)).sum::<f64>();
            assert!(is_near(mean_gap, mean as f64), "{mean_gap} for {mean}");
            // The variance of a geometric variable, so that other distributions with that mean
            // fail.
            let of_digit = |(v, p): (usize, u32)| (v as f64).powi(2) * share(p) * (1.0 - share(p));
            let variance: f64 = digits().map(of_digit).sum();
            let expected = mean as f64 * (mean as f64 - 1.0);
            assert!(is_near(variance, expected), "{variance} for {mean}");
            let at_once: f64 = digits().map(|(_, p)| 1.0 - share(p)).product();
            assert!(is_near(at_once, 1.0 / mean as f64), "{at_once} for {mean}");
        }
    }

    #[test]
    fn a_trial_that_never_fails_leaves_no_gap() {
        assert_eq!(chances(0).count(), 0);
        assert_eq!([gap(0, || 0), gap(0, || u32::MAX)], [1; 2]);
    }

    #[test]
    fn digits_add_up_to_the_gap() {
        let (first, rest) = (0, u32::MAX);
        let mut draws = [rest, first, first, rest].into_iter();
        assert_eq!(gap(fails(1000), || draws.next().unwrap_or(rest)), 1 + 2 + 4);
        assert_eq!(gap(fails(1000), || u32::MAX), 1);
    }

    #[test]
    fn the_chance_of_no_event_is_that_of_a_poisson_process() {
        for lg in 0..=63 {
            let expected = (-(0.5f64.powi(lg))).exp();
            let got = none_in_one(lg as u32) as f64 / 18_446_744_073_709_551_616.0;
            assert!((got - expected).abs() < 1e-15, "{got} for {lg}");
            let one = none_in_one(lg as u32).wrapping_neg() as f64 / 18_446_744_073_709_551_616.0;
            let event = -(-(0.5f64.powi(lg))).exp_m1();
            assert!((one / event - 1.0).abs() < 0.3 / f64::from(64 - lg).exp2() + 1e-9, "{lg}");
        }
    }
}
