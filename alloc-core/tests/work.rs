//! The events of the slow paths are counted where they happen, each as often as it happens.
#![allow(unsafe_code)]

mod common;

use common::alone;
use common::random::Random;
use lumalloc::control::flush_thread_cache;
use lumalloc::control::thread::set_ncached_max;
use lumalloc::observe::{Work, totals};
use lumalloc::raw::{self, Flags};
use std::sync::Barrier;
use std::thread;

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(address)) };
}

/// Returns what `events` adds to the counts.
fn work(events: impl FnOnce()) -> Work {
    let before = totals().work;
    events();
    let after = totals().work;
    Work {
        refills_owned: after.refills_owned - before.refills_owned,
        refills_shared: after.refills_shared - before.refills_shared,
        slabs_adopted: after.slabs_adopted - before.slabs_adopted,
        slabs_fresh: after.slabs_fresh - before.slabs_fresh,
        flushes: after.flushes - before.flushes,
        flush_groups: after.flush_groups - before.flush_groups,
        remote_words: after.remote_words - before.remote_words,
        remote_pushes: after.remote_pushes - before.remote_pushes,
        remote_drains: after.remote_drains - before.remote_drains,
        runs_kept: after.runs_kept - before.runs_kept,
        runs_reused: after.runs_reused - before.runs_reused,
        runs_taken: after.runs_taken - before.runs_taken,
        runs_given: after.runs_given - before.runs_given,
        lock_pages: after.lock_pages - before.lock_pages,
        call_mmap: after.call_mmap - before.call_mmap,
        call_madvise: after.call_madvise - before.call_madvise,
        ..Work::default()
    }
}

/// The number of blocks that [`scattered`] makes.
const COUNT: usize = 40_000;

/// Blocks of 64 bytes in random order.
fn scattered() -> Vec<usize> {
    let mut random = Random::new(1);
    let mut blocks: Vec<usize> = (0..COUNT).map(|_| malloc(64)).collect();
    for last in (1..COUNT).rev() {
        blocks.swap(last, random.below(last + 1));
    }
    blocks
}

/// Runs on a new thread, so that no cache knows any class.
fn fresh(test: impl FnOnce() + Send + 'static) {
    let _alone = alone();
    thread::spawn(test).join().expect("the thread");
}

/// Frees blocks of the calling thread on another thread. The calling thread takes a slow path
/// between any two batches, so the other does not take its lock.
fn free_beside_work(blocks: &[usize]) {
    let turn = Barrier::new(2);
    thread::scope(|scope| {
        let freer = scope.spawn(|| {
            for piece in blocks.chunks(100) {
                piece.iter().copied().for_each(free);
                turn.wait();
                turn.wait();
            }
        });
        for _ in blocks.chunks(100) {
            turn.wait();
            flush_thread_cache();
            turn.wait();
        }
        // The scope waits only for the closure, not for what the thread does after it.
        freer.join().expect("the freer");
    });
}

#[test]
fn refills_flushes_and_words() {
    fresh(|| {
        let blocks: Vec<usize> = (0..4096).map(|_| malloc(64)).collect();
        flush_thread_cache();
        let done = work(|| {
            blocks.into_iter().for_each(free);
            flush_thread_cache();
        });
        assert!(done.flushes > 4 && done.flush_groups >= done.flushes, "{done:?}");
        assert_eq!((done.slabs_fresh, done.remote_drains), (0, 0), "{done:?}");
        let done = work(|| (0..4096).for_each(|_| _ = malloc(64)));
        assert!(done.slabs_fresh + done.slabs_adopted >= 1, "{done:?}");
        assert!(done.refills_owned >= 4, "{done:?}");
        assert_eq!((done.flushes, done.remote_words), (0, 0), "{done:?}");
    });
}

#[test]
fn remote_frees_are_counted_by_word_and_by_push() {
    fresh(|| {
        let blocks: Vec<usize> = (0..2048).map(|_| malloc(64)).collect();
        flush_thread_cache();
        let before = totals().remote_frees;
        let done = work(|| free_beside_work(&blocks));
        let remote = totals().remote_frees - before;
        assert!(remote > 1024, "{remote}");
        assert!(done.remote_words >= remote / 64 && done.remote_words < remote / 8, "{done:?}");
        assert!(done.remote_pushes > 0 && done.remote_pushes <= done.remote_words, "{done:?}");
        let done = work(|| assert!(lumalloc::control::purge(0)));
        assert!(done.remote_drains > 0, "{done:?}");
    });
}

