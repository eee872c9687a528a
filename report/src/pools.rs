//! Which size classes are corrected together.
//!
//! A correction of one class alone would favour what has samples: in a class of which one sample is
//! expected, it gives all blocks to the place of that sample, or none to any place. So neighbouring
//! classes are pooled until enough samples are expected in a pool. How many are expected follows
//! from the exact counts, so it does not depend on which blocks are samples.

use crate::profile::Pool;
use crate::variance::{self, Kind};

/// The samples that are expected in a pool at least, if there are as many in all.
const ENOUGH: f64 = 8.0;

/// A size class, and the exact counts of its blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counted {
    /// The most bytes of a block.
    pub(crate) size: u64,
    /// The numbers of live blocks and of freed ones.
    pub(crate) blocks: [i64; 2],
}

/// The classes of one [`Kind`] of blocks, in pools.
#[derive(Debug)]
pub(crate) struct Pools {
    /// The pool of each class.
    pub(crate) of_class: Vec<usize>,
    /// The exact bytes of each pool.
    pub(crate) bytes: Vec<f64>,
    /// The variance of estimates of these bytes, as expected.
    pub(crate) variance: Vec<f64>,
    /// The variance of estimates of the numbers of blocks, if the bytes are known.
    pub(crate) spread: Vec<f64>,
}

impl Counted {
    /// Reads a note on a class: the bytes of a block; blocks in use, and allocations.
    pub(crate) fn read(name: &str, note: &str) -> Option<Counted> {
        let number = |text: &str| text.parse().ok().filter(|number: &i64| *number >= 0);
        let size = number(name.strip_prefix("class.")?)? as u64;
        let (live, allocations) = note.split_once(' ')?;
        let (live, allocations) = (number(live)?, number(allocations)?);
        Some(Counted { size, blocks: [live, (allocations - live).max(0)] })
    }

    fn chance(&self, period: u64) -> f64 {
        variance::chance(self.size as f64, period)
    }
}

impl Pools {
    /// Pools classes, the smallest first. With [`Kind::Allocated`] the freed blocks count.
    pub(crate) fn of(classes: &[Counted], kind: Kind, period: u64) -> Pools {
        let (mut of_class, mut pool, mut expected) = (Vec::new(), 0_usize, 0.0);
        for class in classes {
            of_class.push(pool);
            expected += class.blocks[kind as usize] as f64 * class.chance(period);
            if expected >= ENOUGH {
                (pool, expected) = (pool + 1, 0.0);
            }
        }
        // Too few are left for a pool of their own.
        for last in of_class.iter_mut().filter(|its| **its == pool) {
            *last = pool.saturating_sub(1);
        }
        let mut sums = vec![[0.0; 4]; pool.max(1)];
        for (class, pool) in classes.iter().zip(&of_class) {
            let (blocks, size) = (class.blocks[kind as usize] as f64, class.size as f64);
            let chance = class.chance(period);
            let variance = if chance > 0.0 { blocks * (1.0 - chance) / chance } else { 0.0 };
            let moments = [size * blocks, variance, size * variance, size * size * variance];
            sums[*pool].iter_mut().zip(moments).for_each(|(sum, moment)| *sum += moment);
        }
        let spread = |[_, blocks, both, bytes]: &[f64; 4]| {
            let left = blocks - if *bytes > 0.0 { both * both / bytes } else { 0.0 };
            // What is less is an error of the computation.
            if left > 1e-9 * blocks { left } else { 0.0 }
        };
        Pools {
            of_class,
            bytes: sums.iter().map(|sums| sums[0]).collect(),
            variance: sums.iter().map(|sums| sums[3]).collect(),
            spread: sums.iter().map(spread).collect(),
        }
    }

    /// Returns the pools as a profile has them, if these `are_moved`.
    pub(crate) fn told(&self, samples: &[f64], variance: &[f64], are_moved: &[bool]) -> Vec<Pool> {
        let pool = |at: usize| Pool {
            variance: if are_moved[at] { variance[at] } else { 0.0 },
            samples: samples[at],
            spread: self.spread[at],
        };
        (0..self.bytes.len()).map(pool).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(counts: &[(u64, i64)]) -> Vec<Counted> {
        counts.iter().map(|(size, live)| Counted { size: *size, blocks: [*live, 0] }).collect()
    }

    #[test]
    fn neighbours_are_pooled_until_enough_samples_are_expected() {
        // The chances are 0.0624 of 64 bytes, 0.2212 of 256 and 0.6321 of 1024.
        let counts = [(64, 100), (256, 20), (512, 16), (1024, 100), (2048, 3)];
        let pools = Pools::of(&classes(&counts), Kind::Live, 1024);
        assert_eq!(pools.of_class, [0, 0, 1, 1, 1], "the last one has too few");
        assert_eq!(pools.bytes, [6400.0 + 5120.0, 8192.0 + 102_400.0 + 6144.0]);
        assert!(pools.spread[0] > 0.0 && pools.spread[1] > 0.0);
        let few = Pools::of(&classes(&counts[..2]), Kind::Live, 1024);
        assert_eq!((few.of_class, few.bytes), (vec![0, 0], vec![11_520.0]));
        let freed = Pools::of(&classes(&counts), Kind::Allocated, 1024);
        assert_eq!((freed.of_class, freed.bytes), (vec![0; 5], vec![0.0]));
        assert_eq!(Pools::of(&classes(&[(64, 5000)]), Kind::Live, 1024).spread, [0.0]);
    }

    #[test]
    fn notes_on_classes_are_read() {
        let read = |name, note| Counted::read(name, note).map(|class| (class.size, class.blocks));
        assert_eq!(read("class.512", "9 11"), Some((512, [9, 2])));
        assert_eq!(read("class.512", "9 3"), Some((512, [9, 0])));
        for (name, note) in [("class.", "1 2"), ("class.8", "1"), ("class.8", "-1 2"), ("x", "1 2")]
        {
            assert_eq!(read(name, note), None, "{name} {note}");
        }
    }
}
