//! Corrects estimates by the exact counts of each size class, which the allocator writes beside
//! its samples.
//!
//! Let `E` be what the samples of a class are estimated to stand for, and `T` the exact count. Each
//! estimate of the class is moved by its share of the class's variance `V`: an estimate of variance
//! `v` by `v / V * (T - E)`. Of all corrections that make the sum right this one leaves the least
//! variance. What is left of the variance `v` of some of the samples is `v - v² / V`.
//!
//! Live blocks and freed ones are corrected apart, because their samples are different blocks. All
//! allocations are the sum of both, so there are never fewer of them than live blocks.
//!
//! The counts are those of the same allocations only if sampling was on since the start. Where they
//! differ from the estimate by more than samples do, they would be of other allocations. Then
//! nothing is moved.
//!
//! A class of which no block is a sample has nothing that can be moved. Its blocks get a row of
//! their own ([`crate::unsampled`]).

use std::collections::HashMap;

use crate::profile::{ClassErrors, Counts, Profile, Sample};
use crate::unsampled::{self, Unsampled};
use crate::variance::{self, Estimate, Kind};

/// The most standard errors between an estimate and the count of the same allocations.
const FARTHEST: f64 = 4.0;

/// A size class: what was counted, and what the samples say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Class {
    /// The most bytes of a block.
    size: u64,
    /// The exact counts of live blocks and of allocations.
    exact: [i64; 2],
    errors: ClassErrors,
}

/// Blocks of one class that are moved together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    class: usize,
    blocks: i64,
    estimate: Estimate,
}

/// The samples of one stack, requested size and class: allocations and live blocks may be apart.
struct Group {
    class: usize,
    samples: Vec<usize>,
    /// What they add up to.
    counts: Counts,
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
        let Some(at) = sample.class else { continue };
        for kind in Kind::ALL {
            let estimate = variance::of(sample.counts, kind, period);
            let ClassErrors { variance, samples } = &mut classes[at].errors;
            variance[kind as usize] += estimate.variance;
            samples[kind as usize] += estimate.samples;
        }
    }
    let groups = groups(profile);
    let before: Vec<Counts> = profile.samples.iter().map(|sample| sample.counts).collect();
    let unsampled: Vec<Unsampled> = classes.iter().map(|class| class.unsampled(period)).collect();
    let is_moved = correct_live(profile, &mut classes);
    // What is left to be told of each class by the samples.
    let others = classes.iter().zip(&unsampled);
    let others = others.map(|(class, unsampled)| class.exact[1] - unsampled.live).collect();
    correct_allocated(profile, &mut classes, &groups, &is_moved, others);
    for (sample, before) in profile.samples.iter_mut().zip(before) {
        sample.correction = sample.counts - before;
    }
    for (at, (class, mut blocks)) in classes.iter().zip(unsampled).enumerate() {
        if !profile.has_allocs {
            blocks.freed = 0;
        }
        unsampled::add(profile, at, class.size, blocks);
    }
    profile.classes = classes.into_iter().map(|class| class.errors).collect();
}

fn groups(profile: &Profile) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known = HashMap::new();
    for (at, sample) in profile.samples.iter().enumerate() {
        let Some(class) = sample.class else { continue };
        let group = *known.entry((sample.stack, sample.size, class)).or_insert_with(|| {
            groups.push(Group { class, samples: Vec::new(), counts: Counts::default() });
            groups.len() - 1
        });
        groups[group].samples.push(at);
        groups[group].counts += sample.counts;
    }
    groups
}

/// Moves the live blocks. Returns for each class whether they were moved.
fn correct_live(profile: &mut Profile, classes: &mut [Class]) -> Vec<bool> {
    let part = |sample: &Sample| {
        let estimate = variance::of(sample.counts, Kind::Live, profile.period);
        let class = sample.class?;
        Some(Part { class, blocks: sample.counts.live, estimate })
    };
    let parts: Vec<Part> = profile.samples.iter().filter_map(part).collect();
    let sums = Sums::of(&parts, classes.len());
    let target = |(at, class): (usize, &Class)| {
        let exact = class.exact[0] as f64;
        sums.is_of_the_same(at, exact, sums.variance[at]).then_some(exact)
    };
    let targets: Vec<Option<f64>> = classes.iter().enumerate().map(target).collect();
    let moves = sums.moves(&parts, &targets);
    let samples = profile.samples.iter_mut().filter(|sample| sample.class.is_some());
    for ((sample, part), moved) in samples.zip(&parts).zip(moves) {
        let bytes = (moved as f64 * part.estimate.size).round() as i64;
        sample.counts.live += moved;
        sample.counts.live_bytes = sample.counts.live_bytes.saturating_add(bytes);
    }
    for (class, target) in classes.iter_mut().zip(&targets) {
        if target.is_none() {
            class.errors.variance[Kind::Live as usize] = 0.0;
        }
    }
    targets.iter().map(Option::is_some).collect()
}

