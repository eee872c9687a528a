//! What the program has and requested of each size class, counted exactly. The samples of the heap
//! profiler are estimates of it.

use super::arena_stats::{BINS, LEXTENTS, lextent_of_run, lextent_size, slab_class_size};
use crate::ground::size_class::SizeClass;

/// The counts of one size class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Bytes of a block; of a large class, the most bytes of a block.
    pub size: usize,
    /// Blocks that the program has.
    pub live: u64,
    /// Blocks that it was given since the start.
    pub allocations: u64,
}

/// Counts by class, while a walk adds them up. The walk may see that a block was returned before it
/// sees that the block was handed out, so sums of live blocks are signed.
pub(super) struct Classes {
    bins: [Counts; BINS],
    lextents: [Counts; LEXTENTS],
}

#[derive(Clone, Copy)]
struct Counts {
    live: i64,
    allocations: u64,
}

impl Counts {
    const NONE: Counts = Counts { live: 0, allocations: 0 };

    fn of_size(self, size: usize) -> Option<ClassCount> {
        let live = u64::try_from(self.live).unwrap_or(0);
        let is_used = self.allocations > 0;
        is_used.then_some(ClassCount { size, live, allocations: self.allocations })
    }
}

impl Default for Classes {
    fn default() -> Classes {
        Classes { bins: [Counts::NONE; BINS], lextents: [Counts::NONE; LEXTENTS] }
    }
}

impl Classes {
    /// Adds blocks of a small class: how many more the program has, and how many it was given.
    pub(super) fn add_small(&mut self, class: SizeClass, live: i64, allocations: u64) {
        if let Some(counts) = self.bins.get_mut(class.index()) {
            counts.live += live;
            counts.allocations += allocations;
        }
    }

    /// Adds large blocks of a class of runs of pages.
    pub(super) fn add_large(&mut self, run: usize, live: i64, allocations: u64) {
        if let Some(counts) = self.lextents.get_mut(lextent_of_run(run)) {
            counts.live += live;
            counts.allocations += allocations;
        }
    }

    /// Iterates over the classes that were used, the smallest first.
    pub(super) fn each(&self) -> impl Iterator<Item = ClassCount> {
        let bins = self.bins.iter().enumerate();
        let lextents = self.lextents.iter().enumerate();
        let small = bins.filter_map(|(n, counts)| counts.of_size(slab_class_size(n)));
        let large = lextents.filter_map(|(n, counts)| counts.of_size(lextent_size(n)));
        small.chain(large)
    }
}
