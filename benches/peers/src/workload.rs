//! What a workload is, and the table of all of them. Names and shapes are those of `benches/c`.

mod batch;
mod class;
mod grow;
mod idle;
mod large;
mod pair;
mod producer;
mod random;
mod sharing;
mod succession;
mod threads;
mod transfer;

use crate::rest;
use std::hint::black_box;
use std::time::Instant;

/// One workload: prepared outside the clock, run inside it.
pub(crate) trait Workload {
    /// As in the runner's table.
    fn name(&self) -> &'static str;
    /// Operations of a full run.
    fn full(&self) -> u64;
    /// What comes before the clock starts.
    fn prepare(&mut self) {}
    /// About `operations` of them; the answer is how many there really were.
    fn run(&mut self, operations: u64) -> u64;
    /// What comes after the clock has stopped and before the process idles.
    fn finish(&mut self) {}
}

/// What one run took.
pub(crate) struct Span {
    pub(crate) operations: u64,
    pub(crate) wall_ns: u128,
}

/// Every workload, one box each.
pub(crate) fn all() -> Vec<Box<dyn Workload>> {
    let mut table = pair::all();
    table.extend(batch::all());
    table.extend(random::all());
    table.extend(grow::all());
    table.extend(threads::all());
    table.extend(succession::all());
    table.extend(class::all());
    table.extend(transfer::all());
    table.extend(sharing::all());
    table.extend(idle::all());
    table.extend(producer::all());
    table.extend(large::all());
    table
}

/// Runs `scale` per cent of a workload.
pub(crate) fn measure(mut workload: Box<dyn Workload>, scale: u64) -> Span {
    workload.prepare();
    let operations = (workload.full() * scale / 100).max(1);
    let begun = Instant::now();
    let operations = workload.run(operations);
    let span = Span { operations, wall_ns: begun.elapsed().as_nanos() };
    workload.finish();
    drop(workload);
    rest::here();
    span
}

/// xorshift64: the same numbers in every run, for every allocator.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new() -> Self {
        Self::of(0)
    }

    /// Another sequence for every thread.
    pub(crate) const fn of(thread: u64) -> Self {
        Self(88_172_645_463_325_252 + thread)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is under 2^32.
    pub(crate) const fn below(&mut self, end: usize) -> usize {
        (((self.next() >> 32) * end as u64) >> 32) as usize
    }
}

/// Sizes 16..1023, uniform in their logarithm, as programs ask for them: made once, read in a ring.
pub(crate) static SIZES: [u16; 4096] = size_ring();

const fn size_ring() -> [u16; 4096] {
    let mut ring = [0; 4096];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut i = 0;
    while i < ring.len() {
        let octave = 16u64 << ((random.next() >> 32) % 6);
        ring[i] = (octave + (random.next() >> 32) % octave) as u16;
        i += 1;
    }
    ring
}

/// Numbers `0..count`, in a random order that is the same in every run.
pub(crate) fn shuffled(count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    let mut random = Random::new();
    for i in (1..count).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

/// A block of that many bytes: its first bytes are written, and one byte of every further page.
pub(crate) fn touched(size: usize) -> Vec<u8> {
    let mut block: Vec<u8> = Vec::with_capacity(size);
    let spare = block.spare_capacity_mut();
    spare[..size.min(16)].iter_mut().for_each(|byte| _ = byte.write(1));
    spare.iter_mut().skip(4096).step_by(4096).for_each(|byte| _ = byte.write(1));
    black_box(block)
}

/// A block of a size from the ring, its first byte written.
pub(crate) fn mixed_block(i: u64) -> Vec<u8> {
    let mut block = Vec::with_capacity(usize::from(SIZES[i as usize % SIZES.len()]));
    block.push(i as u8);
    block
}
