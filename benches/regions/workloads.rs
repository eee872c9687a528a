//! The workloads. They are the same for every heap.

use crate::heaps::{Heap, link, set_link, touch};
use std::hint::black_box;
use std::ptr::NonNull;

/// The slots of the table whose blocks are replaced, and the largest of them.
const SLOTS: usize = 4096;
const LARGEST: usize = 512;

/// The blocks of a list. More operations are several lists, one after the other.
const LIST: usize = 1_000_000;

/// The size of what is allocated and freed again at once.
const PAIR: usize = 64;

/// The size of a node of a list.
const NODE: usize = 32;

/// The bytes of the line.
const LINE: usize = 41 << 20;

/// A function that runs so many operations.
pub(crate) type Work = fn(usize);

/// The workload of a name.
pub(crate) fn named<H: Heap>(name: &str) -> Option<Work> {
    Some(match name {
        "replace" => replace::<H>,
        "pairs" => pairs::<H>,
        "build" => build::<H>,
        "list" => list::<H>,
        "line" => line::<H>,
        _ => return None,
    })
}

/// xorshift64: the same numbers in every run, for every heap.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 as usize
    }

    fn size(&mut self) -> usize {
        1 + (self.next() >> 20) % LARGEST
    }
}

/// Replaces blocks of random sizes at random slots of a table.
fn replace<H: Heap>(operations: usize) {
    let (heap, mut random) = (H::open(), Random(12345));
    let new = |random: &mut Random| {
        let size = random.size();
        (heap.alloc(size), size)
    };
    let mut slots: Vec<_> = (0..SLOTS).map(|_| new(&mut random)).collect();
    for _ in 0..operations {
        let at = random.next() % SLOTS;
        let (block, size) = slots[at];
        heap.free(block, size);
        slots[at] = new(&mut random);
    }
    for (block, size) in slots {
        heap.free(block, size);
    }
}

/// Allocates a block and frees it.
fn pairs<H: Heap>(operations: usize) {
    let heap = H::open();
    for _ in 0..operations {
        heap.free(black_box(heap.alloc(PAIR)), PAIR);
    }
}

/// Builds lists of small blocks, and drops each as a whole.
fn build<H: Heap>(operations: usize) {
    lists::<H>(operations, |at| 16 + at % 64, H::DROPS);
}

/// Builds lists of nodes of one size, and frees each node.
fn list<H: Heap>(operations: usize) {
    lists::<H>(operations, |_| NODE, false);
}

fn lists<H: Heap>(mut operations: usize, size: impl Fn(usize) -> usize, drops: bool) {
    while operations > 0 {
        let length = operations.min(LIST);
        let heap = H::open();
        let mut first = None;
        for at in 0..length {
            let block = heap.alloc(size(at));
            set_link(block, first);
            first = Some(block);
        }
        if !drops {
            free_all(&heap, first, length, &size);
        }
        operations -= length;
    }
}

/// Frees the blocks of a list, the one that was made last first.
fn free_all<H: Heap>(
    heap: &H,
    mut first: Option<NonNull<u8>>,
    length: usize,
    size: impl Fn(usize) -> usize,
) {
    for at in (0..length).rev() {
        let Some(block) = first else { break };
        first = link(block);
        heap.free(block, size(at));
    }
}

/// Reads a line whose end is not known: each operation makes it longer, and fills what is new.
fn line<H: Heap>(operations: usize) {
    let heap = H::open();
    let step = LINE / operations;
    let (mut size, mut line) = (step, heap.alloc(step));
    for _ in 1..operations {
        line = heap.resize(line, size, size + step);
        (size..size + step).step_by(4096).for_each(|at| touch(line, at));
        size += step;
    }
    heap.free(line, size);
}
