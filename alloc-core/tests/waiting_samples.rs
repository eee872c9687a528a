//! Samples of the heap profiler that were freed by their layout and wait in a cache are noticed
//! before a profile is written, also in caches of threads that do nothing.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::Lumalloc;
use lumalloc::control;
use lumalloc::observe;
use std::alloc::Layout;
use std::hint::black_box;
use std::sync::Barrier;

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

/// More than are noticed at a time.
const BLOCKS: usize = 50;

#[test]
fn samples_that_wait_in_the_caches_of_others_are_noticed() {
    // A block of some hundred bytes is always a sample.
    for more in ["", ",prof_recent_alloc_max:3", ",tcache:false", ",hardened:true"] {
        play_well("waiting", &format!("prof:true,lg_prof_sample:1,prof_seed:1{more}"));
    }
    play_well("waiting", "prof:true,lg_prof_sample:0");
}

#[test]
#[ignore = "the scenario of the test above"]
fn child() {
    assert_eq!(scenario().expect("a scenario"), "waiting");
    waiting();
}

fn layout() -> Layout {
    Layout::from_size_align(707, 1).expect("a layout")
}

fn allocate() -> usize {
    // SAFETY: the layout has a size.
    unsafe { std::alloc::alloc(black_box(layout())) }.expose_provenance()
}

fn free(block: usize) {
    let block = std::ptr::with_exposed_provenance_mut(block);
    // SAFETY: a block of this layout, freed once.
    unsafe { std::alloc::dealloc(block, black_box(layout())) };
}

/// Returns how many of these addresses are samples in use.
fn live(blocks: &[usize]) -> usize {
    let mut count = 0;
    observe::live_samples(|sample| count += usize::from(blocks.contains(&sample.address)));
    count
}

fn waiting() {
    let blocks: Vec<usize> = (0..BLOCKS).map(|_| allocate()).collect();
    assert_eq!(live(&blocks), BLOCKS);
    let (freed, end) = (Barrier::new(2), Barrier::new(2));
    let left = std::thread::scope(|scope| {
        scope.spawn(|| {
            blocks.iter().skip(1).for_each(|block| free(*block));
            freed.wait();
            end.wait();
        });
        freed.wait();
        control::profile::settle();
        let left = live(&blocks);
        end.wait();
        left
    });
    assert_eq!(left, 1, "one is in use");
    free(blocks[0]);
    control::profile::settle();
    assert_eq!(live(&blocks), 0, "this thread's own");
    let again: Vec<usize> = (0..BLOCKS).map(|_| allocate()).collect();
    assert_eq!(live(&again), BLOCKS, "the places are used again");
    again.iter().for_each(|block| free(*block));
}
