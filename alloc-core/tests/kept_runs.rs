//! Large blocks that threads keep: when, how many, and that they are returned in the end.
#![allow(unsafe_code)]

mod common;

use common::block::{Block, assert_zero};
use common::child::{play_well, scenario};
use common::{alone, assert_empty};
use lumalloc::control::flush_thread_cache;
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use std::thread;
use std::time::{Duration, Instant};

const SIZE: usize = 64 << 10;

fn make(size: usize) -> Block {
    Block::filled(raw::malloc(size), size, size as u64).expect("memory")
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}

/// Makes the thread count as one that makes several such requests.
fn get_used_to() {
    (0..4).map(|_| make(SIZE)).collect::<Vec<_>>().into_iter().for_each(free);
    flush_thread_cache();
}

/// Runs `test` on a new thread, and checks that all memory is free when the thread has ended.
fn on_a_new_thread(test: impl FnOnce() + Send + 'static) {
    let _alone = alone();
    thread::spawn(test).join().expect("the thread");
    assert_empty();
}

#[test]
fn what_is_kept_is_reused_without_an_arena() {
    on_a_new_thread(|| {
        get_used_to();
        free(make(SIZE));
        let before = totals();
        assert_eq!((before.cached, before.allocated), (SIZE, 0));
        for _ in 0..1000 {
            free(make(SIZE));
        }
        let after = totals();
        assert_eq!(after.n_open, before.n_open, "the arena was entered");
        assert_eq!((after.cached, after.allocated, after.active), (SIZE, 0, before.active));
        let block = make(SIZE);
        assert_eq!((totals().cached, totals().allocated), (0, SIZE));
        free(block);
        assert!(flush_thread_cache());
        assert_eq!((totals().cached, totals().dirty - after.dirty), (0, SIZE));
    });
}

#[test]
fn few_requests_keep_nothing() {
    on_a_new_thread(|| {
        for _ in 0..3 {
            free(make(SIZE));
            assert_eq!(totals().cached, 0);
        }
        free(make(SIZE));
        assert_eq!(totals().cached, SIZE);
    });
}

#[test]
fn a_thread_that_only_frees_keeps_nothing() {
    on_a_new_thread(|| {
        let blocks: Vec<Block> = (0..40).map(|_| make(SIZE)).collect();
        thread::spawn(move || {
            for block in blocks {
                free(block);
                assert_eq!(totals().cached, 0);
            }
        })
        .join()
        .expect("the thread");
    });
}

/// Overflows count too: a thread that frees blocks of others stops keeping after a while.
#[test]
fn a_thread_keeps_a_megabyte() {
    on_a_new_thread(|| {
        let mut most = [0, 0];
        for (size, most) in [40_960, 262_144].into_iter().zip(&mut most) {
            let blocks: Vec<Block> = (0..100).map(|_| make(size)).collect();
            for block in blocks {
                free(block);
                *most = totals().cached.max(*most);
            }
            flush_thread_cache();
        }
        assert_eq!(most, [25 * 40_960, 1 << 20]);
        let theirs = thread::spawn(|| (0..400).map(|_| make(SIZE)).collect::<Vec<_>>());
        let mut blocks = theirs.join().expect("the thread");
        let last = blocks.pop().expect("the last");
        get_used_to();
        blocks.into_iter().for_each(free);
        flush_thread_cache();
        free(last);
        assert_eq!(totals().cached, 0, "it has done hardly anything but free");
    });
}

#[test]
fn only_middling_lengths_are_kept() {
    on_a_new_thread(|| {
        get_used_to();
        for (size, kept) in [(40_960, true), (512 << 10, true), (640 << 10, false)] {
            free(make(size));
            assert_eq!(totals().cached, if kept { size } else { 0 }, "{size}");
            flush_thread_cache();
        }
    });
}

#[test]
fn what_is_reused_is_zeroed_and_aligned_when_asked() {
    on_a_new_thread(|| {
        get_used_to();
        free(make(SIZE));
        let ptr = raw::malloc_zeroed(SIZE);
        assert_eq!(totals().cached, 0, "the one that was kept");
        // SAFETY: a block of this length.
        unsafe { assert_zero(ptr, SIZE) };
        let next = (0..64).map(|_| make(40_960)).collect::<Vec<_>>();
        next.into_iter().for_each(free);
        for _ in 0..16 {
            let ptr = raw::malloc_aligned(40_960, 1 << 20);
            assert!(ptr.addr().is_multiple_of(1 << 20));
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::free(ptr) };
        }
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(ptr) };
    });
}

#[test]
fn past_the_caches_nothing_is_kept_or_reused() {
    on_a_new_thread(|| {
        get_used_to();
        let block = make(SIZE);
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate(block.ptr(), Flags::NONE.uncached()) };
        assert_eq!(totals().cached, 0);
        free(make(SIZE));
        assert_eq!(totals().cached, SIZE);
        for flags in [Flags::NONE.uncached(), Flags::NONE.arena(0)] {
            let ptr = raw::allocate(SIZE, flags);
            assert_eq!(totals().cached, SIZE);
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::deallocate(ptr, flags) };
        }
    });
}

/// The largest small request has no room in a slab beside its canary. The first 256 blocks are
/// closed when they are freed, and two in each millisecond after that. The others are kept.
fn largest_small() {
    get_used_to();
    let free_many = || {
        let blocks: Vec<Block> = (0..40).map(|_| make(32 << 10)).collect();
        blocks.into_iter().for_each(free);
    };
    free_many();
    assert_eq!(totals().cached, 0);
    (0..20).for_each(|_| free_many());
    let before = totals();
    assert!(before.cached > 0, "none is kept");
    let clock = std::time::Instant::now();
    (0..10_000).for_each(|_| free(make(32 << 10)));
    let entered = totals().n_open - before.n_open;
    let most = 2 * clock.elapsed().as_millis() as u64 + 10;
    assert!(entered <= most, "the arena was entered {entered} times, {most} are expected at most");
}

#[test]
fn the_hardened_tier_keeps_the_largest_small_requests() {
    play_well("largest small", "hardened:true");
}

#[test]
#[ignore = "the scenarios of the tests below"]
fn child() {
    match scenario().as_deref() {
        Some("off") => off(),
        Some("largest small") => largest_small(),
        Some("idle") => idle(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

fn off() {
    get_used_to();
    free(make(SIZE));
    assert_eq!(totals().cached, 0);
}

#[test]
fn options_that_want_less_cached_switch_it_off() {
    for conf in ["tcache:false", "tcache_max:16384", "dirty_decay_ms:0"] {
        play_well("off", conf);
    }
}

/// A sleeping thread does not pin the blocks that it keeps, as long as another thread allocates.
fn idle() {
    get_used_to();
    let sleeper = thread::spawn(|| {
        get_used_to();
        free(make(SIZE));
        thread::park();
    });
    let hang = Instant::now() + Duration::from_secs(300);
    while totals().cached < SIZE {
        assert!(Instant::now() < hang, "the sleeper keeps nothing");
        thread::yield_now();
    }
    while totals().cached >= SIZE {
        assert!(Instant::now() < hang, "the sleeper keeps it for ever");
        flush_thread_cache();
        // Longer than the blocks that threads keep, so the decay pass runs.
        free(make(1 << 20));
        thread::sleep(Duration::from_millis(1));
    }
    sleeper.thread().unpark();
    sleeper.join().expect("the sleeper");
}

#[test]
fn an_idle_thread_pins_nothing() {
    play_well("idle", "dirty_decay_ms:400");
}
