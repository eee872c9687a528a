//! Live blocks are walked over while threads end, whose caches give their blocks back.
#![allow(unsafe_code)]

use lumalloc::{observe, raw};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

const ROUNDS: usize = 2000;
const BLOCKS: usize = 64;
const SIZE: usize = 512;

/// The number of the last thread, and the blocks that it freed. None while it may have some.
static FREED: Mutex<(usize, BTreeSet<usize>)> = Mutex::new((0, BTreeSet::new()));
/// Walks that have begun.
static WALKS: AtomicUsize = AtomicUsize::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Frees blocks, lets walks begin, and ends.
fn free_and_end(number: usize) {
    *FREED.lock().unwrap() = (number, BTreeSet::new());
    let blocks = [(); BLOCKS].map(|()| raw::malloc(SIZE));
    assert!(blocks.iter().all(|block| !block.is_null()));
    let addresses = blocks.map(|block| block.expose_provenance());
    for block in blocks {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
    }
    FREED.lock().unwrap().1.extend(addresses);
    let begun = WALKS.load(Relaxed);
    while WALKS.load(Relaxed) < begun + 2 {
        thread::yield_now();
    }
}

/// Returns how many blocks a walk over all blocks returns that were freed before it, and that no
/// thread has requested again.
fn freed_before_a_walk() -> usize {
    let (number, freed) = FREED.lock().unwrap().clone();
    WALKS.fetch_add(1, Relaxed);
    let wrong = observe::blocks(None).filter(|block| freed.contains(&block.address)).count();
    if FREED.lock().unwrap().0 == number { wrong } else { 0 }
}

#[test]
fn what_a_thread_freed_before_a_walk_is_not_live_while_the_thread_ends() {
    let walker = thread::spawn(|| {
        let mut wrong = 0;
        while !IS_OVER.load(Relaxed) {
            wrong += freed_before_a_walk();
        }
        wrong
    });
    for number in 1..=ROUNDS {
        thread::spawn(move || free_and_end(number)).join().unwrap();
    }
    IS_OVER.store(true, Relaxed);
    assert_eq!(walker.join().unwrap(), 0);
}
