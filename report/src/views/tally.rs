//! Sums of samples, and how far they may be from the truth.
//!
//! Variances of different stacks and sizes are added. The standard error is the square root. Of
//! samples whose class has an exact count, the variances are added by pool: if they are `v` of the
//! pool's `V`, in bytes of the classes, the variance is `v - v² / V`, because the rest of the pool
//! is known as well ([`crate::calibration`]). Blocks of which no sample was taken may be anywhere,
//! so two samples more are assumed, one of them among these. What does not go with these bytes, as
//! the number of blocks where their sizes differ, is not known better than before.

use crate::profile::{Counts, Pool, Profile, Sample};
use crate::variance::{self, Estimate, Kind};
use crate::views::value::Value;

/// A sum of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// The numbers; estimates if the profile is sampled.
    pub(crate) counts: Counts,
    /// The variances of blocks and bytes, for each [`Kind`].
    variances: [Variances; 2],
    /// Samples of classes with exact counts.
    pools: Vec<Part>,
    /// Whether these are all samples of a profile.
    is_whole: bool,
    /// The samples among the live blocks, and among all allocations.
    samples: [f64; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Variances {
    blocks: f64,
    bytes: f64,
}

/// Some samples of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    pool: usize,
    kind: Kind,
    /// All samples of the pool.
    all: Pool,
    sums: Sums,
}

/// Sums of variances and covariances. A unit is a byte of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sums {
    units: f64,
    blocks: f64,
    blocks_and_units: f64,
    bytes: f64,
    bytes_and_units: f64,
}

impl Tally {
    /// The numbers of one sample of a profile.
    pub(crate) fn of(sample: &Sample, profile: &Profile) -> Tally {
        let mut tally = Tally { counts: sample.counts, ..Tally::default() };
        for kind in Kind::ALL {
            let before = sample.counts - sample.correction;
            let estimate = match sample.class {
                Some(class) => {
                    let size = profile.classes[class].size;
                    variance::of_sample(before, kind, size, profile.period)
                }
                None => variance::of(before, kind, profile.period),
            };
            tally.samples[kind as usize] = estimate.samples;
            let part = sample.class.map(|class| Part::new(profile, class, kind, estimate));
            match part.filter(|part| part.all.variance > 0.0) {
                Some(part) => tally.pools.push(part),
                None if sample.size.is_none() && profile.is_sampled() => {
                    let bytes = kind.bytes(&before) as f64;
                    tally.variances[kind as usize] = Variances::of_any_sizes(bytes, profile.period);
                }
                None => tally.variances[kind as usize] = Variances::of(estimate),
            }
        }
        tally
    }

    /// The sum of all samples of a profile.
    pub(crate) fn whole(profile: &Profile) -> Tally {
        let mut whole = Tally::default();
        profile.samples.iter().for_each(|sample| whole.add(&Tally::of(sample, profile)));
        whole.is_whole = true;
        whole
    }

