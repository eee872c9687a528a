//! Corrects estimates by the exact counts of each size class, which the allocator writes beside
//! its samples.
//!
//! Let `E` be what the samples of a class are estimated to stand for, and `T` the exact count. Each
//! estimate of the class is moved by its share of the class's variance `V`: an estimate of variance
//! `v` by `v / V * (T - E)`. Of all corrections that make the sum right this one leaves the least
//! variance. What is left of the variance `v` of some of the samples is `v - v² / V`.
//!
//! The counts are those of the same allocations only if sampling was on since the start. Where they
//! differ from the estimate by more than samples do, they are of other allocations: a large block
//! that is resized in place is a new one for the profiler, for example. Then nothing is moved.

use crate::profile::{ClassErrors, Counts, Profile, Sample};
use crate::variance::{self, Kind};

/// The most standard errors between an estimate and the count of the same allocations.
const FARTHEST: f64 = 4.0;

/// A size class: what was counted, and what the samples say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Class {
    /// The most bytes of a block.
    size: u64,
    /// The exact counts of blocks.
    exact: [i64; 2],
    /// The estimated ones.
    estimated: [f64; 2],
    errors: ClassErrors,
}

impl Class {
    /// Adds what a sample says.
    fn add(&mut self, sample: &Sample, period: u64) {
        for kind in Kind::ALL {
            let estimate = variance::of(sample.counts, kind, period);
            self.estimated[kind as usize] += kind.blocks(&sample.counts) as f64;
            self.errors.variance[kind as usize] += estimate.variance;
            self.errors.samples[kind as usize] += estimate.samples;
        }
    }

    /// How much the estimates are below the exact count.
    fn miss(&self, kind: Kind) -> f64 {
        self.exact[kind as usize] as f64 - self.estimated[kind as usize]
    }

    /// Returns whether the exact count is one of the same allocations.
    fn is_of_the_same(&self, kind: Kind) -> bool {
        // Estimates were rounded when they were written.
        let rounding = self.errors.samples[kind as usize];
        let farthest = FARTHEST * (self.errors.variance[kind as usize] + rounding).sqrt();
        self.miss(kind).abs() <= farthest
    }
}

/// Moves the estimates of a profile to the exact counts that it notes, if it does.
pub(crate) fn calibrate(profile: &mut Profile) {
    let is_whole = profile.comment("prof.since_start") == Some("1");
    if !is_whole || !profile.is_sampled() {
        return;
    }
    let period = profile.period;
    let notes = profile.comments.iter();
    let mut classes: Vec<Class> = notes.filter_map(|(name, note)| class(name, note)).collect();
    classes.sort_by_key(|class| class.size);
    for sample in &mut profile.samples {
        sample.class = class_of(sample, &classes);
        sample.class.into_iter().for_each(|at| classes[at].add(sample, period));
    }
    for class in &mut classes {
        for kind in Kind::ALL {
            if !class.is_of_the_same(kind) {
                class.errors.variance[kind as usize] = 0.0;
            }
        }
    }
    let mut carried = vec![[0.0; 2]; classes.len()];
    for sample in &mut profile.samples {
        let Some(at) = sample.class else { continue };
        let before = sample.counts;
        for kind in Kind::ALL {
            let carried = &mut carried[at][kind as usize];
            correct(&mut sample.counts, &classes[at], kind, period, carried);
        }
        sample.correction = sample.counts - before;
    }
    profile.classes = classes.into_iter().map(|class| class.errors).collect();
}

/// Reads a note on a class: the bytes of a block; blocks in use, and allocations.
fn class(name: &str, note: &str) -> Option<Class> {
    let number = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0);
    let size = number(name.strip_prefix("class.")?)? as u64;
    let (live, allocations) = note.split_once(' ')?;
    Some(Class { size, exact: [number(live)?, number(allocations)?], ..Class::default() })
}

/// The class of a sample's blocks, if all have one size.
fn class_of(sample: &Sample, classes: &[Class]) -> Option<usize> {
    // Blocks may be longer than requested, because of their alignment. Their number was rounded.
    let at_least = Kind::ALL.iter().map(|kind| {
        let (blocks, bytes) = (kind.blocks(&sample.counts), kind.bytes(&sample.counts));
        (bytes as f64 / (blocks as f64 + 0.5)) as u64
    });
    let size = at_least.max()?.max(sample.size?);
    Some(classes.partition_point(|class| class.size < size)).filter(|at| *at < classes.len())
}

