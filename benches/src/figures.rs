//! Medians, ratios, and their noise.

/// A median, with the smallest and the largest of its numbers and their noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Half the distance between the quartiles: about half of the numbers lie no further from the
    /// median.
    pub(crate) noise: f64,
}

impl Figure {
    /// The figure of some numbers; `None` if there are none.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let noise = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 2.0;
        Some(Self { median: quantile(&sorted, 0.5), least, most, noise })
    }

    /// The figure of the ratios between runs of the same round, so that a slow minute of the
    /// machine cancels.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        Self::of(ours.iter().zip(theirs).filter(|(_, t)| **t > 0.0).map(|(o, t)| o / t))
    }
}

/// A quantile of sorted numbers, interpolated between its two neighbours.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The geometric mean of positive numbers.
pub(crate) fn geometric_mean(numbers: &[f64]) -> Option<f64> {
    if numbers.is_empty() {
        return None;
    }
    let sum: f64 = numbers.iter().map(|number| number.ln()).sum();
    Some((sum / numbers.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::{Figure, geometric_mean};

    #[test]
    fn medians_of_odd_and_even_counts() {
        let odd = Figure::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(odd, Figure { median: 2.0, least: 1.0, most: 3.0, noise: 0.5 });
        assert_eq!(Figure::of([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Figure::of([]), None);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The second round is twice as slow for both, which does not change the ratio.
        let ratio = Figure::of_ratios(&[1.0, 2.0], &[2.0, 4.0]).unwrap();
        assert_eq!((ratio.least, ratio.most), (0.5, 0.5));
    }

    #[test]
    fn geometric_mean_of_two_and_eight() {
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    }
}
