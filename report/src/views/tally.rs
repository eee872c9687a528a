//! Sums of samples, and how far they may be from the truth.
//!
//! Variances of different stacks and sizes are added. The standard error is the square root. Of
//! samples whose class has an exact count, the variances are added by class: if they are `v` of the
//! class's `V`, the variance is `v - v² / V`, because the rest of the class is known as well
//! ([`crate::calibration`]). Blocks of which no sample was taken may be anywhere, so two samples
//! more are assumed, one of them among these.

use crate::profile::{ClassErrors, Counts, Profile, Sample};
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
    classes: Vec<Part>,
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

/// Some samples of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    class: usize,
    kind: Kind,
    /// All samples of the class.
    all: ClassErrors,
    /// The sum of their variances, and those of variances times sizes and squares of sizes.
    sums: [f64; 3],
}

impl Tally {
    /// The numbers of one sample of a profile.
    pub(crate) fn of(sample: &Sample, profile: &Profile) -> Tally {
        let mut tally = Tally { counts: sample.counts, ..Tally::default() };
        for kind in Kind::ALL {
            if let Some(step) = sample.unsampled {
                tally.variances[kind as usize] =
                    Variances::of_unsampled(kind.blocks(&sample.counts), step);
                continue;
            }
            let before = sample.counts - sample.correction;
            let estimate = variance::of(before, kind, profile.period);
            tally.samples[kind as usize] = estimate.samples;
            let class = sample.class.map(|class| (class, profile.classes[class]));
            match class.filter(|(_, all)| all.variance[kind as usize] > 0.0) {
                Some((class, all)) => tally.classes.push(Part::new(class, kind, all, estimate)),
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
        for part in &other.classes {
            let is_same = |known: &&mut Part| (known.class, known.kind) == (part.class, part.kind);
            match self.classes.iter_mut().find(is_same) {
                Some(known) => known.add(part),
                None => self.classes.push(*part),
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
        let parts = self.classes.iter().filter(|part| part.kind == kind);
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

    /// Of blocks that were counted, whose sizes may differ by `step` bytes. All may have the same
    /// one.
    fn of_unsampled(blocks: i64, step: u64) -> Variances {
        let most = blocks as f64 * step as f64;
        Variances { blocks: 0.0, bytes: most * most / 12.0 }
    }

    fn add(&mut self, other: Variances) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

impl Part {
    fn new(class: usize, kind: Kind, all: ClassErrors, estimate: Estimate) -> Part {
        let Estimate { size, variance, .. } = estimate;
        Part { class, kind, all, sums: [variance, size * variance, size * size * variance] }
    }

    fn add(&mut self, other: &Part) {
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, other)| *sum += other);
    }

    fn variance(&self, is_whole: bool) -> Variances {
        let [sum, by_size, by_square] = self.sums;
        if sum <= 0.0 {
            return Variances::default();
        }
        let all = self.all.variance[self.kind as usize];
        let one = if is_whole { 0.0 } else { all / self.all.samples[self.kind as usize].max(1.0) };
        let blocks = (sum + one) * ((all - sum).max(0.0) + one) / (all + 2.0 * one);
        // What the sizes differ by within the class is not known better than before.
        let size = by_size / sum;
        let of_sizes = (by_square - by_size * size).max(0.0);
        Variances { blocks, bytes: of_sizes + size * size * blocks }
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
