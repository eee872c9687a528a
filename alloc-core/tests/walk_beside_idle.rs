//! Live blocks are walked over while the caches of sleeping threads are emptied.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::{observe, raw};
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

const THREADS: usize = 48;
const ROUNDS: usize = 6;
/// Caches that were emptied for each round before the threads wake.
const EMPTIED: u64 = 30;

#[test]
fn what_is_live_is_found_while_idle_caches_are_emptied() {
    play_well("idle", "background_thread:true,dirty_decay_ms:100,muzzy_decay_ms:0");
}

#[test]
#[ignore = "the scenario of the test above"]
fn child() {
    match scenario().as_deref() {
        Some("idle") => idle(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

fn malloc(size: usize) -> usize {
    let block = raw::malloc(size);
    assert!(!block.is_null(), "{size}");
    block.expose_provenance()
}

fn free(block: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
}

/// Threads free half of their blocks and sleep, until many caches were emptied.
fn idle() {
    let barrier = Barrier::new(THREADS + 1);
    let sleeper = || {
        for _ in 0..ROUNDS {
            // Use that falls, so that there is something to give back.
            free(malloc(4 << 20));
            // A cache that works may hold more, and one that holds little is left alone.
            (0..20).for_each(|_| allocate().into_iter().for_each(free));
            let blocks = allocate();
            blocks.iter().step_by(2).copied().for_each(free);
            barrier.wait();
            barrier.wait();
            blocks.into_iter().skip(1).step_by(2).for_each(free);
        }
    };
    let mut wrong = 0;
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| _ = scope.spawn(sleeper));
        for round in 1..=ROUNDS as u64 {
            barrier.wait();
            let expected = live();
            while observe::totals().work.caches_emptied < round * EMPTIED {
                wrong += usize::from(live() != expected);
            }
            barrier.wait();
        }
    });
    assert_eq!(wrong, 0);
}

fn allocate() -> Vec<usize> {
    (0..400).map(|n| malloc(64 + n % 4 * 48)).collect()
}

fn live() -> BTreeSet<usize> {
    observe::blocks(None).map(|block| block.address).collect()
}
