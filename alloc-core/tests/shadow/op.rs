//! One step of a random program, and how programs are made.

use super::super::common::random::Random;
use lumalloc::raw::Flags;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

/// The number of threads of a program.
pub(crate) const THREADS: usize = 4;

/// Flags as plain numbers: lg of the alignment, zeroed, past the caches, from an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) lg_align: u32,
    pub(crate) zero: bool,
    pub(crate) uncached: bool,
    pub(crate) arena: Option<u32>,
}

impl How {
    /// The alignment in bytes.
    pub(crate) fn align(self) -> usize {
        1 << self.lg_align
    }

    /// The [`Flags`] for the interface.
    pub(crate) fn flags(self) -> Flags {
        let mut flags = Flags::NONE.align(self.align());
        if self.zero {
            flags = flags.zeroed();
        }
        if self.uncached {
            flags = flags.uncached();
        }
        self.arena.map_or(flags, |arena| flags.arena(arena))
    }
}

/// One step. `which` selects a live block.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Malloc(usize),
    Calloc(usize),
    Aligned {
        size: usize,
        lg_align: u32,
        zero: bool,
    },
    Allocate(usize, How),
    Realloc {
        which: usize,
        size: usize,
    },
    ReallocAligned {
        which: usize,
        size: usize,
        lg_align: u32,
    },
    Reallocate {
        which: usize,
        size: usize,
        how: How,
    },
    Resize {
        which: usize,
        size: usize,
        extra: usize,
        zero: bool,
    },
    Free(usize),
    /// Frees by a size between the requested and the usable one, at so many 256ths of the way.
    FreeSized(usize, usize),
    FreeUncached(usize),
    Purge(u32),
    Flush,
    Totals,
}

/// A size: tiny, at the edge of a class, around 32 KiB, large, or impossible.
fn size() -> impl Strategy<Value = usize> {
    let edge = (7..26u32, 0..=4usize, 0..3usize)
        .prop_map(|(lg, step, off)| (1 << lg) + (step << (lg - 2)) + off - 1);
    let huge = prop_oneof![
        (lumalloc::MAX_SIZE - 10)..=usize::MAX,
        (isize::MAX as usize - 10)..=(isize::MAX as usize + 10),
        (1usize << 47)..(1 << 62),
    ];
    prop_oneof![
        10 => 0..=130usize,
        10 => edge,
        5 => 0..=4096usize,
        5 => (16usize << 10)..=(40 << 10),
        3 => 0..=(1usize << 20),
        1 => 0..=(64usize << 20),
        1 => huge,
    ]
}

fn how() -> impl Strategy<Value = How> {
    let arena = prop_oneof![2 => Just(None), 1 => (0..6u32).prop_map(Some)];
    (0..=21u32, any::<bool>(), any::<bool>(), arena)
        .prop_map(|(lg_align, zero, uncached, arena)| How { lg_align, zero, uncached, arena })
}

/// Any step.
pub(crate) fn any_op() -> impl Strategy<Value = Op> {
    let which = any::<u16>().prop_map(usize::from);
    let (size, lg) = (size().boxed(), 0..=21u32);
    prop_oneof![
        10 => size.clone().prop_map(Op::Malloc),
        5 => size.clone().prop_map(Op::Calloc),
        5 => (size.clone(), lg.clone(), any::<bool>())
            .prop_map(|(size, lg_align, zero)| Op::Aligned { size, lg_align, zero }),
        6 => (size.clone(), how()).prop_map(|(size, how)| Op::Allocate(size, how)),
        6 => (which.clone(), size.clone()).prop_map(|(which, size)| Op::Realloc { which, size }),
        3 => (which.clone(), size.clone(), lg)
            .prop_map(|(which, size, lg_align)| Op::ReallocAligned { which, size, lg_align }),
        5 => (which.clone(), size.clone(), how())
            .prop_map(|(which, size, how)| Op::Reallocate { which, size, how }),
        4 => (which.clone(), size.clone(), size, any::<bool>())
            .prop_map(|(which, size, extra, zero)| Op::Resize { which, size, extra, zero }),
        8 => which.clone().prop_map(Op::Free),
        6 => (which.clone(), 0..=256usize).prop_map(|(which, part)| Op::FreeSized(which, part)),
        4 => which.prop_map(Op::FreeUncached),
        1 => (0..6u32).prop_map(Op::Purge),
        1 => Just(Op::Flush),
        3 => Just(Op::Totals),
    ]
}

/// A program of any steps, which the seed determines.
pub(crate) fn any_program(seed: u8, steps: usize) -> Vec<(usize, Op)> {
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
    let program = prop::collection::vec((0..THREADS, any_op()), steps);
    program.new_tree(&mut runner).expect("a program").current()
}

/// A long program of few sizes.
pub(crate) fn long_program(seed: u64, steps: usize) -> Vec<(usize, Op)> {
    let mut random = Random::new(seed);
    let sizes: Vec<usize> = (0..6).map(|_| random.size()).collect();
    // Phases of growth and of decline.
    let mut grows = true;
    let step = |_| {
        if random.below(200) == 0 {
            grows = !grows;
        }
        let (size, which) = (sizes[random.below(6)], random.below(1 << 16));
        let allocates = random.below(10) < if grows { 7 } else { 2 };
        let op = match (allocates, random.below(12)) {
            (true, 0..8) => Op::Malloc(size),
            (true, 8..10) => Op::Calloc(size),
            (true, _) => Op::Allocate(size, uncached(random.below(3) as u32)),
            (false, 0..5) => Op::Free(which),
            (false, 5..8) => Op::FreeSized(which, random.below(257)),
            (false, 8) => Op::FreeUncached(which),
            (false, 9) => Op::Realloc { which, size },
            (false, 10) => Op::Totals,
            (false, _) if random.below(10) == 0 => Op::Purge(random.below(6) as u32),
            (false, _) => Op::Flush,
        };
        (random.below(THREADS), op)
    };
    (0..steps).map(step).collect()
}

fn uncached(arena: u32) -> How {
    How { lg_align: 0, zero: false, uncached: true, arena: Some(arena) }
}
