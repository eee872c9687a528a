//! What the tables count: allocations of one size by one chain of functions.

use super::percent::{BySize, category};
use crate::profile::Sample;
use crate::report::Report;
use crate::symbols::{Exact, Frame};

/// Counted allocations. Bytes are those that were requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Allocations.
    pub(super) allocs: i64,
    /// Their bytes.
    pub(super) bytes: i64,
    /// Blocks that are not freed.
    pub(super) live: i64,
    /// Their bytes.
    pub(super) kept: i64,
}

impl Cell {
    /// Adds another one.
    pub(super) fn add(&mut self, other: &Cell) {
        // A call between functions of a cycle counts the bytes of a chain each time.
        self.allocs = self.allocs.saturating_add(other.allocs);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.live = self.live.saturating_add(other.live);
        self.kept = self.kept.saturating_add(other.kept);
    }

    /// The number of frees. Of estimates, rounding may make the number of live blocks the larger
    /// one.
    pub(super) fn frees(&self) -> i64 {
        (self.allocs - self.live).max(0)
    }

    /// The bytes of the freed blocks.
    pub(super) fn freed(&self) -> i64 {
        (self.bytes - self.kept).max(0)
    }
}

/// Counted allocations with a breakdown by size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sized {
    /// All sizes together.
    pub(super) cell: Cell,
    /// Allocated bytes by size.
    pub(super) bytes: BySize,
    /// Kept bytes by size.
    pub(super) kept: BySize,
}

impl Sized {
    /// Counts allocations of one size.
    pub(super) fn of(size: u64, cell: Cell) -> Sized {
        let mut sized = Sized { cell, ..Sized::default() };
        sized.bytes[category(size)] = cell.bytes;
        sized.kept[category(size)] = cell.kept;
        sized
    }

    /// Adds another one.
    pub(super) fn add(&mut self, other: &Sized) {
        self.cell.add(&other.cell);
        (0..4).for_each(|at| {
            self.bytes[at] = self.bytes[at].saturating_add(other.bytes[at]);
            self.kept[at] = self.kept[at].saturating_add(other.kept[at]);
        });
    }
}

/// A place of a chain: the function, and the distance of the call from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The function's place among [`Exact::names`].
    pub(super) function: usize,
    /// The number of its name, which others may have too.
    pub(super) name: usize,
    /// The distance in bytes.
    pub(super) offset: u64,
}

/// Allocations of one size by one chain.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The functions, innermost first, up to `main`.
    pub(super) chain: Vec<Link>,
    /// Index of the stack in the profile.
    pub(super) stack: usize,
    /// The requested size; the mean usable one if the file has no sizes.
    pub(super) size: u64,
    /// The numbers.
    pub(super) cell: Cell,
}

/// Returns the blocks of a report.
pub(super) fn of(report: &Report, exact: &Exact) -> Vec<Block> {
    let block = |sample: &Sample| {
        let (size, cell) = size_and_cell(sample);
        let frames = report.calls(sample.stack);
        let link = |frame: &Frame| {
            let (function, name) = (exact.place(frame.exact), frame.function);
            Link { function, name, offset: frame.offset }
        };
        Block { chain: frames.map(link).collect(), stack: sample.stack, size, cell }
    };
    report.profile().samples.iter().map(block).collect()
}

fn size_and_cell(sample: &Sample) -> (u64, Cell) {
    let counts = &sample.counts;
    let (allocs, live) = (counts.allocs, counts.live);
    match sample.size.and_then(|size| i64::try_from(size).ok()) {
        Some(size) => {
            let cell = Cell { allocs, bytes: size * allocs, live, kept: size * live };
            (size.unsigned_abs(), cell)
        }
        None => {
            let (bytes, kept) = (counts.alloc_bytes, counts.live_bytes);
            (sample.mean_size(), Cell { allocs, bytes, live, kept })
        }
    }
}

/// The sum of all blocks.
pub(super) fn total(blocks: &[Block]) -> Sized {
    let mut total = Sized::default();
    blocks.iter().for_each(|block| total.add(&Sized::of(block.size, block.cell)));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Counts;

    #[test]
    fn sizes_are_requested_ones_or_the_mean_of_usable_ones() {
        let counts = Counts { allocs: 4, alloc_bytes: 64, live: 1, live_bytes: 16 };
        let sample = Sample { counts, size: Some(13), ..Sample::default() };
        let cell = Cell { allocs: 4, bytes: 52, live: 1, kept: 13 };
        assert_eq!(size_and_cell(&sample), (13, cell));
        assert_eq!((cell.frees(), cell.freed()), (3, 39));
        let sample = Sample { size: None, ..sample };
        let cell = Cell { allocs: 4, bytes: 64, live: 1, kept: 16 };
        assert_eq!(size_and_cell(&sample), (16, cell));
        assert_eq!(size_and_cell(&Sample::default()), (0, Cell::default()));
    }
}
