//! Blocks that wander between threads: `mstress` (threads swap random blocks through a common table
//! and all die each round, the idea of mimalloc's test-stress) and `batches` (each thread allocates
//! a batch of 8 to 16000 bytes, all of which its neighbour frees in another order, in lock step).

use super::{Random, SIZES, Workload, shuffled, touched};
use std::mem;
use std::sync::{Barrier, Mutex};
use std::thread;

const SLOTS: usize = 500;
const TABLE: usize = 1000;
const ROUNDS: u64 = 20;

/// A slot that threads swap with. The lock is an uncontended exchange nearly always.
type Common = Mutex<Vec<u8>>;

struct Worker {
    slots: Vec<Vec<u8>>,
    random: Random,
}

/// One block in 64 is up to 32 times as large, one in 1024 is 64 to 512 KiB.
fn wandering(random: u64) -> Vec<u8> {
    let small = usize::from(SIZES[(random >> 20) as usize % SIZES.len()]);
    touched(if random.is_multiple_of(1024) {
        (64 << 10) + (random >> 40) as usize % (448 << 10)
    } else if random.is_multiple_of(64) {
        small * (1 + (random >> 40) as usize % 32)
    } else {
        small
    })
}

impl Worker {
    fn wander(&mut self, table: &[Common], steps: u64) {
        let mut generator = self.random.clone();
        for _ in 0..steps {
            let random = generator.next();
            let slot = &mut self.slots[(random >> 32) as usize % SLOTS];
            if random >> 30 & 1 == 1 {
                let common = &table[(random >> 8) as usize % TABLE];
                mem::swap(slot, &mut common.lock().expect("nobody panics"));
            }
            *slot = Vec::new();
            *slot = wandering(random);
        }
        self.random = generator;
        self.slots.iter_mut().step_by(2).for_each(|slot| *slot = Vec::new());
    }
}

struct Stress {
    name: &'static str,
    threads: u64,
    workers: Vec<Worker>,
    table: Vec<Common>,
}

impl Workload for Stress {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        8_000_000
    }

    fn prepare(&mut self) {
        let worker = |t| Worker { slots: vec![Vec::new(); SLOTS], random: Random::of(t) };
        self.workers = (0..self.threads).map(worker).collect();
        self.table.resize_with(TABLE, Common::default);
    }

    fn run(&mut self, operations: u64) -> u64 {
        let steps = operations / self.threads / ROUNDS + 1;
        for _ in 0..ROUNDS {
            thread::scope(|scope| {
                for worker in &mut self.workers {
                    scope.spawn(|| worker.wander(&self.table, steps));
                }
            });
        }
        steps * ROUNDS * self.threads
    }
}

const BATCH: usize = 400;

/// 8 to 16000 bytes, uniform in their logarithm but for the last octave.
fn batch_size(random: u64) -> usize {
    let octave = 8 << ((random >> 32) % 11);
    (octave + (random >> 8) as usize % octave).min(16_000)
}

struct Batches {
    name: &'static str,
    threads: usize,
    order: Vec<u32>,
}

/// What a thread hands to its neighbour.
type Passed = Mutex<Vec<Vec<u8>>>;

fn pass_on(own: &Passed, neighbour: &Passed, order: &[u32], step: &Barrier, phases: u64, t: u64) {
    let mut random = Random::of(t);
    for _ in 0..phases {
        {
            let mut batch = own.lock().expect("nobody panics");
            batch.iter_mut().for_each(|slot| *slot = touched(batch_size(random.next())));
        }
        step.wait();
        {
            let mut batch = neighbour.lock().expect("nobody panics");
            order.iter().for_each(|&at| batch[at as usize] = Vec::new());
        }
        step.wait();
    }
}

impl Workload for Batches {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        6_400_000
    }

    fn prepare(&mut self) {
        self.order = shuffled(BATCH);
    }

    fn run(&mut self, operations: u64) -> u64 {
        let phases = operations / (self.threads * BATCH) as u64 + 1;
        let step = Barrier::new(self.threads);
        let passed: Vec<Passed> =
            (0..self.threads).map(|_| Mutex::new(vec![Vec::new(); BATCH])).collect();
        thread::scope(|scope| {
            for t in 0..self.threads {
                let (own, neighbour) = (&passed[t], &passed[(t + 1) % self.threads]);
                let (order, step) = (&self.order, &step);
                scope.spawn(move || pass_on(own, neighbour, order, step, phases, t as u64));
            }
        });
        phases * (self.threads * BATCH) as u64
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let stress = |name, threads| -> Box<dyn Workload> {
        Box::new(Stress { name, threads, workers: Vec::new(), table: Vec::new() })
    };
    let batches = |name, threads| -> Box<dyn Workload> {
        Box::new(Batches { name, threads, order: Vec::new() })
    };
    vec![
        stress("mstress-2", 2),
        stress("mstress-16", 16),
        stress("mstress-64", 64),
        batches("batches-1", 1),
        batches("batches-2", 2),
        batches("batches-16", 16),
        batches("batches-64", 64),
    ]
}