/// In random order as many blocks are returned to their slabs, by at most one word each.
#[test]
fn scattered_remote_frees_come_home() {
    fresh(|| {
        let blocks = scattered();
        let allocated = || totals().allocated;
        let (before, remote) = (allocated(), totals().remote_frees);
        let done = work(|| free_beside_work(&blocks));
        assert_eq!(before - allocated(), COUNT * 64);
        // The first slab of the class is guarded by the bin, whose lock was free.
        let remote = (totals().remote_frees - remote) as usize;
        assert!((COUNT - 2048..=COUNT).contains(&remote), "{remote}");
        assert!((COUNT / 2..COUNT).contains(&(done.remote_words as usize)), "{done:?}");
        assert!(lumalloc::control::purge(0));
        assert_eq!(totals().remote_pending, 0);
    });
}

/// The thread's bin of four blocks is emptied when it is full, not halved.
#[test]
fn a_thread_that_only_frees_keeps_no_half() {
    fresh(|| {
        let blocks: Vec<usize> = (0..400).map(|_| malloc(4096)).collect();
        flush_thread_cache();
        let done = work(|| {
            let freer = move || {
                assert!(set_ncached_max(b"4096-4096:4"));
                blocks.into_iter().for_each(free);
            };
            thread::spawn(freer).join().expect("the freer");
        });
        assert!((100..=102).contains(&done.flushes), "{done:?}");
    });
}

/// One thread allocates buffers and another frees them. Slabs are made while the allocator learns
/// how many buffers are on the way, and hardly any after that.
#[test]
fn buffers_that_go_back_and_forth_make_no_slabs() {
    fresh(|| {
        let swing = || {
            let made: Vec<usize> = (0..90).map(|_| malloc(24 << 10)).collect();
            let free_all = || {
                made.iter().for_each(|block| free(*block));
                flush_thread_cache();
            };
            thread::scope(|scope| scope.spawn(free_all).join()).expect("the other thread");
        };
        let first = work(swing);
        assert!(first.slabs_fresh >= 40, "{first:?}");
        (0..4).for_each(|_| swing());
        let done = work(|| (0..10).for_each(|_| swing()));
        // A decay pass may run and return the waiting blocks to their slabs.
        assert!(done.slabs_fresh <= 150, "{done:?}");
    });
}

#[test]
fn past_the_caches_is_counted_too() {
    fresh(|| {
        let kept: Vec<usize> = (0..512).map(|_| malloc(48)).collect();
        let done = work(|| {
            for block in kept {
                let ptr = std::ptr::with_exposed_provenance_mut(block);
                // SAFETY: a live block, not used afterwards.
                unsafe { raw::deallocate(ptr, Flags::NONE.uncached()) };
            }
        });
        assert!(done.remote_words > 256, "one each of those in a cache's slabs: {done:?}");
        assert_eq!(done.flushes, 0);
    });
}

#[test]
fn runs_locks_and_calls() {
    fresh(|| {
        let done = work(|| (0..100).for_each(|_| free(malloc(1 << 20))));
        assert_eq!((done.runs_taken, done.runs_given), (100, 100));
        assert!(done.lock_pages >= 200, "{done:?}");
        let done = work(|| (0..100).for_each(|_| free(malloc(64 << 10))));
        assert_eq!((done.runs_kept, done.runs_reused, done.runs_taken), (97, 96, 4));
        let done = work(|| {
            free(malloc(300 << 20));
            assert!(lumalloc::control::purge(0));
        });
        assert!(done.call_mmap > 0 && done.call_madvise > 0, "{done:?}");
    });
}

/// Collection depends on the requested bytes. It does not run each time a class is used again.
#[test]
fn many_classes_in_turn_are_not_collected_at_each_request() {
    fresh(|| {
        let in_turn = || (64..8192).step_by(64).for_each(|size| free(malloc(size)));
        (0..8).for_each(|_| in_turn());
        let before = totals().work.lock_cache;
        (0..100).for_each(|_| in_turn());
        let locks = totals().work.lock_cache - before;
        assert!(locks < 1000, "{locks} for 12700 requests");
    });
}
