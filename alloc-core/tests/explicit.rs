//! Caches that belong to no thread, used by one thread, by several in turn, and by several at once.
#![allow(unsafe_code)]

mod common;

use common::block::Block;
use common::random::Random;
use common::{alone, assert_empty};
use lumalloc::control::{arenas, tcache, thread as own};
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use std::thread;

fn free(block: &Block, flags: Flags) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::deallocate(block.ptr(), flags) };
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[test]
fn what_is_freed_into_a_cache_comes_back_from_it_and_from_no_other() {
    let _alone = alone();
    let [first, second] = [tcache::create().expect("a cache"), tcache::create().expect("a cache")];
    assert_ne!(first, second);
    let flags = [first, second].map(|id| Flags::NONE.tcache(id));
    let blocks = flags.map(|flags| raw::allocate(200, flags));
    for (block, flags) in blocks.iter().zip(flags) {
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate_sized(*block, 200, flags) };
    }
    for (block, flags) in blocks.iter().zip(flags) {
        assert_eq!(raw::allocate(200, flags), *block);
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate(*block, flags) };
    }
    assert!(tcache::flush(first) && tcache::destroy(first) && tcache::destroy(second));
    assert_eq!(tcache::create(), Some(first), "the lowest number is used again");
    assert!(tcache::destroy(first));
    assert_empty();
}

#[test]
fn numbers_of_no_cache_are_refused() {
    let _alone = alone();
    let gone = tcache::create().expect("a cache");
    assert!(tcache::destroy(gone));
    for id in [gone, 4093, 4094, u32::MAX - 2] {
        let flags = Flags::NONE.tcache(id);
        assert!(!tcache::flush(id) && !tcache::destroy(id));
        for size in [20, 3000] {
            assert!(raw::allocate(size, flags).is_null());
            assert_eq!(errno(), libc::EINVAL);
            let block = Block::filled(raw::malloc(size), size, 1).expect("memory");
            // SAFETY: a live block.
            assert!(unsafe { raw::reallocate(block.ptr(), 3 * size, flags) }.is_null());
            free(&block, flags);
        }
    }
    assert_empty();
}

#[test]
fn what_the_cache_of_a_created_arena_does_not_have_comes_from_that_arena_or_from_nowhere() {
    const LIMIT: usize = 1 << 20;
    let _alone = alone();
    let arena = arenas::create().expect("an arena");
    assert!(arenas::set_limit(arena, LIMIT));
    assert_eq!(own::set_arena(arena), Ok(()));
    let flags = Flags::NONE.tcache(tcache::create().expect("a cache"));
    assert_eq!(own::set_arena(0), Ok(()));
    for size in [1000, 100_000] {
        let block = || Block::filled(raw::allocate(size, flags), size, 1);
        let blocks: Vec<Block> = std::iter::from_fn(block).take(2 * LIMIT / size).collect();
        assert!((1..=LIMIT / size).contains(&blocks.len()), "{} of {size}", blocks.len());
        assert!(blocks.iter().all(|block| arenas::lookup(block.ptr()) == Some(arena)));
        blocks.iter().for_each(|block| free(block, flags));
    }
    assert!(tcache::destroy(0));
    // SAFETY: no block of the arena is in use.
    assert!(unsafe { arenas::destroy(arena) });
    assert_empty();
}

#[test]
fn an_arena_stays_as_long_as_a_cache_takes_pages_from_it() {
    let _alone = alone();
    let arena = arenas::create().expect("an arena");
    assert_eq!(own::set_arena(arena), Ok(()));
    let cache = tcache::create().expect("a cache");
    assert_eq!(own::set_arena(0), Ok(()));
    // SAFETY: no block of the arena is in use.
    assert!(!unsafe { arenas::destroy(arena) });
    assert_eq!(arenas::bound_threads(arena), Some(0), "a cache is no thread");
    let block = Block::filled(raw::allocate(100, Flags::NONE.tcache(cache)), 100, 1);
    free(&block.expect("memory"), Flags::NONE.tcache(cache));
    assert!(tcache::destroy(cache));
    // SAFETY: as above.
    assert!(unsafe { arenas::destroy(arena) });
    assert_empty();
}

