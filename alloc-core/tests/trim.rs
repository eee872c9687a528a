//! What a process with one thread gives back when its use of memory has fallen far, in children.
//! This program allocates by lumalloc. Decay times are longer than the tests.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::idling::{MIB, dirty, doze, forked, resident, threads, wait_for};
use lumalloc::raw::Flags;
use lumalloc::{observe, raw};
use std::hint::black_box;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// After so many milliseconds the budget is larger than the least that is given back.
const OLD_ENOUGH: u64 = 1000;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("alone") => forked(alone),
        Some("sparse") => forked(sparse),
        Some("often") => forked(often),
        Some("left") => forked(left),
        Some("arenas") => forked(many_arenas),
        Some("keeps") => forked(keeps),
        Some("samples") => forked(samples),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

fn alone() {
    doze(OLD_ENOUGH);
    let before = dirty(96 * MIB);
    let after = resident();
    assert!(after < before + 16 * MIB, "{before} {after}");
    assert_eq!(threads().len(), 1);
    assert_eq!(observe::totals().background_runs, 0);
}

#[test]
fn a_process_with_one_thread_gives_back_what_it_has_freed() {
    play_well("alone", "dirty_decay_ms:600000");
    play_well("alone", "dirty_decay_ms:600000,tcache:false");
    play_well("alone", "dirty_decay_ms:600000,hardened:true");
}

/// One block in a hundred is left in each slab.
fn sparse() {
    doze(OLD_ENOUGH);
    let before = resident();
    let mut blocks: Vec<Box<[u8; 200]>> = (0..96 * MIB / 208).map(|_| Box::new([1; 200])).collect();
    let mut number = 0;
    blocks.retain(|_| {
        number += 1;
        number % 100 == 0
    });
    let after = resident();
    assert!(after < before + 48 * MIB, "{before} {after}");
    drop(blocks);
}

#[test]
fn free_pages_inside_slabs_go_too() {
    play_well("sparse", "dirty_decay_ms:600000");
}

/// What comes and goes is given back once, and then as the time allows.
fn often() {
    doze(OLD_ENOUGH);
    let begin = Instant::now();
    let pages = || observe::totals().purged_pages;
    let before = pages();
    for _ in 0..30 {
        dirty(64 * MIB);
    }
    let gone = (pages() - before) as u128;
    let by_time = (u128::from(OLD_ENOUGH) + begin.elapsed().as_millis() + 2000) * 4;
    // Twice the heap at its largest, to be on the safe side.
    let bound = 2 * (64 * MIB / 4096) as u128 + by_time;
    assert!((4096..bound).contains(&gone), "{gone} of {bound}");
}

#[test]
fn it_costs_a_busy_process_little() {
    play_well("often", "dirty_decay_ms:600000");
}

/// A part of what is in use may stay, whatever number of arenas has it.
fn many_arenas() {
    const ARENAS: u32 = 24;
    // Less than what may stay.
    const EACH: usize = 4 * MIB;
    doze(OLD_ENOUGH);
    let kept = vec![1u8; 40 * MIB];
    let before = resident();
    let blocks = (0..ARENAS).map(|arena| {
        let block = raw::allocate(EACH, Flags::NONE.arena(arena));
        assert!(!block.is_null());
        // SAFETY: a live block, this long.
        unsafe { block.write_bytes(1, EACH) };
        block
    });
    let blocks: Vec<*mut u8> = blocks.collect();
    // SAFETY: live blocks, each freed once.
    blocks.into_iter().for_each(|block| unsafe { raw::free(block) });
    // What is due goes at a slow path.
    drop(vec![1u8; MIB]);
    let after = resident();
    assert!(after < before + 16 * MIB, "{before} {after}");
    drop(kept);
}

#[test]
fn what_may_stay_is_the_same_for_one_arena_and_for_many() {
    play_well("arenas", "dirty_decay_ms:600000,narenas:24");
}

fn left() {
    doze(OLD_ENOUGH);
    let before = resident();
    let worker = |_| std::thread::spawn(|| dirty(24 * MIB));
    let workers: Vec<_> = (0..4).map(worker).collect();
    for thread in workers {
        thread.join().expect("a thread");
    }
    wait_for("end of the other threads", || threads().len() == 1);
    let after = resident();
    assert!(after < before + 24 * MIB, "{before} {after}");
}

#[test]
fn the_last_thread_has_what_the_others_left_given_back() {
    play_well("left", "dirty_decay_ms:600000");
}

fn keeps() {
    doze(OLD_ENOUGH);
    let pages = observe::totals().purged_pages;
    dirty(96 * MIB);
    assert_eq!(observe::totals().purged_pages, pages);
}

#[test]
fn nothing_goes_where_options_forbid_it() {
    play_well("keeps", "dirty_decay_ms:600000,background_thread_auto:false");
    play_well("keeps", "dirty_decay_ms:600000,background_thread:false");
    play_well("keeps", "dirty_decay_ms:-1");
}

/// Samples that come and go leave what is handed out as it is.
fn samples() {
    doze(OLD_ENOUGH);
    let kept = vec![1u8; 64 * MIB];
    // Less than what counts as having fallen far.
    drop(vec![1u8; 8 * MIB]);
    let (taken, pages) = (observe::profile_counts().taken, observe::totals().purged_pages);
    let churn = |sample: fn()| {
        let before = observe::profile_counts().taken;
        while observe::profile_counts().taken < before + 20_000 {
            sample();
        }
    };
    // More bytes of samples than all that was ever in use, freed by each way.
    churn(|| {
        // SAFETY: a block of this allocator, freed once.
        unsafe { raw::free(black_box(raw::malloc(4096))) };
    });
    churn(|| drop(black_box(Box::new([0u8; 4096]))));
    assert!(observe::profile_counts().taken - taken >= 40_000);
    assert_eq!(observe::totals().purged_pages, pages);
    drop(kept);
    assert!(observe::totals().purged_pages > pages, "a fall is still seen");
}

#[test]
fn heap_samples_that_are_freed_are_no_fall() {
    play_well("samples", "dirty_decay_ms:600000,prof:true,lg_prof_sample:10");
}
