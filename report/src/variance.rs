//! How far an estimate may be from the truth.
//!
//! A block of `s` bytes is sampled with the chance `p = 1 - e^(-s / R)`, where `R` is the mean
//! number of bytes between two samples. `k` samples of that size stand for `k / p` blocks. The
//! variance of this estimate is `k (1 - p) / p²`, that of its bytes `s²` times as much.

use crate::profile::Counts;

/// What is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Blocks that are live.
    Live,
    /// Allocations since the start.
    Allocated,
}

impl Kind {
    /// Both, in their order as indices.
    pub(crate) const ALL: [Kind; 2] = [Kind::Live, Kind::Allocated];

    /// The number of blocks.
    pub(crate) fn blocks(self, counts: &Counts) -> i64 {
        match self {
            Kind::Live => counts.live,
            Kind::Allocated => counts.allocs,
        }
    }

    /// Their bytes.
    pub(crate) fn bytes(self, counts: &Counts) -> i64 {
        match self {
            Kind::Live => counts.live_bytes,
            Kind::Allocated => counts.alloc_bytes,
        }
    }
}

/// What is known about the samples of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// The number of blocks.
    pub(crate) blocks: f64,
    /// The number of samples.
    pub(crate) samples: f64,
    /// Bytes of a block.
    pub(crate) size: f64,
    /// The variance of the number of blocks; 0 if each was counted.
    pub(crate) variance: f64,
}

/// Returns the chance that a block of this size is sampled.
pub(crate) fn chance(size: f64, period: u64) -> f64 {
    -f64::exp_m1(-size / period as f64)
}

/// Returns what is known about estimates that were made from samples of this period.
pub(crate) fn of(counts: Counts, kind: Kind, period: u64) -> Estimate {
    let (blocks, bytes) = (kind.blocks(&counts) as f64, kind.bytes(&counts) as f64);
    of_blocks(blocks, bytes / blocks, period)
}

/// As [`of`], for a sample of a class of this size.
pub(crate) fn of_sample(counts: Counts, kind: Kind, size: f64, period: u64) -> Estimate {
    of_class(kind.blocks(&counts), kind.bytes(&counts), 1, size, period)
}

/// As [`of`], for blocks of a class of this size. Their number was rounded, `parts` times. Their
/// bytes were not, so they tell it, unless only a part of each block counts.
pub(crate) fn of_class(blocks: i64, bytes: i64, parts: usize, size: f64, period: u64) -> Estimate {
    let (blocks, bytes) = (blocks as f64, bytes as f64);
    let told = bytes / size;
    if (told - blocks).abs() <= 0.5 * parts as f64 + 0.01 {
        return of_blocks(told, size, period);
    }
    of_blocks(blocks, bytes / blocks, period)
}

fn of_blocks(blocks: f64, size: f64, period: u64) -> Estimate {
    if blocks <= 0.0 {
        return Estimate { blocks, samples: blocks, ..Estimate::default() };
    }
    let chance = chance(size, period);
    if period <= 1 || chance <= 0.0 {
        return Estimate { blocks, samples: blocks, size, variance: 0.0 };
    }
    let variance = blocks * (1.0 - chance) / chance;
    Estimate { blocks, samples: blocks * chance, size, variance }
}
