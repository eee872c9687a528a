//! Corrects estimates by the exact counts of each size class, which the allocator writes beside
//! its samples.
//!
//! Let `E` be what the samples of some classes are estimated to stand for, in bytes of these
//! classes, and `T` the exact number. Each estimate is moved by its share of the variance `V` of
//! all: one of variance `v` by `v / V * (T - E)`. Of all corrections that make the sum right this
//! one leaves the least variance. What is left of the variance `v` of some of the samples is
//! `v - v² / V`. Which classes are corrected together: [`crate::pools`].
//!
//! Live blocks and freed ones are corrected apart, because their samples are different blocks. All
//! allocations are the sum of both, so there are never fewer of them than live blocks.
//!
//! The counts are those of the same allocations only if sampling was on since the start. Where they
//! differ from the estimate by more than samples do, they would be of other allocations. Then
//! nothing is moved.

use std::collections::HashMap;

use crate::pools::{Counted, Pools};
use crate::profile::{Class, Counts, Profile, Sample};
use crate::variance::{self, Estimate, Kind};

/// The most standard errors between an estimate and the count of the same allocations.
const FARTHEST: f64 = 4.0;

/// Blocks of one class that are moved together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    pool: usize,
    /// The bytes of a block of the class.
    unit: f64,
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
    let notes = profile.comments.iter();
    let mut classes: Vec<Counted> =
        notes.filter_map(|(name, note)| Counted::read(name, note)).collect();
    classes.sort_by_key(|class| class.size);
    let [live, freed] = Kind::ALL.map(|kind| Pools::of(&classes, kind, profile.period));
    let pools = live.of_class.iter().zip(&freed.of_class);
    let told = |(class, pools): (&Counted, (&usize, &usize))| Class {
        size: class.size as f64,
        pools: [*pools.0, *pools.1],
    };
    profile.classes = classes.iter().zip(pools).map(told).collect();
    for sample in &mut profile.samples {
        sample.class = class_of(sample, &classes);
    }
    let groups = groups(profile);
    let before: Vec<Counts> = profile.samples.iter().map(|sample| sample.counts).collect();
    let are_live_moved = correct_live(profile, &live);
    correct_allocated(profile, &freed, &groups, &are_live_moved);
    for (sample, before) in profile.samples.iter_mut().zip(before) {
        sample.correction = sample.counts - before;
    }
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
fn correct_live(profile: &mut Profile, pools: &Pools) -> Vec<bool> {
    let part = |sample: &Sample| {
        let class = profile.classes[sample.class?];
        let estimate = variance::of_sample(sample.counts, Kind::Live, class.size, profile.period);
        Some(Part { pool: class.pools[0], unit: class.size, estimate })
    };
    let parts: Vec<Part> = profile.samples.iter().filter_map(part).collect();
    let sums = Sums::of(&parts, pools.bytes.len());
    let targets = sums.targets(pools);
    let is_left = |(target, samples): (&Option<f64>, &f64)| target.is_none() && *samples > 0.0;
    profile.lacks_corrections = targets.iter().zip(&sums.samples).any(is_left);
    let moved = sums.moved(&parts, &targets);
    let samples = profile.samples.iter_mut().filter(|sample| sample.class.is_some());
    for ((sample, part), moved) in samples.zip(&parts).zip(moved) {
        if let Some(blocks) = moved {
            sample.counts.live = blocks;
            sample.counts.live_bytes = (blocks as f64 * part.estimate.size).round() as i64;
        }
    }
    let are_moved: Vec<bool> = targets.iter().map(Option::is_some).collect();
    profile.pools[0] = pools.told(&sums.samples, &sums.variance, &are_moved);
    pools.of_class.iter().map(|pool| are_moved[*pool]).collect()
}

