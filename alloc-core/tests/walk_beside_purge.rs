//! Live blocks are walked over beside a purge, which gives back what caches keep and nothing else.
#![allow(unsafe_code)]

use lumalloc::control;
use lumalloc::observe::{self, Block};
use lumalloc::raw::{self, Flags};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

/// Purges beside which the blocks are compared.
const ROUNDS: usize = 100;

/// A thread holds some of the blocks that it allocated, and waits. Its cache keeps others until
/// they are purged. Meanwhile the blocks are compared again and again.
#[test]
fn what_is_live_is_found_and_counted_while_pages_are_purged() {
    let barrier = Barrier::new(3);
    let held = Mutex::new(BTreeSet::new());
    let [is_walking, is_purged] = [(); 2].map(|()| AtomicBool::new(false));
    let owner = || {
        for _ in 0..ROUNDS {
            let sizes = (0..200).map(|n| [40 << 10, 300 << 10, 5000, 100][n % 4]);
            let made = sizes.map(allocate).collect::<Vec<usize>>();
            for (n, block) in made.into_iter().enumerate() {
                if n / 4 % 2 == 0 {
                    free(block)
                } else {
                    assert!(held.lock().unwrap().insert(block))
                }
            }
            barrier.wait();
            barrier.wait();
            std::mem::take(&mut *held.lock().unwrap()).into_iter().for_each(free);
        }
    };
    let purger = || {
        for round in 0..ROUNDS {
            barrier.wait();
            while !is_walking.swap(false, Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            // So that purges begin at various places of a walk.
            (0..round * 50).for_each(|_| std::hint::spin_loop());
            assert!(control::purge(control::ARENAS_ALL));
            is_purged.store(true, Ordering::SeqCst);
            barrier.wait();
        }
    };
    // Counted, because the others would wait for a thread that panics.
    let mut wrong = 0;
    thread::scope(|scope| {
        scope.spawn(owner);
        scope.spawn(purger);
        for round in 0..ROUNDS {
            barrier.wait();
            let expected = held.lock().unwrap();
            let found: Vec<Block> = observe::blocks(None).collect();
            let by_class = by_class(&found);
            wrong += usize::from(addresses(&found) != *expected);
            is_walking.store(true, Ordering::SeqCst);
            while !is_purged.swap(false, Ordering::SeqCst) {
                let is_right = match round % 2 {
                    0 => counted() == by_class,
                    _ => addresses(&observe::blocks(None).collect::<Vec<Block>>()) == *expected,
                };
                wrong += usize::from(!is_right);
            }
            drop(expected);
            barrier.wait();
        }
    });
    assert_eq!(wrong, 0);
}

fn allocate(size: usize) -> usize {
    let block = raw::allocate(size, Flags::NONE);
    assert!(!block.is_null(), "{size}");
    block.expose_provenance()
}

fn free(block: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::deallocate(std::ptr::with_exposed_provenance_mut(block), Flags::NONE) };
}

fn addresses(blocks: &[Block]) -> BTreeSet<usize> {
    blocks.iter().map(|block| block.address).collect()
}

/// How many of the blocks are of each class that has one.
fn by_class(blocks: &[Block]) -> BTreeMap<usize, u64> {
    let mut classes = BTreeMap::new();
    blocks.iter().for_each(|block| *classes.entry(block.usable).or_default() += 1);
    classes
}

/// The counts of live blocks of each class that has one.
fn counted() -> BTreeMap<usize, u64> {
    let mut classes = BTreeMap::new();
    observe::class_counts(|class| {
        if class.live > 0 {
            classes.insert(class.size, class.live);
        }
    });
    classes
}