    /// Adds other samples of the same profile.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.counts += other.counts;
        self.add_variances(other.variances);
        for part in &other.pools {
            let is_same = |known: &&mut Part| (known.pool, known.kind) == (part.pool, part.kind);
            match self.pools.iter_mut().find(is_same) {
                Some(known) => known.sums.add(part.sums),
                None => self.pools.push(*part),
            }
        }
        self.samples = [0, 1].map(|at| self.samples[at] + other.samples[at]);
    }

    /// Takes away the numbers of another profile. The errors are added.
    pub(crate) fn subtract(&mut self, other: &Tally) {
        self.counts = self.counts - other.counts;
        self.add_variances(Kind::ALL.map(|kind| other.variance(kind)));
        self.samples = [0, 1].map(|at| self.samples[at] + other.samples[at]);
    }

    fn add_variances(&mut self, others: [Variances; 2]) {
        self.variances.iter_mut().zip(others).for_each(|(sum, other)| sum.add(other));
    }

    fn variance(&self, kind: Kind) -> Variances {
        let parts = self.pools.iter().filter(|part| part.kind == kind);
        parts.fold(self.variances[kind as usize], |mut sum, part| {
            sum.add(part.variance(self.is_whole));
            sum
        })
    }

    /// The number.
    pub(crate) fn value(&self, value: Value) -> i64 {
        value.of(&self.counts)
    }

    /// The standard error of a number, at most. Where there are many samples, about two of three
    /// true numbers lie within it. Infinity: it is not known.
    pub(crate) fn error(&self, value: Value) -> f64 {
        let variance = match value {
            Value::LiveBytes => self.variance(Kind::Live).bytes,
            Value::LiveBlocks => self.variance(Kind::Live).blocks,
            Value::AllocatedBytes => self.variance(Kind::Allocated).bytes,
            Value::Allocations => self.variance(Kind::Allocated).blocks,
        };
        variance.sqrt()
    }

    /// The number of samples behind a number.
    pub(crate) fn samples(&self, value: Value) -> i64 {
        self.samples[usize::from(!value.is_live())].round() as i64
    }
}

/// Returns an error without a fraction, or `None` if it is not known.
pub(crate) fn known(error: f64) -> Option<i64> {
    error.is_finite().then(|| error.round() as i64)
}

impl Variances {
    fn of(estimate: Estimate) -> Variances {
        let bytes = estimate.size * estimate.size * estimate.variance;
        Variances { blocks: estimate.variance, bytes }
    }

    /// Of blocks whose sizes the file does not have, which may differ. The variance of `n` blocks
    /// of `s` bytes is `n / (e^(s / R) - 1)`, and `s²` times as much for the bytes: less than `R`
    /// times their `n s` bytes, whatever the sizes are. That of the blocks has no such bound.
    fn of_any_sizes(bytes: f64, period: u64) -> Variances {
        if bytes <= 0.0 {
            return Variances::default();
        }
        Variances { blocks: f64::INFINITY, bytes: bytes * period as f64 }
    }

    fn add(&mut self, other: Variances) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

impl Part {
    fn new(profile: &Profile, class: usize, kind: Kind, estimate: Estimate) -> Part {
        let class = profile.classes[class];
        let pool = class.pools[kind as usize];
        let all = profile.pools[kind as usize][pool];
        let Estimate { size, variance, .. } = estimate;
        let [by_unit, by_size] = [class.size * variance, size * variance];
        let sums = Sums {
            units: class.size * by_unit,
            blocks: variance,
            blocks_and_units: by_unit,
            bytes: size * by_size,
            bytes_and_units: size * by_unit,
        };
        Part { pool, kind, all, sums }
    }

    fn variance(&self, is_whole: bool) -> Variances {
        let Sums { units, blocks, blocks_and_units, bytes, bytes_and_units } = self.sums;
        if units <= 0.0 {
            return Variances::default();
        }
        let all = self.all.variance;
        let one = if is_whole { 0.0 } else { all / self.all.samples.max(1.0) };
        let left = (units + one) * ((all - units).max(0.0) + one) / (all + 2.0 * one);
        let of = |own: f64, shared: f64| {
            let apart = own - shared * shared / units;
            // What is less is an error of the computation.
            let apart = if apart > 1e-9 * own { apart } else { 0.0 };
            apart + (shared / units).powi(2) * left
        };
        let least = if is_whole { self.all.spread } else { 0.0 };
        let blocks = of(blocks, blocks_and_units).max(least);
        Variances { blocks, bytes: of(bytes, bytes_and_units) }
    }
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.units += other.units;
        self.blocks += other.blocks;
        self.blocks_and_units += other.blocks_and_units;
        self.bytes += other.bytes;
        self.bytes_and_units += other.bytes_and_units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shares;