/// Moves the freed blocks, and makes all allocations the sum of those and of the live blocks.
/// `is_moved`: the classes of which the live blocks were moved. `exact`: the allocations of each
/// class.
fn correct_allocated(
    profile: &mut Profile,
    classes: &mut [Class],
    groups: &[Group],
    is_moved: &[bool],
    exact: Vec<i64>,
) {
    if !profile.has_allocs {
        // They are the live blocks.
        for sample in &mut profile.samples {
            let Counts { live, live_bytes, .. } = sample.counts;
            (sample.counts.allocs, sample.counts.alloc_bytes) = (live, live_bytes);
        }
        classes.iter_mut().for_each(|class| class.errors.variance[1] = class.errors.variance[0]);
        return;
    }
    let period = profile.period;
    let groups: Vec<&Group> = groups.iter().filter(|group| group.counts.allocs > 0).collect();
    let mut parts: Vec<Part> = groups.iter().map(|group| group.freed(period)).collect();
    let mut sums = Sums::of(&parts, classes.len());
    // Where no freed block is a sample, the live ones tell who allocates.
    for (part, group) in parts.iter_mut().zip(&groups) {
        if sums.variance[group.class] <= 0.0 {
            part.estimate.variance = variance::of(group.counts, Kind::Live, period).variance;
        }
    }
    let live: Vec<Counts> = groups.iter().map(|group| group.live(profile)).collect();
    let mut exact: Vec<f64> = exact.into_iter().map(|exact| exact as f64).collect();
    groups.iter().zip(&live).for_each(|(group, live)| exact[group.class] -= live.live as f64);
    let target = |(at, class): (usize, &Class)| {
        let chance = variance::chance(class.size as f64, period);
        // Few samples do not tell how far they may be off.
        let variance = exact[at].max(0.0) * (1.0 - chance) / chance;
        let variance = variance.max(sums.variance[at]);
        sums.is_of_the_same(at, exact[at], variance).then_some(exact[at])
    };
    let targets: Vec<Option<f64>> = classes.iter().enumerate().map(target).collect();
    sums.variance = Sums::of(&parts, classes.len()).variance;
    let moves = sums.moves(&parts, &targets);
    for (((group, part), moved), live) in groups.iter().zip(&parts).zip(moves).zip(live) {
        if targets[group.class].is_some() || is_moved[group.class] {
            group.set_allocated(profile, live, part.blocks + moved);
        }
    }
    for (class, target) in classes.iter_mut().zip(&targets) {
        if target.is_none() {
            class.errors.variance[Kind::Allocated as usize] = 0.0;
        }
    }
}

impl Class {
    /// The blocks that no sample stands for, if there may be as many without one.
    fn unsampled(&self, period: u64) -> Unsampled {
        let chance = variance::chance(self.size as f64, period);
        let [live, all] = self.exact;
        let without_sample = |kind: Kind, blocks: i64| {
            let farthest = FARTHEST * FARTHEST * (1.0 - chance) / chance;
            let is_none = self.errors.samples[kind as usize] <= 0.0;
            if is_none && blocks as f64 <= farthest { blocks.max(0) } else { 0 }
        };
        // Where live blocks have samples, these tell who allocated the freed ones.
        Unsampled {
            live: without_sample(Kind::Live, live),
            freed: without_sample(Kind::Allocated, all - live),
        }
    }
}

impl Group {
    /// The blocks that were freed. Less than half a sample is what rounding leaves.
    fn freed(&self, period: u64) -> Part {
        let Counts { allocs, live, .. } = self.counts;
        let blocks = allocs.saturating_sub(live).max(0);
        let bytes = (blocks as f64 * self.size()).round() as i64;
        let freed = Counts { allocs: blocks, alloc_bytes: bytes, ..Counts::default() };
        let estimate = variance::of(freed, Kind::Allocated, period);
        if estimate.samples < 0.5 {
            return Part { class: self.class, blocks: 0, estimate: Estimate::default() };
        }
        Part { class: self.class, blocks, estimate }
    }

