//! An alloc/dealloc pair: the shortest way through the allocator, always the same block.

use super::{SIZES, Workload};
use std::hint::black_box;

/// `Box<[u8; 32]>`: the layout is a constant, the code may be inlined.
struct Pair;

impl Workload for Pair {
    fn name(&self) -> &'static str {
        "pair"
    }

    fn full(&self) -> u64 {
        100_000_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        for _ in 0..operations {
            let block = Box::<[u8; 32]>::new_uninit();
            black_box(block.as_ptr());
        }
        operations
    }
}

/// A size that changes: the layout is known at run time only.
struct PairMixed;

impl Workload for PairMixed {
    fn name(&self) -> &'static str {
        "pair-mixed"
    }

    fn full(&self) -> u64 {
        40_000_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        for i in 0..operations {
            let block = Vec::<u8>::with_capacity(usize::from(SIZES[i as usize % SIZES.len()]));
            black_box(block.as_ptr());
        }
        operations
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(Pair), Box::new(PairMixed)]
}