/// Moves the freed blocks, and makes all allocations the sum of those and of the live blocks.
/// `are_live_moved`: the classes of which the live blocks were moved.
fn correct_allocated(
    profile: &mut Profile,
    pools: &Pools,
    groups: &[Group],
    are_live_moved: &[bool],
) {
    if !profile.has_allocs {
        // They are the live blocks.
        for sample in &mut profile.samples {
            let Counts { live, live_bytes, .. } = sample.counts;
            (sample.counts.allocs, sample.counts.alloc_bytes) = (live, live_bytes);
        }
        profile.classes.iter_mut().for_each(|class| class.pools[1] = class.pools[0]);
        profile.pools[1] = profile.pools[0].clone();
        return;
    }
    let all = all_by_pool(profile, pools.bytes.len());
    let groups: Vec<&Group> = groups.iter().filter(|group| group.counts.allocs > 0).collect();
    let mut parts: Vec<Part> = groups.iter().map(|group| group.freed(profile)).collect();
    let mut sums = Sums::of(&parts, pools.bytes.len());
    // Where no freed block is a sample, the live ones tell who allocates.
    for (part, group) in parts.iter_mut().zip(&groups) {
        if sums.samples[part.pool] < 0.5 {
            let Class { size, .. } = profile.classes[group.class];
            let Counts { live, live_bytes, .. } = group.counts;
            let parts = group.samples.len();
            let live = variance::of_class(live, live_bytes, parts, size, profile.period);
            (part.estimate.size, part.estimate.variance) = (live.size, live.variance);
        }
    }
    let targets = sums.targets(pools);
    sums.variance = Sums::of(&parts, pools.bytes.len()).variance;
    let moved = sums.moved(&parts, &targets);
    for ((group, part), moved) in groups.iter().zip(&parts).zip(moved) {
        if moved.is_some() || are_live_moved[group.class] {
            let Estimate { blocks, size, .. } = part.estimate;
            let live = group.live(profile);
            group.set_allocated(profile, live, moved.unwrap_or(blocks.round() as i64), size);
        }
    }
    let are_moved: Vec<bool> = targets.iter().map(Option::is_some).collect();
    let (variance, samples): (Vec<f64>, Vec<f64>) =
        all.into_iter().map(|[variance, samples]| (variance, samples)).unzip();
    profile.pools[1] = pools.told(&samples, &variance, &are_moved);
}

/// Returns the variance of all allocations of each pool, in bytes of their classes, and the number
/// of their samples.
fn all_by_pool(profile: &Profile, pools: usize) -> Vec<[f64; 2]> {
    let mut sums = vec![[0.0; 2]; pools];
    for sample in &profile.samples {
        let Some(class) = sample.class.map(|class| profile.classes[class]) else { continue };
        let estimate =
            variance::of_sample(sample.counts, Kind::Allocated, class.size, profile.period);
        let [variance, samples] = &mut sums[class.pools[1]];
        *variance += class.size * class.size * estimate.variance;
        *samples += estimate.samples;
    }
    sums
}

impl Group {
    /// The blocks that were freed. Less than half a sample is what rounding leaves.
    fn freed(&self, profile: &Profile) -> Part {
        let Class { size: unit, pools } = profile.classes[self.class];
        let Counts { allocs, live, alloc_bytes, live_bytes } = self.counts;
        let (blocks, bytes) = (allocs.saturating_sub(live), alloc_bytes.saturating_sub(live_bytes));
        let parts = 2 * self.samples.len();
        let estimate = variance::of_class(blocks.max(0), bytes.max(0), parts, unit, profile.period);
        if estimate.samples < 0.5 {
            return Part { pool: pools[1], unit, estimate: Estimate::default() };
        }
        Part { pool: pools[1], unit, estimate }
    }

    /// The counts of the samples as they are now.
    fn live(&self, profile: &Profile) -> Counts {
        let counts = self.samples.iter().map(|at| profile.samples[*at].counts);
        counts.fold(Counts::default(), |sum, counts| sum + counts)
    }

