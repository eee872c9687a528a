//! Threads: thousands of short-lived ones, producers and consumers, frees into the slabs of threads
//! that are ending.
#![allow(unsafe_code)]

mod common;

use common::block::Block;
use common::child::{play_well, scenario};
use common::random::Random;
use common::{alone, assert_empty};
use lumalloc::control::arenas::lookup;
use lumalloc::control::{flush_thread_cache, purge};
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

fn make(random: &mut Random, id: u64) -> Block {
    let size = random.size();
    Block::filled(raw::malloc(size), size, id).expect("memory")
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}

fn free_sized(block: Block) {
    block.check(block.length);
    // SAFETY: a live block of this size, not used afterwards.
    unsafe { raw::free_sized(block.ptr(), block.length) };
}

fn join<T>(threads: Vec<JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
}

/// Makes the calling test the only one of the process, on a thread that has a cache, after the
/// threads of earlier tests are gone.
fn alone_with_a_cache() -> MutexGuard<'static, ()> {
    let guard = alone();
    free(make(&mut Random::new(0), 0));
    let hang = Instant::now() + Duration::from_secs(300);
    while totals().thread_caches != 1 {
        assert!(Instant::now() < hang, "threads that are gone keep their caches");
        thread::yield_now();
    }
    flush_thread_cache();
    guard
}

#[test]
fn ten_thousand_short_lived_threads() {
    waves(200, 50);
}

#[test]
fn sanit_short_lived_threads() {
    waves(4, 8);
}

/// Each thread allocates blocks, frees half, and leaves the rest to the thread of the test.
fn waves(count: u64, width: u64) {
    let _alone = alone_with_a_cache();
    let mut metadata = 0;
    for wave in 0..count {
        let threads = (0..width).map(|n| {
            thread::spawn(move || {
                let mut random = Random::new(wave * width + n);
                let mut blocks: Vec<Block> = (0..20).map(|id| make(&mut random, id)).collect();
                blocks.split_off(10).into_iter().for_each(free);
                blocks
            })
        });
        let left = join(threads.collect());
        assert_eq!(totals().thread_caches, 1, "caches come back");
        left.into_iter().flatten().for_each(free_sized);
        if wave == count / 2 {
            metadata = totals().metadata;
        }
    }
    assert_empty();
    // Caches, records and arrays are recycled, so the second half of the waves needs hardly more.
    let grown = totals().metadata - metadata;
    assert!(grown < 512 << 10, "metadata grew by {grown}");
}

/// Runs `pairs` producers, each with a consumer that frees all blocks on another thread.
fn handover(pairs: u64, blocks: u64) {
    let _alone = alone_with_a_cache();
    let before = totals();
    let mut threads = Vec::new();
    for pair in 0..pairs {
        let (sender, receiver) = sync_channel::<Vec<Block>>(8);
        threads.push(thread::spawn(move || {
            let mut random = Random::new(pair);
            for batch in 0..blocks / 100 {
                let batch = (0..100).map(|n| make(&mut random, batch * 100 + n)).collect();
                sender.send(batch).expect("a consumer");
            }
        }));
        threads.push(thread::spawn(move || {
            for (n, block) in receiver.into_iter().flatten().enumerate() {
                if n % 2 == 0 { free(block) } else { free_sized(block) }
            }
        }));
    }
    join(threads);
    let after = totals();
    let remote = after.remote_frees - before.remote_frees;
    assert!(remote > pairs * blocks / 2, "{remote} remote frees");
    assert_empty();
}

#[test]
fn producers_and_consumers() {
    handover(3, 50_000);
}

#[test]
fn sanit_a_producer_and_a_consumer() {
    handover(1, 2000);
}

/// Threads exit while others free into the slabs that they leave, and yet others adopt the slabs.
fn leaving(rounds: u64, workers: u64, count: u64) {
    let _alone = alone_with_a_cache();
    for round in 0..rounds {
        let (sender, receiver) = sync_channel::<Block>(16);
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
        let leavers = (0..workers).map(|n| {
            let sender = sender.clone();
            thread::spawn(move || {
                // The last blocks are freed while, or after, this thread ends.
                let mut random = Random::new(round * 100 + n);
                for id in 0..count {
                    sender.send(make(&mut random, id)).expect("a freer");
                }
            })
        });
        let mut threads: Vec<_> = leavers.collect();
        drop(sender);
        threads.extend((0..2).map(|_| {
            let receiver = std::sync::Arc::clone(&receiver);
            thread::spawn(move || {
                loop {
                    let block = receiver.lock().expect("no panic").recv();
                    let Ok(block) = block else { break };
                    free(block);
                }
            })
        }));
        join(threads);
    }
    assert_empty();
}

#[test]
fn threads_leave_while_others_free_into_their_slabs() {
    leaving(40, 6, 300);
}

#[test]
fn sanit_threads_leave_while_others_free() {
    leaving(3, 2, 200);
}

