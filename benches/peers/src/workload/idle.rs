//! Two thousand threads that each did a little work and now wait, as the threads of a pool do.

use super::{SIZES, Workload, touched};
use crate::rest;
use std::sync::Barrier;
use std::thread::{self, JoinHandle};

const BLOCKS: usize = 500;
const KEPT: usize = 10;

/// The waiting threads, and what they wait for.
#[derive(Default)]
struct IdleThreads(Vec<JoinHandle<()>>, Option<&'static Barrier>);

fn work(seed: usize) -> Vec<Vec<u8>> {
    let size = |i| usize::from(SIZES[(seed * BLOCKS + i) % SIZES.len()]);
    let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|i| touched(size(i))).collect();
    blocks.truncate(KEPT);
    blocks
}

impl Workload for IdleThreads {
    fn name(&self) -> &'static str {
        "idle-threads"
    }

    fn full(&self) -> u64 {
        2000 * BLOCKS as u64
    }

    fn run(&mut self, operations: u64) -> u64 {
        let count = operations.div_ceil(BLOCKS as u64) as usize;
        // The threads outlive this call.
        let idle: &Barrier = Box::leak(Box::new(Barrier::new(count + 1)));
        let over: &Barrier = Box::leak(Box::new(Barrier::new(count + 1)));
        for seed in 0..count {
            let wait = move || {
                let kept = work(seed);
                idle.wait();
                over.wait();
                drop(kept);
            };
            let thread = thread::Builder::new().stack_size(64 << 10).spawn(wait);
            self.0.push(thread.expect("a thread can be had"));
        }
        idle.wait();
        self.1 = Some(over);
        (count * BLOCKS) as u64
    }

    fn finish(&mut self) {
        rest::here();
        if let Some(over) = self.1 {
            over.wait();
        }
        self.0.drain(..).for_each(|thread| thread.join().expect("nobody panics"));
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(IdleThreads::default())]
}
