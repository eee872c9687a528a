//! A thousand blocks of 64 bytes allocated, then all freed: last first (LIFO) or first first
//! (FIFO).

use super::Workload;
use std::hint::black_box;

const BATCH: usize = 1000;

struct Batches {
    name: &'static str,
    last_first: bool,
    slots: Vec<Option<Box<[u64; 8]>>>,
}

impl Batches {
    fn new(name: &'static str, last_first: bool) -> Self {
        Self { name, last_first, slots: Vec::new() }
    }

    fn fill_and_empty(&mut self) {
        for (i, slot) in self.slots.iter_mut().enumerate() {
            *slot = Some(black_box(Box::new([i as u64; 8])));
        }
        if self.last_first {
            self.slots.iter_mut().rev().for_each(|slot| *slot = None);
        } else {
            self.slots.iter_mut().for_each(|slot| *slot = None);
        }
    }
}

impl Workload for Batches {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        30_000_000
    }

    fn prepare(&mut self) {
        self.slots.resize_with(BATCH, || None);
        self.fill_and_empty();
    }

    fn run(&mut self, operations: u64) -> u64 {
        let rounds = operations.div_ceil(BATCH as u64);
        (0..rounds).for_each(|_| self.fill_and_empty());
        rounds * BATCH as u64
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(Batches::new("lifo", true)), Box::new(Batches::new("fifo", false))]
}