    /// The mean bytes of an allocation.
    fn size(&self) -> f64 {
        self.counts.alloc_bytes as f64 / self.counts.allocs.max(1) as f64
    }

    /// The counts of the samples as they are now.
    fn live(&self, profile: &Profile) -> Counts {
        let counts = self.samples.iter().map(|at| profile.samples[*at].counts);
        counts.fold(Counts::default(), |sum, counts| sum + counts)
    }

    /// Sets all allocations to live blocks and freed ones, in the proportions of before.
    fn set_allocated(&self, profile: &mut Profile, live: Counts, freed: i64) {
        let bytes = (freed as f64 * self.size()).round() as i64;
        let all = [live.live.saturating_add(freed), live.live_bytes.saturating_add(bytes)];
        let (mut seen, mut given) = (0, [0; 2]);
        for at in &self.samples {
            let counts = &mut profile.samples[*at].counts;
            seen += counts.allocs;
            let share = |all: i64| {
                (i128::from(all) * i128::from(seen) / i128::from(self.counts.allocs)) as i64
            };
            let until = all.map(share);
            (counts.allocs, counts.alloc_bytes) = (until[0] - given[0], until[1] - given[1]);
            given = until;
        }
    }
}

/// What the parts of each class add up to.
struct Sums {
    blocks: Vec<f64>,
    samples: Vec<f64>,
    variance: Vec<f64>,
}

impl Sums {
    fn of(parts: &[Part], classes: usize) -> Sums {
        let none = vec![0.0; classes];
        let mut sums = Sums { blocks: none.clone(), samples: none.clone(), variance: none };
        for part in parts {
            sums.blocks[part.class] += part.blocks as f64;
            sums.samples[part.class] += part.estimate.samples;
            sums.variance[part.class] += part.estimate.variance;
        }
        sums
    }

    /// Returns whether an exact count of a class is one of the same allocations.
    fn is_of_the_same(&self, class: usize, exact: f64, variance: f64) -> bool {
        // Estimates were rounded when they were written.
        let farthest = FARTHEST * (variance + self.samples[class]).sqrt();
        (exact - self.blocks[class]).abs() <= farthest
    }