/// Sparse slabs that a thread leaves serve other threads, which make no fresh slabs meanwhile.
#[test]
fn what_a_thread_leaves_is_adopted() {
    let _alone = alone_with_a_cache();
    let make = |id| Block::filled(raw::malloc(64), 64, id).expect("memory");
    let thread = thread::spawn(move || {
        let all: Vec<Block> = (0..64 << 10).map(make).collect();
        let (kept, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|block| block.id % 64 == 0);
        rest.into_iter().for_each(free);
        kept
    });
    let kept = thread.join().expect("the thread");
    let before = totals();
    let more: Vec<Block> = (0..48 << 10).map(make).collect();
    let after = totals();
    assert!(after.active <= before.active + (128 << 10), "{before:#?} {after:#?}");
    kept.into_iter().chain(more).for_each(free);
    assert_empty();
}

/// A bin that only takes freed blocks is emptied when it holds 32 KiB (`front/supply/refill.rs`).
#[test]
fn a_thread_that_only_frees_keeps_little() {
    let _alone = alone_with_a_cache();
    for size in [8, 16, 48, 64, 112, 256, 1024, 2048] {
        let count = (4 << 20) / size;
        let blocks: Vec<Block> = (0..count as u64)
            .map(|id| Block::filled(raw::malloc(size), size, id).expect("memory"))
            .collect();
        flush_thread_cache();
        let before = totals();
        assert_eq!(before.cached, 0);
        let most = thread::spawn(move || {
            let mut most = 0;
            for (n, block) in blocks.into_iter().enumerate() {
                free(block);
                if n % 64 == 0 {
                    most = most.max(totals().cached);
                }
            }
            most
        });
        let most = most.join().expect("the thread");
        assert!(most > 0 && most <= 32 << 10, "{most} bytes cached of size {size}");
        let after = totals();
        assert_eq!(before.allocated - after.allocated, count * size);
    }
}

/// A thread's cache counts every request that it serves, and nothing else.
#[test]
fn requests_are_counted_exactly() {
    let _alone = alone_with_a_cache();
    let before = totals().requests;
    let mut expected = 0;
    for round in 0..2000 {
        for size in [1, 64, 1000, 5000, 32 << 10] {
            let first = raw::malloc(size);
            let second = raw::malloc_zeroed(size);
            expected += 2;
            // SAFETY: a live block, freed once.
            unsafe { raw::free(first) };
            // SAFETY: a live block, freed once.
            unsafe { raw::free_sized(second, size) };
        }
        if round % 100 == 0 {
            let past = raw::allocate(64, Flags::NONE.uncached());
            // SAFETY: a live block, freed once.
            unsafe { raw::deallocate(past, Flags::NONE.uncached()) };
            assert_eq!(totals().requests - before, expected, "round {round}");
        }
    }
}

#[test]
fn many_arenas_under_contention() {
    for conf in ["narenas:16", "narenas:2,dirty_decay_ms:0", "narenas:16,tcache:false"] {
        play_well("contention", conf);
    }
}

#[test]
fn threads_without_caches_spread_over_arenas() {
    play_well("spread", "narenas:4,tcache:false");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().as_deref() {
        Some("contention") => contention(),
        Some("spread") => spread(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// The threads begin in the first arena and meet there until one moves. Else the child hangs.
fn spread() {
    let moved = AtomicBool::new(false);
    let work = || {
        while !moved.load(Ordering::Relaxed) {
            let block = raw::malloc(64);
            if lookup(block) != Some(0) {
                moved.store(true, Ordering::Relaxed);
            }
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(work)));
    assert!((2..=4).contains(&totals().arenas_open), "{:?}", totals());
}

fn contention() {
    let limit = lumalloc::control::narenas();
    let thread = |seed: u64| {
        thread::spawn(move || {
            let mut random = Random::new(seed);
            let mut live: Vec<Block> = Vec::new();
            for id in 0..4000 {
                let size = random.below(200_000);
                let flags = match random.below(4) {
                    0 => Flags::NONE.arena(random.below(limit as usize) as u32),
                    1 => Flags::NONE.uncached(),
                    _ => Flags::NONE,
                };
                live.extend(Block::filled(raw::allocate(size, flags), size, id));
                if live.len() > 50 {
                    let block = live.swap_remove(random.below(50));
                    block.check(block.length);
                    // SAFETY: a live block, not used afterwards.
                    unsafe { raw::deallocate(block.ptr(), flags) };
                }
                if id % 500 == 0 {
                    purge(random.below(limit as usize) as u32);
                }
            }
            live
        })
    };
    // Blocks that one thread leaves are freed by another.
    let left = join((0..8).map(thread).collect());
    left.into_iter().flatten().for_each(free);
    let after = totals();
    assert_eq!(after.arenas_open, limit, "each was asked for by its index");
    assert!(after.n_open > 0 && after.thread_caches <= 1);
    assert_empty();
}