    /// Sets all allocations to live blocks and freed ones of a size, in the proportions of before.
    fn set_allocated(&self, profile: &mut Profile, live: Counts, freed: i64, size: f64) {
        let bytes = (freed as f64 * size).round() as i64;
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

/// What the parts of each pool add up to, in bytes of their classes.
struct Sums {
    bytes: Vec<f64>,
    samples: Vec<f64>,
    variance: Vec<f64>,
    /// How far rounding may have moved the estimates: their sum of squares.
    rounding: Vec<f64>,
}

impl Sums {
    fn of(parts: &[Part], pools: usize) -> Sums {
        let none = vec![0.0; pools];
        let mut sums = Sums {
            bytes: none.clone(),
            samples: none.clone(),
            variance: none.clone(),
            rounding: none,
        };
        for Part { pool, unit, estimate } in parts {
            sums.bytes[*pool] += estimate.blocks * unit;
            sums.samples[*pool] += estimate.samples;
            sums.variance[*pool] += unit * unit * estimate.variance;
            sums.rounding[*pool] += unit * unit * estimate.samples;
        }
        sums
    }

    /// Returns the exact bytes of each pool, where they are of the same allocations.
    fn targets(&self, pools: &Pools) -> Vec<Option<f64>> {
        let target = |(pool, exact): (usize, &f64)| {
            // Few samples do not tell how far they may be off.
            let variance = pools.variance[pool].max(self.variance[pool]);
            // Estimates were rounded when they were written.
            let farthest = FARTHEST * (variance + self.rounding[pool]).sqrt();
            ((exact - self.bytes[pool]).abs() <= farthest).then_some(*exact)
        };
        pools.bytes.iter().enumerate().map(target).collect()
    }

    /// Returns the blocks of each part after those of its pool were moved to the target, if there
    /// is one.
    fn moved(&self, parts: &[Part], targets: &[Option<f64>]) -> Vec<Option<i64>> {
        let mut moved = vec![None; parts.len()];
        // What rounding leaves is carried to the next part.
        let mut carried = vec![0.0; targets.len()];
        // The second time what is left goes to the first parts that can take it.
        for _ in 0..2 {
            for (part, moved) in parts.iter().zip(&mut moved) {
                let Some(target) = targets[part.pool] else { continue };
                let Estimate { blocks, samples, variance, .. } = part.estimate;
                if variance <= 0.0 {
                    *moved = Some(blocks.round() as i64);
                    continue;
                }
                let share = part.unit * part.unit * variance / self.variance[part.pool];
                let wanted = match *moved {
                    None => blocks * part.unit + share * (target - self.bytes[part.pool]),
                    Some(blocks) => blocks as f64 * part.unit,
                } + carried[part.pool];
                // There are at least as many blocks as samples.
                let least = samples.min(blocks).round() as i64;
                let next = ((wanted / part.unit).round() as i64).max(least);
                carried[part.pool] = wanted - next as f64 * part.unit;
                *moved = Some(next);
            }
        }
        moved
    }
}

/// The class of a sample's blocks, if all have one size.
fn class_of(sample: &Sample, classes: &[Counted]) -> Option<usize> {
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

    /// What the samples of each stack add up to.
    fn by_stack(profile: &Profile) -> Vec<Counts> {
        let mut sums = vec![Counts::default(); profile.stacks.len()];
        profile.samples.iter().for_each(|sample| sums[sample.stack] += sample.counts);
        sums
    }

    /// The variances of the only pool; 0 if it was not moved.
    fn variances(profile: &Profile) -> [f64; 2] {
        [0, 1].map(|kind| profile.pools[kind][0].variance)
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
            let is_corrected = variances(&profile) != [0.0; 2];
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
            let [of_live, of_freed] = variances(&profile);
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
            if of_freed > 0.0 && of_live > 0.0 {
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

    /// Of blocks far larger than the period each is a sample, so their estimate has no variance.
    #[test]
    fn freed_blocks_that_are_all_samples_are_counted() {
        let size = 8000 * PERIOD;
        for live in [0, 3] {
            let note = format!("class.{size}={live} {}", live + 100);
            let mut file = File::default().comment("prof.since_start=1").comment(&note);
            file.profile.period = PERIOD;
            let total = file.path("main > a", size, live + 100, live).read().total();
            assert_eq!((total.live, total.allocs), (live, live + 100));
            assert_eq!((total.live_bytes, total.alloc_bytes), (live * size, (live + 100) * size));
        }
    }

    /// Of these blocks 9.4 samples are expected, give or take 2.9.
    #[test]
    fn few_samples_do_not_make_the_exact_counts_others() {
        for samples in 1..=2 {
            let blocks = (samples as f64 / chance()).round() as i64;
            for (live, notes) in [(blocks, "class.512=80 80"), (0, "class.512=0 80")] {
                let mut file = File::default().comment("prof.since_start=1").comment(notes);
                file.profile.period = PERIOD;
                let profile = file.path("main > a", SIZE, blocks, live).read();
                assert_eq!(profile.total().allocs, 80, "{samples} {notes}");
            }
        }
    }

    /// A class of which few samples are expected is corrected together with its neighbours, if none
    /// of its blocks is a sample too.
    #[test]
    fn classes_without_a_sample_are_in_the_sums() {
        // Of as many blocks of 2048 bytes some would be samples: they were allocated otherwise.
        let notes =
            ["class.64=70 90", "class.512=2780 2780", "class.1024=0 7", "class.2048=500 500"];
        let notes: Vec<&str> = ["prof.since_start=1"].into_iter().chain(notes).collect();
        let profile = file([200, 60, 20, 6], &notes).read();
        let total = profile.total();
        // To whole blocks: 70 of 64 bytes are 9 of 512. The freed ones are 17.
        assert_eq!((total.live, total.allocs), (2789, 2806));
        assert_eq!((total.live_bytes, total.alloc_bytes), (2789 * 512, 2806 * 512));
        let whole = Tally::whole(&profile);
        assert!(whole.error(Value::LiveBytes) < 1.0);
        // The number of the small blocks is not known.
        let error = whole.error(Value::LiveBlocks);
        assert!((30.0..70.0).contains(&error), "{error}");
    }

    /// Blocks of many sizes at one place, and of these at another: of each class a sample is
    /// expected, or none.
    #[test]
    fn a_place_of_many_sizes_is_neither_favoured_nor_disfavoured() {
        let mut random = shares(0x2545_f491_4f6c_dd1d);
        let sizes: Vec<i64> = (1..=32).map(|n| 32 * n).collect();
        let truth: Vec<i64> = sizes.iter().map(|size| 3000 / size).collect();
        let notes: Vec<String> = (sizes.iter().zip(&truth))
            .map(|(size, blocks)| format!("class.{size}={} {}", blocks * 5 / 4, blocks * 5 / 4))
            .collect();
        let all: i64 = sizes.iter().zip(&truth).map(|(size, blocks)| size * blocks).sum();
        let (mut sum, mut inside, rounds) = (0.0, 0, 400);
        for _ in 0..rounds {
            let mut file = notes.iter().fold(File::default(), |file, note| file.comment(note));
            file = file.comment("prof.since_start=1");
            file.profile.period = PERIOD;
            for (size, blocks) in sizes.iter().zip(&truth) {
                let chance = -f64::exp_m1(-*size as f64 / PERIOD as f64);
                for (path, blocks) in [("main > many", *blocks), ("main > rest", blocks / 4)] {
                    let samples = (0..blocks).filter(|_| random() < chance).count();
                    let estimate = (samples as f64 / chance).round() as i64;
                    file = file.path(path, *size, estimate, estimate);
                }
            }
            let profile = file.read();
            let tallies = profile.samples.iter().filter(|sample| sample.stack == 0);
            let tally = tallies.map(|sample| Tally::of(sample, &profile)).fold(
                Tally::default(),
                |mut sum, tally| {
                    sum.add(&tally);
                    sum
                },
            );
            let estimate = tally.value(Value::LiveBytes);
            sum += estimate as f64 / all as f64;
            let off = (estimate - all).abs() as f64;
            inside += i32::from(off <= 2.0 * tally.error(Value::LiveBytes));
        }
        let mean = sum / f64::from(rounds);
        assert!((0.97..1.03).contains(&mean), "{mean}");
        assert!(inside >= rounds * 93 / 100, "{inside} of {rounds}");
    }

    /// Samples of freed blocks alone: the live ones are not counted twice.
    #[test]
    fn live_blocks_of_a_class_whose_freed_ones_have_samples_are_counted_once() {
        let mut few = File::default().comment("prof.since_start=1").comment("class.512=9 1900");
        few.profile.period = PERIOD;
        let total = few.path("main > drop", SIZE, 1702, 0).read().total();
        assert_eq!((total.live, total.allocs), (0, 1891));
        assert_eq!((total.live_bytes, total.alloc_bytes), (0, 1891 * SIZE));
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
