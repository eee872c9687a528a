//! A thread hands blocks of one size to two others, which free them, and goes on with other sizes,
//! as a reader of requests does between two large ones.

use super::{Workload, touched};
use crate::rest;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const HANDED_SIZE: usize = 4000;
const CONSUMERS: usize = 2;
const HELD: usize = 1000;

/// The producer at work, and what tells it to end.
#[derive(Default)]
struct Producer(Option<JoinHandle<()>>, Arc<AtomicBool>);

fn go_on() {
    let held: Vec<Vec<u8>> = (0..HELD).map(|i| touched(100 + i % 50)).collect();
    drop(held);
}

fn go_on_for_long(handed: usize, ready: &Sender<()>, is_over: &AtomicBool) {
    let mut blocks: Vec<Vec<u8>> = (0..handed).map(|_| touched(HANDED_SIZE)).collect();
    let shares = blocks.chunks_mut(handed.div_ceil(CONSUMERS));
    thread::scope(|scope| {
        for share in shares {
            scope.spawn(|| share.iter_mut().for_each(|block| *block = Vec::new()));
        }
    });
    drop(blocks);
    ready.send(()).expect("the other end waits");
    // Pairs with nothing: the join comes after it.
    while !is_over.load(Ordering::Relaxed) {
        go_on();
        thread::sleep(Duration::from_millis(1));
    }
}

impl Workload for Producer {
    fn name(&self) -> &'static str {
        "producer"
    }

    fn full(&self) -> u64 {
        100_000
    }

    fn run(&mut self, operations: u64) -> u64 {
        let (ready, is_ready) = mpsc::channel();
        let is_over = Arc::clone(&self.1);
        let work = move || go_on_for_long(operations as usize, &ready, &is_over);
        self.0 = Some(thread::spawn(work));
        is_ready.recv().expect("the producer lives");
        operations
    }

    fn finish(&mut self) {
        rest::here();
        self.1.store(true, Ordering::Relaxed);
        if let Some(thread) = self.0.take() {
            thread.join().expect("nobody panics");
        }
    }
}

pub(super) fn all() -> Vec<Box<dyn Workload>> {
    vec![Box::new(Producer::default())]
}
