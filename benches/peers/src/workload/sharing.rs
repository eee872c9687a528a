//! False sharing: two threads write to small blocks of their own, all the time. `thrash`: each
//! allocates its blocks itself (Hoard's cache-thrash); `scratch`: each begins by freeing a block
//! that one thread allocated beside the other's (cache-scratch).

use super::Workload;
use std::hint::black_box;
use std::thread;

const THREADS: u64 = 2;
const WRITES: usize = 500;

fn write_on(first: Option<Box<[u8; 8]>>, blocks: u64) {
    drop(first);
    for _ in 0..blocks {
        let mut block = Box::new([0_u8; 8]);
        for i in 0..WRITES {
            let byte = &mut black_box(&mut block)[i % 8];
            *byte = byte.wrapping_add(1);
        }
    }
}

struct Sharing {
    name: &'static str,
    passive: bool,
}

impl Workload for Sharing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn full(&self) -> u64 {
        800_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        let blocks = operations.div_ceil(THREADS);
        let firsts: Vec<Option<Box<[u8; 8]>>> =
            (0..THREADS).map(|_| self.passive.then(|| Box::new([0; 8]))).collect();
        thread::scope(|scope| {
            for first in firsts {
                scope.spawn(move || write_on(first, blocks));
            }
        });
        blocks * THREADS
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![
        Box::new(Sharing { name: "thrash", passive: false }),
        Box::new(Sharing { name: "scratch", passive: true }),
    ]
}
