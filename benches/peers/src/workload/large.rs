//! Large blocks: `large` (5 to 25 MiB, 20 live, every byte written), `extents` (32 KiB to 2 MiB,
//! 100 live, every page written to) and `buffers` (an asynchronous server's: 16 to 32 KiB filled by
//! one thread, freed by another).

use super::{Random, Workload, touched};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

struct Lives {
    name: &'static str,
    full: u64,
    slots: Vec<Vec<u8>>,
    fresh: fn(u64) -> Vec<u8>,
}

fn large(random: u64) -> Vec<u8> {
    vec![random as u8 | 1; (5 << 20) + (random >> 20) as usize % (20 << 20)]
}

fn extent(random: u64) -> Vec<u8> {
    let octave = (32 << 10) << ((random >> 20) % 6);
    touched(octave + (random >> 40) as usize % octave)
}

impl Workload for Lives {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        self.full
    }

    fn run(&mut self, operations: u64) -> u64 {
        let mut random = Random::new();
        for _ in 0..operations {
            let at = random.below(self.slots.len());
            self.slots[at] = Vec::new();
            self.slots[at] = (self.fresh)(random.next());
        }
        operations
    }
}

const GROUP: usize = 16;
const IN_FLIGHT: usize = 32;

type Group = Vec<Vec<u8>>;

fn receive(filled: &SyncSender<Group>, groups: u64, side: u64) {
    let mut random = Random::of(side);
    for _ in 0..groups {
        let buffer = |_| vec![random.next() as u8 | 1; (16 << 10) + random.below(16 << 10)];
        filled.send((0..GROUP).map(buffer).collect()).expect("somebody answers");
    }
}

fn answer(filled: &Mutex<Receiver<Group>>, groups: u64) {
    let mut sum = 0;
    for _ in 0..groups {
        let group = filled.lock().expect("nobody panics").recv().expect("somebody sends");
        for buffer in group {
            sum += buffer.iter().step_by(64).map(|&byte| u64::from(byte)).sum::<u64>();
        }
    }
    black_box(sum);
}

struct Buffers {
    name: &'static str,
    sides: u64,
}

impl Workload for Buffers {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        256_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        let groups = operations / GROUP as u64 / self.sides + 1;
        let (sender, receiver) = sync_channel(IN_FLIGHT);
        let receiver = Mutex::new(receiver);
        thread::scope(|scope| {
            for side in 0..self.sides {
                let sender = sender.clone();
                scope.spawn(move || receive(&sender, groups, side));
                scope.spawn(|| answer(&receiver, groups));
            }
        });
        groups * GROUP as u64 * self.sides
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    let lives = |name, full, live, fresh| -> Box<dyn Workload> {
        Box::new(Lives { name, full, slots: vec![Vec::new(); live], fresh })
    };
    vec![
        lives("large", 120, 20, large),
        lives("extents", 80_000, 100, extent),
        Box::new(Buffers { name: "buffers-2", sides: 1 }),
        Box::new(Buffers { name: "buffers-16", sides: 8 }),
    ]
}
