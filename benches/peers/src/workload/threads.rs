//! A producer and a consumer thread, or eight of each: `exchange` (both at once, batches through a
//! locked queue, xmalloc-test's shape) and `handover` (in turns). The batches themselves are
//! recycled, so that only the blocks are measured.

use super::{SIZES, Workload, shuffled};
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Condvar, Mutex};
use std::thread;

const BATCH: usize = 4096;
const IN_FLIGHT: usize = 64;

/// A kind of block that one thread makes and another drops.
trait Block: Send + 'static {
    fn fresh(i: usize) -> Self;
}

impl Block for Box<[u8; 64]> {
    fn fresh(i: usize) -> Self {
        black_box(Box::new([i as u8; 64]))
    }
}

impl Block for Vec<u8> {
    fn fresh(i: usize) -> Self {
        let mut block = Self::with_capacity(usize::from(SIZES[i % SIZES.len()]));
        block.extend_from_slice(&[i as u8; 16]);
        block
    }
}

/// Batches waiting for the other side.
struct Shelf<T>(Mutex<VecDeque<Vec<T>>>, Condvar);

impl<T> Shelf<T> {
    fn new(batches: usize) -> Self {
        let mut queue = VecDeque::with_capacity(IN_FLIGHT);
        queue.extend((0..batches).map(|_| Vec::with_capacity(BATCH)));
        Self(Mutex::new(queue), Condvar::new())
    }

    fn put(&self, batch: Vec<T>) {
        self.0.lock().expect("nobody panics").push_back(batch);
        self.1.notify_one();
    }

    fn take(&self) -> Vec<T> {
        let queue = self.0.lock().expect("nobody panics");
        let mut queue = self.1.wait_while(queue, |q| q.is_empty()).expect("nobody panics");
        queue.pop_front().expect("waited for it")
    }
}

fn exchange<T: Block>(operations: u64, sides: u64) -> u64 {
    let batches = operations.div_ceil(BATCH as u64 * sides);
    let (full, empty) = (Shelf::<T>::new(0), Shelf::<T>::new(IN_FLIGHT));
    let consume = || {
        for _ in 0..batches {
            let mut batch = full.take();
            batch.clear();
            empty.put(batch);
        }
    };
    let produce = || {
        for _ in 0..batches {
            let mut batch = empty.take();
            batch.extend((0..BATCH).map(T::fresh));
            full.put(batch);
        }
    };
    thread::scope(|scope| {
        (0..sides).for_each(|_| _ = scope.spawn(consume));
        (1..sides).for_each(|_| _ = scope.spawn(produce));
        produce();
    });
    batches * sides * BATCH as u64
}

const HANDED: usize = 100_000;

fn handover<T: Block>(operations: u64, order: &[u32]) -> u64 {
    let turns = operations.div_ceil(HANDED as u64);
    let (full, empty) = (Shelf::new(0), Shelf::new(0));
    empty.put((0..HANDED).map(|_| None).collect());
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..turns {
                let mut slots: Vec<Option<T>> = full.take();
                order.iter().for_each(|&at| slots[at as usize] = None);
                empty.put(slots);
            }
        });
        for _ in 0..turns {
            let mut slots = empty.take();
            slots.iter_mut().enumerate().for_each(|(i, slot)| *slot = Some(T::fresh(i)));
            full.put(slots);
        }
    });
    turns * HANDED as u64
}

struct Exchange {
    name: &'static str,
    full: u64,
    /// As many producers as consumers.
    sides: u64,
    run: fn(u64, u64) -> u64,
}

impl Workload for Exchange {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.full
    }

    fn run(&mut self, operations: u64) -> u64 {
        (self.run)(operations, self.sides)
    }
}

struct Handover {
    name: &'static str,
    full: u64,
    shuffled: bool,
    run: fn(u64, &[u32]) -> u64,
    order: Vec<u32>,
}

impl Workload for Handover {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.full
    }

    fn prepare(&mut self) {
        self.order = if self.shuffled { shuffled(HANDED) } else { (0..HANDED as u32).collect() };
    }

    fn run(&mut self, operations: u64) -> u64 {
        (self.run)(operations, &self.order)
    }
}

type Fixed = Box<[u8; 64]>;
type Mixed = Vec<u8>;

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let both = |name, full, sides, run| -> Box<dyn Workload> {
        Box::new(Exchange { name, full, sides, run })
    };
    let turn = |name, full, shuffled, run| -> Box<dyn Workload> {
        Box::new(Handover { name, full, shuffled, run, order: Vec::new() })
    };
    vec![
        both("exchange-64", 16_000_000, 1, exchange::<Fixed>),
        both("exchange-mixed", 8_000_000, 1, exchange::<Mixed>),
        both("exchange-16", 8_000_000, 8, exchange::<Mixed>),
        turn("handover-64", 15_000_000, false, handover::<Fixed>),
        turn("handover-shuffled", 10_000_000, true, handover::<Fixed>),
        turn("handover-mixed", 6_000_000, false, handover::<Mixed>),
    ]
}
