//! Random replacement in a working set: free a random block, allocate another of another size.

use super::{Random, SIZES, Workload, mixed_block};
use std::hint::black_box;

type Fresh = fn(u64) -> Vec<u8>;

struct Replacement {
    name: &'static str,
    full: u64,
    set: usize,
    fresh: Fresh,
    slots: Vec<Vec<u8>>,
}

impl Workload for Replacement {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.full
    }

    fn prepare(&mut self) {
        self.slots = (0..self.set as u64).map(self.fresh).collect();
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut random = Random::new();
        for _ in 0..operations {
            let at = random.below(self.set);
            // Freed before the next is asked for, as a program that holds one value does.
            self.slots[at] = Vec::new();
            self.slots[at] = (self.fresh)(random.next() >> 20);
        }
        operations
    }
}

fn zeroed_block(i: u64) -> Vec<u8> {
    zeroed(usize::from(SIZES[i as usize % SIZES.len()]))
}

/// 1 MiB, one page of it used: who knows that fresh pages are zero does not write them.
fn zeroed_mebibyte(_: u64) -> Vec<u8> {
    zeroed(1 << 20)
}

fn zeroed(size: usize) -> Vec<u8> {
    let mut block = black_box(vec![0; size]);
    assert_eq!(block[0], 0, "a zeroed block that is not zero");
    block[0] = 1;
    block
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let row = |name, full, set, fresh: Fresh| -> Box<dyn Workload> {
        Box::new(Replacement { name, full, set, fresh, slots: Vec::new() })
    };
    vec![
        row("random-1e2", 30_000_000, 100, mixed_block),
        row("random-1e3", 20_000_000, 1000, mixed_block),
        row("random-1e5", 6_000_000, 100_000, mixed_block),
        row("random-1e6", 3_000_000, 1_000_000, mixed_block),
        row("calloc", 10_000_000, 1000, zeroed_block),
        row("calloc-large", 20_000, 8, zeroed_mebibyte),
    ]
}
