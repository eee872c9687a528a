//! Blocks that threads keep beyond their bins: when, how many, and that they are returned.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario, tell};
use common::{alone, assert_empty};
use lumalloc::control::{flush_thread_cache, thread_idle};
use lumalloc::observe::totals;
use lumalloc::raw;
use std::sync::mpsc;
use std::thread;

/// Allocates a MiB of blocks of `size` bytes, and frees them in the order of allocation. Each block
/// holds its number in between.
fn bulk(size: usize) {
    let made: Vec<*mut u8> = (0..(1 << 20) / size).map(|_| raw::malloc(size)).collect();
    for (number, block) in made.iter().enumerate() {
        // SAFETY: a fresh block of at least eight bytes.
        unsafe { block.cast::<usize>().write(number) };
    }
    for (number, block) in made.iter().enumerate() {
        // SAFETY: the block is still allocated.
        assert_eq!(unsafe { block.cast::<usize>().read() }, number, "a block was given twice");
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(*block) };
    }
}

/// Runs `test` on a new thread, and checks that all memory is free when the thread has ended.
fn on_a_new_thread(test: impl FnOnce() + Send + 'static) {
    let _alone = alone();
    thread::spawn(test).join().expect("the thread");
    assert_empty();
}

#[test]
fn what_is_needed_again_stays() {
    on_a_new_thread(|| {
        for size in [16, 128, 1024, 4096, 32768] {
            bulk(size);
            let first = totals();
            assert!(first.cached <= 256 << 10, "{size}: {} cached after once", first.cached);
            (0..20).for_each(|_| bulk(size));
            let before = totals();
            bulk(size);
            let after = totals();
            let flushed = after.work.flushes - before.work.flushes;
            assert!(flushed <= 8, "{size}: {flushed} flushes for what is always needed again");
            assert_eq!(after.allocated, before.allocated);
            assert!(after.cached > 900 << 10, "{size}: {} of a MiB cached", after.cached);
            assert!(flush_thread_cache());
            assert_eq!(totals().cached, 0);
        }
    });
}

#[test]
fn what_is_not_needed_again_goes_home() {
    on_a_new_thread(|| {
        (0..20).for_each(|_| bulk(128));
        let full = totals().cached;
        assert!(full > 900 << 10);
        (0..40).for_each(|_| bulk(1024));
        let cached = totals().cached;
        assert!(cached < full + (64 << 10), "{cached}: blocks of 128 bytes are still parked");
    });
}

#[test]
fn a_thread_that_only_frees_parks_nothing() {
    on_a_new_thread(|| {
        let blocks: Vec<usize> =
            (0..100_000).map(|_| raw::malloc(64).expose_provenance()).collect();
        let freer = move || {
            for block in blocks {
                // SAFETY: a live block, not used afterwards.
                unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
            }
            assert!(totals().cached <= 64 << 10, "{} cached", totals().cached);
        };
        thread::spawn(freer).join().expect("the freer");
    });
}

/// Other threads can return the kept blocks of a sleeping thread to their slabs, without its help.
#[test]
fn a_sleeping_thread_pins_little() {
    let _alone = alone();
    let (said, hears) = mpsc::channel();
    let (wake, waits) = mpsc::channel::<()>();
    let sleeper = thread::spawn(move || {
        (0..20).for_each(|_| bulk(64));
        said.send(()).expect("a listener");
        waits.recv().expect("the waker");
        bulk(64);
        assert!(thread_idle());
        assert_eq!(totals().cached, 0);
    });
    hears.recv().expect("the sleeper");
    let before = totals().cached;
    assert!(before > 900 << 10, "{before}");
    assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
    let after = totals().cached;
    assert!(after <= 64 << 10, "{after} of {before} bytes still cached");
    wake.send(()).expect("the sleeper");
    sleeper.join().expect("the sleeper");
    assert_empty();
}

/// A thread returns kept blocks of others to their slabs while these keep and take them. `bulk`
/// checks that no block is given twice, and the end that nothing is lost.
#[test]
fn who_purges_meanwhile_loses_nothing() {
    let _alone = alone();
    let busy =
        [16, 64, 640, 32768].map(|size| thread::spawn(move || (0..60).for_each(|_| bulk(size))));
    while !busy.iter().all(thread::JoinHandle::is_finished) {
        assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
    }
    // The threads are joined, so that their caches are gone too.
    busy.into_iter().for_each(|thread| thread.join().expect("a busy thread"));
    assert_empty();
}

#[test]
#[ignore = "the scenario of the test below"]
fn child() {
    match scenario().as_deref() {
        Some("bulk") => {
            (0..20).for_each(|_| bulk(64));
            tell(if totals().cached > 512 << 10 { "deep" } else { "shallow" });
        }
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// With options that want little cached, threads keep no blocks beyond their bins.
#[test]
fn small_caches_have_no_depot() {
    for conf in ["", "hardened:true", "junk:true"] {
        assert_eq!(play_well("bulk", conf), ["deep"], "{conf}");
    }
    for conf in ["tcache_max:4096", "dirty_decay_ms:0", "tcache:false"] {
        assert_eq!(play_well("bulk", conf), ["shallow"], "{conf}");
    }
}
