//! The memory of blocks that a sleeping thread's slabs got back is used before the heap grows.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::control::limits;
use lumalloc::raw;
use std::sync::mpsc::channel;

const MIB: usize = 1 << 20;

/// Allocates 8 MiB of blocks of `size` bytes.
fn allocate(size: usize) -> Vec<usize> {
    (0..8 * MIB / size).map(|_| raw::malloc(size).expose_provenance()).collect()
}

fn free(blocks: Vec<usize>) {
    for block in blocks {
        // SAFETY: a live block, freed once.
        unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
    }
}

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    let Some(name) = scenario() else { return };
    assert_eq!(name, "sleeper", "no such scenario");
    let (hand_over, handed_over) = channel();
    let (end, ended) = channel::<()>();
    let sleeper = std::thread::spawn(move || {
        hand_over.send(allocate(128)).unwrap();
        // Sleeps until the other end is dropped.
        ended.recv().unwrap_err();
    });
    free(handed_over.recv().unwrap());
    let before = limits::held();
    let blocks = allocate(256);
    let grown = limits::held() - before;
    assert!(grown < 3 * MIB, "{grown}");
    drop(end);
    sleeper.join().unwrap();
    free(blocks);
}

#[test]
fn it_is_used_by_other_threads() {
    play_well("sleeper", "background_thread:false");
    play_well("sleeper", "narenas:1,background_thread:false,hardened:true");
}