/// A random walk with one cache or more, including large blocks, zeros and alignments.
fn walk(seed: u64, caches: &[u32]) {
    let mut random = Random::new(seed);
    let mut live: Vec<Block> = Vec::new();
    for id in 0..8000 {
        let flags = Flags::NONE.tcache(caches[random.below(caches.len())]);
        let flags = if random.below(3) == 0 { flags.align(1 << random.below(8)) } else { flags };
        match random.below(8) {
            0 => {
                let Some(mut block) = live.pop() else { continue };
                let size = random.size().max(1);
                // SAFETY: a live block, which the new one replaces.
                let new = unsafe { raw::reallocate(block.ptr(), size, flags) };
                let kept = Block { address: new.expose_provenance(), ..block };
                kept.check(size.min(block.length));
                block = Block::filled(new, size, id).expect("memory");
                live.push(block);
            }
            1..4 if !live.is_empty() => free(&live.swap_remove(random.below(live.len())), flags),
            _ => {
                let size = random.size();
                let zero = random.below(4) == 0;
                let flags = if zero { flags.zeroed() } else { flags };
                let block = raw::allocate(size, flags);
                if zero && size > 0 {
                    // SAFETY: a live block of that size.
                    let bytes = unsafe { std::slice::from_raw_parts(block, size) };
                    assert!(bytes.iter().all(|byte| *byte == 0));
                }
                live.extend(Block::filled(block, size, id));
            }
        }
        if live.len() > 200 {
            free(&live.swap_remove(random.below(200)), flags);
        }
    }
    live.iter().for_each(|block| free(block, Flags::NONE.tcache(caches[0])));
}

#[test]
fn threads_that_come_at_once_wait_for_each_other() {
    let _alone = alone();
    let caches: Vec<u32> = (0..3).map(|_| tcache::create().expect("a cache")).collect();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            let caches = caches.clone();
            thread::spawn(move || walk(seed, &caches))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
    assert!(totals().cached > 0);
    assert!(caches.into_iter().all(tcache::destroy));
    assert_empty();
}

#[test]
fn sanit_one_thread_and_two_caches() {
    let _alone = alone();
    let caches = [tcache::create().expect("a cache"), tcache::create().expect("a cache")];
    walk(9, &caches);
    assert!(caches.into_iter().all(tcache::destroy));
    assert_empty();
}

#[test]
fn a_cache_outlives_the_thread_that_made_it_and_counts_for_whoever_uses_it() {
    let _alone = alone();
    let make = || {
        let id = tcache::create().expect("a cache");
        let block = raw::allocate(64, Flags::NONE.tcache(id));
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate(block, Flags::NONE.tcache(id)) };
        (id, block as usize)
    };
    let (id, block) = thread::spawn(make).join().expect("the thread");
    thread::spawn(move || {
        let before = (own::allocated(), own::deallocated());
        let flags = Flags::NONE.tcache(id);
        let again = raw::allocate(64, flags);
        assert_eq!(again as usize, block);
        assert_eq!(own::allocated() - before.0, 64);
        // SAFETY: a live block, freed once.
        unsafe { raw::deallocate(again, flags) };
        assert_eq!(own::deallocated() - before.1, 64);
    })
    .join()
    .expect("the thread");
    assert!(tcache::destroy(id));
    assert_empty();
}

#[test]
fn a_child_keeps_all_of_them() {
    let _alone = alone();
    let id = tcache::create().expect("a cache");
    let flags = Flags::NONE.tcache(id);
    let block = raw::allocate(64, flags);
    // SAFETY: a live block, freed once.
    unsafe { raw::deallocate(block, flags) };
    // SAFETY: the child does nothing but what is tested.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let well = raw::allocate(64, flags) == block && totals().fork_abandoned == 0;
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 1;
    // SAFETY: the call waits for the child just made.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
    assert!(tcache::destroy(id));
}
