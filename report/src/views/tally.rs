//! Sums of samples, and how far they may be from the truth.
//!
//! A block of `s` bytes is sampled with the chance `p = 1 - e^(-s / R)`, where `R` is the mean
//! number of bytes between two samples. `k` samples of that size stand for `k / p` blocks. The
//! variance of this estimate is `k (1 - p) / p²`, that of its bytes `s²` times as much. Variances
//! of different stacks and sizes are added. The standard error is the square root.

use crate::profile::{Counts, Sample};
use crate::views::value::Value;

/// A sum of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// The numbers; estimates if the profile is sampled.
    pub(crate) counts: Counts,
    /// The variance of each number.
    variances: Variances,
    /// The samples among the live blocks, and among all allocations.
    samples: [f64; 2],
}

/// Variances of the members of [`Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Variances {
    allocs: f64,
    alloc_bytes: f64,
    live: f64,
    live_bytes: f64,
}

impl Tally {
    /// The numbers of one sample of a profile with this period.
    pub(crate) fn of(sample: &Sample, period: u64) -> Tally {
        let counts = sample.counts;
        let live = Estimate::new(counts.live, counts.live_bytes, period);
        let allocs = Estimate::new(counts.allocs, counts.alloc_bytes, period);
        Tally {
            counts,
            variances: Variances {
                allocs: allocs.variance,
                alloc_bytes: allocs.variance_of_bytes,
                live: live.variance,
                live_bytes: live.variance_of_bytes,
            },
            samples: [live.samples, allocs.samples],
        }
    }

    /// Adds other samples.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.counts += other.counts;
        self.add_errors(other);
    }

    /// Takes away the numbers of another profile. The errors are added.
    pub(crate) fn subtract(&mut self, other: &Tally) {
        self.counts = self.counts - other.counts;
        self.add_errors(other);
    }

    fn add_errors(&mut self, other: &Tally) {
        self.variances.allocs += other.variances.allocs;
        self.variances.alloc_bytes += other.variances.alloc_bytes;
        self.variances.live += other.variances.live;
        self.variances.live_bytes += other.variances.live_bytes;
        self.samples = [0, 1].map(|at| self.samples[at] + other.samples[at]);
    }

    /// The number.
    pub(crate) fn value(&self, value: Value) -> i64 {
        value.of(&self.counts)
    }

    /// The standard error of a number. Where there are many samples, about two of three true
    /// numbers lie within it.
    pub(crate) fn error(&self, value: Value) -> f64 {
        let variance = match value {
            Value::LiveBytes => self.variances.live_bytes,
            Value::LiveBlocks => self.variances.live,
            Value::AllocatedBytes => self.variances.alloc_bytes,
            Value::Allocations => self.variances.allocs,
        };
        variance.sqrt()
    }

    /// The number of samples behind a number.
    pub(crate) fn samples(&self, value: Value) -> i64 {
        self.samples[usize::from(!value.is_live())].round() as i64
    }
}

/// What is known about the samples of one size.
struct Estimate {
    samples: f64,
    variance: f64,
    variance_of_bytes: f64,
}

impl Estimate {
    fn new(count: i64, bytes: i64, period: u64) -> Estimate {
        let (count, bytes) = (count as f64, bytes as f64);
        if period <= 1 || count <= 0.0 {
            return Estimate { samples: count, variance: 0.0, variance_of_bytes: 0.0 };
        }
        let size = bytes / count;
        let chance = -f64::exp_m1(-size / period as f64);
        if chance <= 0.0 {
            return Estimate { samples: count, variance: 0.0, variance_of_bytes: 0.0 };
        }
        let variance = count * (1.0 - chance) / chance;
        let variance_of_bytes = size * size * variance;
        Estimate { samples: count * chance, variance, variance_of_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(live: i64, live_bytes: i64) -> Sample {
        let counts = Counts { allocs: 2 * live, alloc_bytes: 2 * live_bytes, live, live_bytes };
        Sample { counts, ..Sample::default() }
    }

    #[test]
    fn counted_allocations_have_no_error() {
        let tally = Tally::of(&sample(10, 1000), 1);
        assert_eq!(tally.error(Value::LiveBytes), 0.0);
        assert_eq!((tally.samples(Value::LiveBlocks), tally.samples(Value::Allocations)), (10, 20));
        assert_eq!(tally.value(Value::AllocatedBytes), 2000);
    }

    #[test]
    fn errors_are_those_of_the_binomial_distribution() {
        // p = 1 - e^-1 = 0.63212; 100 blocks: 63 samples, variance 100 * 0.36788 / 0.63212 = 58.2.
        let tally = Tally::of(&sample(100, 100_000), 1000);
        assert!((tally.error(Value::LiveBlocks) - 7.629).abs() < 0.001);
        assert!((tally.error(Value::LiveBytes) - 7629.0).abs() < 1.0);
        assert!((tally.error(Value::Allocations) - 10.789).abs() < 0.001);
        assert_eq!((tally.samples(Value::LiveBytes), tally.samples(Value::Allocations)), (63, 126));
    }

    #[test]
    fn variances_are_added() {
        let one = Tally::of(&sample(100, 100_000), 1000);
        let mut two = one;
        two.add(&one);
        assert!(
            (two.error(Value::LiveBlocks) / one.error(Value::LiveBlocks)
                - std::f64::consts::SQRT_2)
                .abs()
                < 1e-5
        );
        let mut none = one;
        none.subtract(&one);
        assert_eq!((none.counts, none.samples(Value::LiveBytes)), (Counts::default(), 126));
        assert_eq!(none.error(Value::LiveBlocks), two.error(Value::LiveBlocks));
    }

    /// The mean of many simulated profiles differs from the truth as the formula says.
    #[test]
    fn simulated_samples_scatter_as_computed() {
        let (blocks, size, period) = (2000, 512.0f64, 4096u64);
        let chance = -f64::exp_m1(-size / period as f64);
        let mut state = 88_172_645_463_325_252u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as f64 / u64::MAX as f64
        };
        let (mut inside, rounds) = (0, 1000);
        for _ in 0..rounds {
            let samples = (0..blocks).filter(|_| random() < chance).count() as f64;
            let count = (samples / chance).round() as i64;
            let tally = Tally::of(&sample(count, count * size as i64), period);
            let is_inside = (count - blocks).abs() as f64 <= tally.error(Value::LiveBlocks);
            inside += i32::from(is_inside);
        }
        assert!((640..720).contains(&inside), "{inside} of {rounds}");
    }
}