/// Moves one estimate. What rounding leaves is carried to the next one, so that the sum is right.
fn correct(counts: &mut Counts, class: &Class, kind: Kind, period: u64, carried: &mut f64) {
    let estimate = variance::of(*counts, kind, period);
    let of_class = class.errors.variance[kind as usize];
    if estimate.variance <= 0.0 || of_class <= 0.0 {
        return;
    }
    let blocks = kind.blocks(counts);
    let share = estimate.variance / of_class;
    let wanted = share * class.miss(kind) + *carried;
    // There are at least as many blocks as samples.
    let least = estimate.samples.round() as i64;
    let moved = (blocks + wanted.round() as i64).max(least.min(blocks)) - blocks;
    *carried = wanted - moved as f64;
    kind.add(counts, moved, (moved as f64 * estimate.size).round() as i64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::testing::shares;
    use crate::views::{Tally, Value};

    const PERIOD: i64 = 4096;

    /// Sites of one class with so many live blocks each.
    const SITES: [i64; 4] = [2000, 600, 150, 30];
    const SIZE: i64 = 512;

    fn chance() -> f64 {
        -f64::exp_m1(-SIZE as f64 / PERIOD as f64)
    }

    /// A file with these samples of each site, all of live blocks.
    fn file(samples: [i64; 4], notes: &[&str]) -> File {
        let mut file = File::default();
        file.profile.period = PERIOD;
        for note in notes {
            file = file.comment(note);
        }
        for (samples, site) in samples.iter().zip(["a", "b", "c", "d"]) {
            let blocks = (*samples as f64 / chance()).round() as i64;
            file = file.path(&format!("main > {site}"), SIZE, blocks, blocks);
        }
        file
    }

    const EXACT: [&str; 3] =
        ["prof.since_start=1", "class.512=2780 2780", "class.1024=1000000 5000000"];

    fn live(profile: &Profile) -> Vec<i64> {
        profile.samples.iter().map(|sample| sample.counts.live).collect()
    }

    #[test]
    fn estimates_are_moved_by_their_shares_to_the_exact_sum() {
        // Estimated: 1702, 511, 170 and 51, together 2434.
        let profile = file([200, 60, 20, 6], &EXACT).read();
        assert_eq!(live(&profile), [1944, 584, 194, 58]);
        let mut bytes = profile.samples.iter().map(|sample| sample.counts.live_bytes);
        assert!(live(&profile).iter().all(|live| bytes.next() == Some(live * SIZE)));
        assert_eq!(profile.samples[0].counts.allocs, 1944);
        let whole = Tally::whole(&profile);
        assert_eq!((whole.value(Value::LiveBlocks), whole.error(Value::LiveBlocks)), (2780, 0.0));
        let of = |at: usize| Tally::of(&profile.samples[at], &profile);
        assert_eq!((of(0).samples(Value::LiveBlocks), of(3).samples(Value::LiveBlocks)), (200, 6));
        // Alone its variance is 200 * 0.8825 / 0.1175² = 12,783.
        let (error, bytes) = (of(0).error(Value::LiveBlocks), of(0).error(Value::LiveBytes));
        assert!((60.0..64.0).contains(&error) && bytes == error * SIZE as f64, "{error}");
    }

    #[test]
    fn other_counts_move_nothing() {
        let estimated = vec![1702, 511, 170, 51];
        for notes in [
            &["class.512=2780 2780"][..],
            &["prof.since_start=0", "class.512=2780 2780"],
            &["prof.since_start=1"],
            &["prof.since_start=1", "class.512=9000 9000"],
            &["prof.since_start=1", "class.512=0 0"],
            &["prof.since_start=1", "class.511=2780 2780"],
            &[
                "prof.since_start=1",
                "class.512=-1 9",
                "class.512=1 99999999999999999999",
                "class.=",
                "class.512=",
                "class.512=1",
            ],
            &["prof.since_start=1", "class.512=9223372036854775807 9223372036854775807"],
        ] {
            let profile = file([200, 60, 20, 6], notes).read();
            assert_eq!(live(&profile), estimated, "{notes:?}");
            let error = Tally::whole(&profile).error(Value::LiveBlocks);
            assert!((130.0..140.0).contains(&error), "{error}");
        }
        let mut counted = file([200, 60, 20, 6], &EXACT);
        counted.profile.period = 1;
        assert_eq!(live(&counted.read()), estimated, "each was counted");
    }

    /// The only sites that have samples need not be the only ones that there are.
    #[test]
    fn a_single_sample_stays_uncertain() {
        let profile = file([1, 0, 0, 0], &["prof.since_start=1", "class.512=20 20"]).read();
        assert_eq!(live(&profile)[0], 20);
        let error = Tally::of(&profile.samples[0], &profile).error(Value::LiveBlocks);
        assert!((5.0..9.0).contains(&error), "{error}");
    }

    #[test]
    fn simulated_estimates_become_better_and_lie_within_their_errors() {
        let mut random = shares(0x9e37_79b9_7f4a_7c15);
        let (mut squares, mut inside, rounds) = ([0.0; 2], [0; 4], 400);
        for _ in 0..rounds {
            let samples = SITES.map(|blocks| (0..blocks).filter(|_| random() < chance()).count());
            let samples = samples.map(|count| count as i64);
            for (which, notes) in [&EXACT[1..], &EXACT].into_iter().enumerate() {
                let profile = file(samples, notes).read();
                squares[which] += (live(&profile)[0] - SITES[0]).pow(2) as f64;
                if which == 1 {
                    for (at, sample) in profile.samples.iter().enumerate() {
                        let off = (sample.counts.live - SITES[at]).abs() as f64;
                        let error = Tally::of(sample, &profile).error(Value::LiveBlocks);
                        inside[at] += i32::from(off <= 2.0 * error);
                    }
                }
            }
        }
        // The variance of the largest site is that of its rest: 780 of 2780 blocks.
        let ratio = squares[1] / squares[0];
        assert!((0.2..0.36).contains(&ratio), "{ratio}");
        assert!(inside.iter().all(|inside| *inside >= rounds * 92 / 100), "{inside:?} of {rounds}");
    }
}