    /// Returns by how much to move each part, so that those of a class become the target.
    fn moves(&self, parts: &[Part], targets: &[Option<f64>]) -> Vec<i64> {
        let mut moves = vec![0_i64; parts.len()];
        // What rounding leaves is carried to the next part.
        let mut carried = vec![0.0; targets.len()];
        // The second time what is left goes to the first parts that can take it.
        for is_first in [true, false] {
            for (part, moved) in parts.iter().zip(&mut moves) {
                let Some(target) = targets[part.class] else { continue };
                let share = part.estimate.variance / self.variance[part.class];
                if part.estimate.variance <= 0.0 {
                    continue;
                }
                let miss = if is_first { target - self.blocks[part.class] } else { 0.0 };
                let wanted = share * miss + carried[part.class];
                // There are at least as many blocks as samples.
                let least = (part.estimate.samples.round() as i64).min(part.blocks) - part.blocks;
                let next = moved.saturating_add(wanted.round() as i64).max(least);
                carried[part.class] = wanted - (next - *moved) as f64;
                *moved = next;
            }
        }
        moves
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::testing::shares;
    use crate::views::{Tally, Value};
    use proptest::prelude::*;

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

    /// A file of sampled sites with so many live and freed blocks each, and the notes. The live
    /// blocks are those of three threads; they have samples of their own if `is_apart`, as in the
    /// files of the profiler.
    fn sampled(sites: &[(i64, i64)], is_apart: bool, seed: u64, notes: &[String]) -> Profile {
        let mut random = shares(seed | 1);
        let mut samples = |blocks: i64| (0..blocks).filter(|_| random() < chance()).count() as i64;
        let blocks = |samples: i64| (samples as f64 / chance()).round() as i64;
        let mut file = notes.iter().fold(File::default(), |file, note| file.comment(note));
        file.profile.period = PERIOD;
        for (at, (live, freed)) in sites.iter().enumerate() {
            let path = format!("main > f{at}");
            let live = [live / 3, live / 3, live - live / 3 * 2].map(&mut samples);
            let all = live.iter().sum::<i64>() + samples(*freed);
            if is_apart {
                file = file.path(&path, SIZE, blocks(all), 0);
                file =
                    live.iter().fold(file, |file, live| file.path(&path, SIZE, 0, blocks(*live)));
            } else {
                file = file.path(&path, SIZE, blocks(all), blocks(live.iter().sum()));
            }
        }
        file.read()
    }

    /// What the samples of each stack add up to, without the row of blocks that have none.
    fn by_stack(profile: &Profile) -> Vec<Counts> {
        let mut sums = vec![Counts::default(); profile.stacks.len()];
        let sampled = profile.samples.iter().filter(|sample| sample.unsampled.is_none());
        sampled.for_each(|sample| sums[sample.stack] += sample.counts);
        sums
    }

    fn notes(live: i64, allocations: i64) -> [String; 2] {
        ["prof.since_start=1".to_owned(), format!("class.{SIZE}={live} {allocations}")]
    }

    proptest! {
        #[test]
        fn no_more_blocks_are_live_than_were_allocated(
            sites in prop::collection::vec((0i64..400, 0i64..400), 1..6),
            is_apart in any::<bool>(),
            seed in any::<u64>(),
            other in prop::option::of((0i64..3000, 0i64..3000)),
        ) {
            let live: i64 = sites.iter().map(|(live, _)| live).sum();
            let freed: i64 = sites.iter().map(|(_, freed)| freed).sum();
            let (live, freed) = other.unwrap_or((live, freed));
            let profile = sampled(&sites, is_apart, seed, &notes(live, live + freed));
            let is_corrected = profile.classes[0].variance != [0.0; 2];
            for counts in by_stack(&profile).into_iter().filter(|_| is_corrected) {
                prop_assert!(counts.allocs >= counts.live && counts.live >= 0, "{counts:?}");
                prop_assert!(counts.alloc_bytes >= counts.live_bytes, "{counts:?}");
                prop_assert_eq!(counts.live_bytes, counts.live * SIZE);
                prop_assert_eq!(counts.alloc_bytes, counts.allocs * SIZE);
            }
        }

        #[test]
        fn sums_are_the_exact_ones(
            sites in prop::collection::vec((0i64..400, 0i64..400), 1..6),
            is_apart in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let live: i64 = sites.iter().map(|(live, _)| live).sum();
            let all = live + sites.iter().map(|(_, freed)| freed).sum::<i64>();
            let before = sampled(&sites, is_apart, seed, &[]);
            let profile = sampled(&sites, is_apart, seed, &notes(live, all));
            let total = profile.total();
            let [of_live, of_freed] = profile.classes[0].variance;
            // True counts are refused only where there are no samples, or where they happen to be
            // far from what they are on average.
            let estimated = before.total();
            let is_far = |known: i64, estimated: i64| {
                let variance = known as f64 * (1.0 - chance()) / chance();
                estimated == 0 || ((known - estimated) as f64).powi(2) > 2.25 * variance
            };
            let freed = estimated.allocs - estimated.live;
            if of_live > 0.0 {
                prop_assert_eq!(total.live, live);
            } else {
                prop_assert!(is_far(live, estimated.live), "{estimated:?}");
            }
            // Where the live ones are refused, what is known of all allocations tells nothing.
            if of_freed > 0.0 {
                prop_assert_eq!(total.allocs, all);
            } else if of_live > 0.0 {
                prop_assert!(is_far(all - live, freed), "{estimated:?}");
                // Without a sample of a freed block, the live ones tell who allocates.
                let is_exact = total.allocs == all || total.allocs == total.live;
                prop_assert!(freed > 0 || is_exact, "{estimated:?} {total:?}");
            }
            let whole = Tally::whole(&profile);
            if of_live > 0.0 && of_freed > 0.0 {
                prop_assert_eq!(whole.error(Value::Allocations), 0.0);
            }
        }
    }

    /// The samples of live blocks say a bit too little, those of all allocations are right.
    #[test]
    fn a_site_that_frees_nothing_allocated_what_is_live() {
        let file = |notes: &[&str], is_apart: bool| {
            let mut file = notes.iter().fold(File::default(), |file, note| file.comment(note));
            file.profile.period = PERIOD;
            let file = match is_apart {
                true => {
                    let file = file.path("main > keep", SIZE, 1702, 0);
                    file.path("main > keep", SIZE, 0, 851).path("main > keep", SIZE, 0, 851)
                }
                false => file.path("main > keep", SIZE, 1702, 1702),
            };
            file.path("main > drop", SIZE, 1702, 0).read()
        };
        let counts = |profile: &Profile| {
            by_stack(profile).iter().map(|it| (it.live, it.allocs)).collect::<Vec<_>>()
        };
        for is_apart in [true, false] {
            assert_eq!(counts(&file(&[], is_apart)), [(1702, 1702), (0, 1702)]);
            let notes = ["prof.since_start=1", "class.512=1900 3500"];
            let corrected = file(&notes, is_apart);
            assert_eq!(counts(&corrected), [(1900, 1900), (0, 1600)]);
            let whole = Tally::whole(&corrected);
            let errors = [Value::LiveBlocks, Value::Allocations].map(|value| whole.error(value));
            assert_eq!(errors, [0.0, 0.0]);
            assert_eq!(whole.samples(Value::Allocations), 400);
            // Other counts of allocations leave the freed blocks as they are.
            let other = file(&["prof.since_start=1", "class.512=1900 9000"], is_apart);
            assert_eq!(counts(&other), [(1900, 1900), (0, 1702)]);
        }
    }

    #[test]
    fn freed_blocks_without_a_sample_are_counted() {
        let mut few = File::default().comment("prof.since_start=1").comment("class.512=1900 1905");
        few.profile.period = PERIOD;
        let few = few.path("main > a", SIZE, 1702, 1702).path("main > b", SIZE, 9, 9).read();
        let counts = few.samples.iter().map(|it| (it.counts.live, it.counts.allocs));
        assert_eq!(counts.collect::<Vec<_>>(), [(1890, 1895), (10, 10)]);
        let whole = Tally::whole(&few);
        assert_eq!(
            (whole.error(Value::Allocations), whole.samples(Value::Allocations)),
            (0.0, 201)
        );
    }

    #[test]
    fn classes_without_a_sample_are_in_the_sums() {
        // Of as many blocks of 2048 bytes some would be samples: they were allocated otherwise.
        let notes =
            ["class.64=10 30", "class.512=2780 2780", "class.1024=0 7", "class.2048=500 500"];
        let notes: Vec<&str> = ["prof.since_start=1"].into_iter().chain(notes).collect();
        let profile = file([200, 60, 20, 6], &notes).read();
        let rows = profile.samples.iter().filter(|sample| sample.unsampled.is_some());
        let rows = rows.map(|row| (row.size, row.counts.live, row.counts.allocs, row.stack));
        let stack = profile.stacks.len() - 1;
        assert_eq!(rows.collect::<Vec<_>>(), [(Some(56), 10, 30, stack), (Some(960), 0, 7, stack)]);
        let total = profile.total();
        assert_eq!((total.live, total.allocs), (2790, 2817));
        assert_eq!(total.live_bytes, 2780 * 512 + 10 * 56);
        assert_eq!(total.alloc_bytes, 2780 * 512 + 30 * 56 + 7 * 960);
        let whole = Tally::whole(&profile);
        assert_eq!(
            [Value::LiveBlocks, Value::Allocations].map(|value| whole.error(value)),
            [0.0; 2]
        );
        let error = whole.error(Value::LiveBytes);
        assert!((error - 10.0 * 16.0 / 12.0_f64.sqrt()).abs() < 1e-6, "{error}");
    }

    /// Samples of freed blocks alone: the live ones are not counted twice.
    #[test]
    fn live_blocks_of_a_class_whose_freed_ones_have_samples_are_counted_once() {
        let mut few = File::default().comment("prof.since_start=1").comment("class.512=9 1900");
        few.profile.period = PERIOD;
        let total = few.path("main > drop", SIZE, 1702, 0).read().total();
        assert_eq!((total.live, total.allocs), (9, 1900));
        assert_eq!((total.live_bytes, total.alloc_bytes), (9 * 480, 9 * 480 + 1891 * SIZE));
    }

    #[test]
    fn a_file_without_allocations_has_none_but_the_live_blocks() {
        let mut file = file([200, 60, 20, 6], &["prof.since_start=1", "class.512=2780 9000"]);
        file.profile.sample_type.drain(..2);
        file.profile.sample.iter_mut().for_each(|sample| drop(sample.value.drain(..2)));
        let profile = file.read();
        assert_eq!(live(&profile), [1944, 584, 194, 58]);
        let total = profile.total();
        assert_eq!((total.allocs, total.alloc_bytes), (total.live, total.live_bytes));
        assert_eq!(Tally::whole(&profile).error(Value::Allocations), 0.0);
    }
}