    fn tally(live: i64, live_bytes: i64, period: u64) -> Tally {
        let counts = Counts { allocs: 2 * live, alloc_bytes: 2 * live_bytes, live, live_bytes };
        let sample = Sample { counts, size: Some(1), ..Sample::default() };
        Tally::of(&sample, &Profile { period, ..Profile::default() })
    }

    /// 10,000 blocks of 64 bytes and 10 of a mebibyte: all errors come from the small ones.
    #[test]
    fn blocks_of_unknown_sizes_have_a_bound_for_their_bytes() {
        let (live, live_bytes) = (10_010, 640_000 + (10 << 20));
        let counts = Counts { live, live_bytes, ..Counts::default() };
        let mixed = Sample { counts, ..Sample::default() };
        let profile = Profile { period: 1024, ..Profile::default() };
        let tally = Tally::of(&mixed, &profile);
        let bound = (1024.0 * live_bytes as f64).sqrt();
        assert_eq!(tally.error(Value::LiveBytes), bound);
        assert_eq!(tally.error(Value::LiveBlocks), f64::INFINITY);
        assert_eq!(tally.error(Value::Allocations), 0.0);
        let chance = variance::chance(64.0, 1024);
        let truth = 64.0 * (10_000.0 * (1.0 - chance) / chance).sqrt();
        assert!(0.0 < truth && truth < bound, "{truth} {bound}");
        let counted = Profile { period: 1, ..Profile::default() };
        assert_eq!(Tally::of(&mixed, &counted).error(Value::LiveBlocks), 0.0);
    }

    #[test]
    fn counted_allocations_have_no_error() {
        let tally = tally(10, 1000, 1);
        assert_eq!(tally.error(Value::LiveBytes), 0.0);
        assert_eq!((tally.samples(Value::LiveBlocks), tally.samples(Value::Allocations)), (10, 20));
        assert_eq!(tally.value(Value::AllocatedBytes), 2000);
    }

    #[test]
    fn errors_are_those_of_the_binomial_distribution() {
        // p = 1 - e^-1 = 0.63212; 100 blocks: 63 samples, variance 100 * 0.36788 / 0.63212 = 58.2.
        let tally = tally(100, 100_000, 1000);
        assert!((tally.error(Value::LiveBlocks) - 7.629).abs() < 0.001);
        assert!((tally.error(Value::LiveBytes) - 7629.0).abs() < 1.0);
        assert!((tally.error(Value::Allocations) - 10.789).abs() < 0.001);
        assert_eq!((tally.samples(Value::LiveBytes), tally.samples(Value::Allocations)), (63, 126));
    }

    #[test]
    fn variances_are_added() {
        let one = tally(100, 100_000, 1000);
        let mut two = one.clone();
        two.add(&one);
        assert!(
            (two.error(Value::LiveBlocks) / one.error(Value::LiveBlocks)
                - std::f64::consts::SQRT_2)
                .abs()
                < 1e-5
        );
        let mut none = one.clone();
        none.subtract(&one);
        assert_eq!((none.counts, none.samples(Value::LiveBytes)), (Counts::default(), 126));
        assert_eq!(none.error(Value::LiveBlocks), two.error(Value::LiveBlocks));
    }

    /// The mean of many simulated profiles differs from the truth as the formula says.
    #[test]
    fn simulated_samples_scatter_as_computed() {
        let (blocks, size, period) = (2000, 512.0f64, 4096u64);
        let chance = -f64::exp_m1(-size / period as f64);
        let mut random = shares(88_172_645_463_325_252);
        let (mut inside, rounds) = (0, 1000);
        for _ in 0..rounds {
            let samples = (0..blocks).filter(|_| random() < chance).count() as f64;
            let count = (samples / chance).round() as i64;
            let tally = tally(count, count * size as i64, period);
            let is_inside = (count - blocks).abs() as f64 <= tally.error(Value::LiveBlocks);
            inside += i32::from(is_inside);
        }
        assert!((640..720).contains(&inside), "{inside} of {rounds}");
    }
}
