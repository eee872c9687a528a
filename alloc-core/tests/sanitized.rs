//! Threads against each other, for the thread sanitizer. It sees only instrumented code, which is
//! the core and this file. So blocks go from thread to thread through plain atomics, not through
//! locks and channels of the standard library, whose inner parts are compiled without it.
//!
//! Every byte handed over is written by one thread, read by another, and written again by the next
//! owner of the memory. So the sanitizer checks each ordering in the allocator.
#![allow(unsafe_code)]

mod common;

use common::random::{Random, mix};
use common::{alone, assert_empty};
use lumalloc::raw::{self, Flags};
use lumalloc::{control, observe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Suppresses reports about the test harness, which hands results over by a channel without
/// instrumentation.
#[unsafe(no_mangle)]
extern "C" fn __tsan_default_suppressions() -> *const libc::c_char {
    c"race:test::event::CompletedTest\nrace:Option<test::run_test\n".as_ptr()
}

const BOXES: usize = 16;

/// Blocks that wait for another thread.
static MAIL: [AtomicPtr<u64>; BOXES] = [const { AtomicPtr::new(std::ptr::null_mut()) }; BOXES];

/// Puts a block into a box, and returns the block that was there.
fn exchange(at: usize, block: *mut u64) -> *mut u64 {
    // AcqRel: the contents of a block go with it.
    MAIL[at % BOXES].swap(block, Ordering::AcqRel)
}

fn words<'a>(block: *mut u64, length: usize) -> &'a mut [u64] {
    // SAFETY: the callers hold the block, which is this long. No two slices of it live at once.
    unsafe { std::slice::from_raw_parts_mut(block, length) }
}

/// Allocates a block whose first word is its length in words. The other words follow from the
/// length and the address.
fn make(random: &mut Random, most: usize) -> *mut u64 {
    let length = 1 + random.size().max(random.below(most)) % most / 8;
    let ptr = match random.below(6) {
        0 => raw::allocate(length * 8, Flags::NONE.uncached()),
        1 => raw::malloc_zeroed(length * 8),
        _ => raw::malloc(length * 8),
    };
    assert!(!ptr.is_null());
    let block = ptr.cast::<u64>();
    for (index, word) in words(block, length).iter_mut().enumerate() {
        *word = contents(block, length, index);
    }
    block
}

fn contents(block: *mut u64, length: usize, index: usize) -> u64 {
    if index == 0 { length as u64 } else { mix((block as usize + length + index) as u64) }
}

/// Checks and frees a block. Does nothing for null.
fn free(random: &mut Random, block: *mut u64) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller holds the block, and its first word is its length.
    let length = unsafe { block.read() } as usize;
    for (index, word) in words(block, length).iter().enumerate() {
        assert_eq!(*word, contents(block, length, index), "word {index} of {block:p}");
    }
    let ptr = block.cast::<u8>();
    match random.below(6) {
        // SAFETY: a live block, not used afterwards.
        0 => unsafe { raw::deallocate(ptr, Flags::NONE.uncached()) },
        // SAFETY: a live block of this size, not used afterwards.
        1..3 => unsafe { raw::free_sized(ptr, length * 8) },
        // SAFETY: a live block, not used afterwards.
        _ => unsafe { raw::free(ptr) },
    }
}

fn empty_mail() {
    let mut random = Random::new(0);
    for at in 0..BOXES {
        free(&mut random, exchange(at, std::ptr::null_mut()));
    }
    assert_empty();
}

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
}

/// Allocates blocks of up to `most` bytes, sends, receives and frees them.
fn correspond(seed: u64, steps: usize, most: usize) {
    let mut random = Random::new(seed);
    let mut held = std::ptr::null_mut();
    for _ in 0..steps {
        let block = make(&mut random, most);
        let other = exchange(random.below(BOXES), block);
        // Every second block is kept for a while.
        free(&mut random, std::mem::replace(&mut held, other));
    }
    free(&mut random, held);
}

#[test]
fn sanit_blocks_go_from_thread_to_thread() {
    let _alone = alone();
    join((0..4).map(|seed| thread::spawn(move || correspond(seed, 5000, 300_000))).collect());
    empty_mail();
}

/// Few slabs, with many frees into each.
#[test]
fn sanit_small_blocks_crowd_their_slabs() {
    let _alone = alone();
    for most in [8, 16, 64, 500] {
        join((0..4).map(|seed| thread::spawn(move || correspond(seed, 8000, most))).collect());
    }
    empty_mail();
}

/// A few threads begin and end while the others free into the slabs that they leave behind.
#[test]
fn sanit_slabs_change_hands_when_threads_leave() {
    let _alone = alone();
    let spawner = |seed: u64| {
        thread::spawn(move || {
            for round in 0..20 {
                let thread = thread::spawn(move || correspond(seed * 100 + round, 200, 300_000));
                correspond(seed * 1000 + round, 100, 300_000);
                thread.join().expect("a thread");
            }
        })
    };
    join((1..4).map(spawner).collect());
    empty_mail();
}

static STOP: AtomicBool = AtomicBool::new(false);
static PASSES: AtomicUsize = AtomicUsize::new(0);

/// Several threads purge, walk and flush at once, also under traffic of large blocks.
#[test]
fn sanit_purges_and_walks_under_traffic() {
    let _alone = alone();
    let mut janitors: Vec<_> = (0..2)
        .map(|_| {
            thread::spawn(|| {
                while !STOP.load(Ordering::Relaxed) {
                    assert!(control::purge(control::ARENAS_ALL));
                    PASSES.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    janitors.push(thread::spawn(|| {
        while !STOP.load(Ordering::Relaxed) {
            let totals = observe::totals();
            assert!(totals.allocated <= totals.active);
        }
    }));
    join((10..13).map(|seed| thread::spawn(move || correspond(seed, 2000, 200_000))).collect());
    while PASSES.load(Ordering::Relaxed) < 10 {
        thread::yield_now();
    }
    STOP.store(true, Ordering::Relaxed);
    join(janitors);
    empty_mail();
}
