//! Bounds: which memory counts, purging before failing, the callback, the bound of an arena.
#![allow(unsafe_code)]

mod common;

use common::alone;
use lumalloc::control::limits::{self, Reached};
use lumalloc::control::{ARENAS_ALL, arenas, purge};
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MIB: usize = 1 << 20;

/// Allocates a large block and writes all of it. Returns null if it is refused.
fn large(size: usize) -> *mut u8 {
    let block = raw::malloc(size);
    if !block.is_null() {
        // SAFETY: a fresh block of this size.
        unsafe { block.write_bytes(1, size) };
    }
    block
}

fn free(block: *mut u8) {
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(block) };
}

/// Removes the bounds when a test ends, even by a panic.
struct Unbound;

impl Drop for Unbound {
    fn drop(&mut self) {
        limits::set_hard(0);
        limits::set_soft(0);
        // SAFETY: no function is given.
        assert!(unsafe { limits::set_callback(None, std::ptr::null_mut()) });
    }
}

#[test]
fn what_is_held_is_what_was_taken_and_not_given_back() {
    let _alone = alone();
    free(large(MIB));
    assert!(purge(ARENAS_ALL));
    let before = limits::held();
    let block = large(16 * MIB);
    assert!((16 * MIB..18 * MIB).contains(&(limits::held() - before)));
    free(block);
    assert!(limits::held() - before >= 16 * MIB, "unused, but held");
    assert!(purge(ARENAS_ALL));
    assert!(limits::held() < before + MIB, "{} {before}", limits::held());
}

#[test]
fn an_exempt_arena_is_refused_by_its_own_bound_only() {
    let (_alone, _unbound) = (alone(), Unbound);
    let arena = arenas::create().unwrap();
    let allocate = || raw::allocate(4 * MIB, Flags::NONE.arena(arena));
    assert!(purge(ARENAS_ALL));
    limits::set_hard(limits::held());
    assert!(allocate().is_null());
    assert!(arenas::set_limit_exempt(arena, true));
    let block = allocate();
    assert!(!block.is_null());
    assert!(raw::malloc(4 * MIB).is_null(), "others are bound");
    assert!(arenas::set_limit(arena, MIB));
    assert!(allocate().is_null());
    free(block);
    assert!(!arenas::set_limit_exempt(4000, true));
    assert_eq!(arenas::is_limit_exempt(4000), None);
}

#[test]
fn a_checked_bound_is_not_below_what_is_held() {
    let (_alone, _unbound) = (alone(), Unbound);
    let block = large(8 * MIB);
    assert!(limits::set_hard_checked(MIB).is_err_and(|held| held > 8 * MIB));
    assert_eq!(limits::hard(), 0);
    assert_eq!(limits::set_hard_checked(1 << 40), Ok(()));
    assert_eq!(limits::hard(), 1 << 40);
    assert_eq!(limits::set_hard_checked(0), Ok(()));
    free(block);
}

#[test]
fn beyond_the_hard_bound_there_is_no_memory() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    limits::set_hard(limits::held() + 32 * MIB);
    let some = large(16 * MIB);
    assert!(!some.is_null());
    assert!(large(20 * MIB).is_null());
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ENOMEM));
    // SAFETY: a block of this allocator.
    assert!(unsafe { raw::realloc(some, 64 * MIB) }.is_null());
    free(some);
    let other = large(20 * MIB);
    assert!(!other.is_null(), "unused pages were purged for it");
    free(other);
    limits::set_hard(0);
    free(large(64 * MIB));
}

/// Each of two threads finds room for its block, and there is room for one.
#[test]
fn arenas_that_grow_at_the_same_time_stay_within_the_hard_bound_together() {
    const ROUNDS: usize = 2000;
    let (_alone, _unbound) = (alone(), Unbound);
    let arenas = [(); 2].map(|()| arenas::create().unwrap());
    // The steps that the two threads have reached together. They spin, to go on at the same moment.
    let steps = AtomicUsize::new(0);
    let together = |step: usize| {
        steps.fetch_add(1, Relaxed);
        while steps.load(Relaxed) < 2 * step {
            std::thread::yield_now();
        }
    };
    let most = AtomicUsize::new(0);
    let run = |index: usize| {
        let beyond = |bound: usize| limits::held().saturating_sub(bound);
        for round in 0..ROUNDS {
            let bound = limits::held() + 12 * MIB;
            together(4 * round + 1);
            limits::set_hard(bound);
            together(4 * round + 2);
            let block = raw::allocate(8 * MIB, Flags::NONE.arena(arenas[index]));
            together(4 * round + 3);
            most.fetch_max(beyond(bound), Relaxed);
            if !block.is_null() {
                free(block);
                assert!(purge(arenas[index]));
            }
            together(4 * round + 4);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(0));
        run(1);
    });
    // Records may grow after the pages were admitted.
    assert!(most.load(Relaxed) < MIB, "{most:?}");
}

#[test]
fn small_blocks_meet_the_bound_too() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    limits::set_hard(limits::held() + 4 * MIB);
    let mut blocks = Vec::new();
    loop {
        let block = raw::malloc(1000);
        if block.is_null() {
            break;
        }
        blocks.push(block);
    }
    assert!((2000..6000).contains(&blocks.len()), "{}", blocks.len());
    blocks.into_iter().for_each(free);
    assert!(!raw::malloc(1000).is_null());
}

static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static ASKED: AtomicUsize = AtomicUsize::new(0);

fn shed(reached: &Reached) -> bool {
    ASKED.fetch_add(1, Relaxed);
    assert!(reached.held + reached.wanted > reached.limit && reached.wanted >= 16 * MIB);
    assert_eq!(reached.arena, ARENAS_ALL);
    // The function may allocate and query.
    free(raw::malloc(100));
    assert!(totals().active > 0);
    match KEPT.lock().unwrap().pop() {
        Some(block) => {
            free(std::ptr::with_exposed_provenance_mut(block));
            true
        }
        None => false,
    }
}

#[test]
fn the_program_is_asked_before_an_allocation_fails() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    assert!(limits::set_function(shed));
    limits::set_hard(limits::held() + 34 * MIB);
    ASKED.store(0, Relaxed);
    for _ in 0..4 {
        KEPT.lock().unwrap().push(large(8 * MIB).expose_provenance());
    }
    assert_eq!(ASKED.load(Relaxed), 0);
    let block = large(16 * MIB);
    assert!(!block.is_null());
    assert_eq!(ASKED.load(Relaxed), 2, "two were enough");
    assert!(large(64 * MIB).is_null());
    assert_eq!(ASKED.load(Relaxed), 5, "two more, and one in vain");
    free(block);
}

#[test]
fn the_soft_bound_purges_and_refuses_nothing() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    let (before, reached) = (limits::held(), limits::soft_reached());
    limits::set_soft(before + 24 * MIB);
    free(large(16 * MIB));
    assert!(totals().dirty >= 16 * MIB, "below it nothing happens");
    assert_eq!(limits::soft_reached(), reached);
    let (one, two) = (large(15 * MIB), large(20 * MIB));
    assert!(!one.is_null() && !two.is_null());
    free(raw::malloc(300_000));
    assert!(totals().dirty < MIB, "{}", totals().dirty);
    assert!(limits::soft_reached() > reached);
    free(one);
    free(two);
}

/// The heap is far beyond the bound, so a purge of all of it after each few pages would take most
/// of the time.
#[test]
fn growth_far_beyond_the_soft_bound_is_purged_now_and_then() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    limits::set_soft(MIB);
    let reached = limits::soft_reached();
    let blocks: Vec<_> = (0..64 * MIB / 1024).map(|_| raw::malloc(1024)).collect();
    let purges = limits::soft_reached() - reached;
    // A step is a sixty-fourth of what is held: 64 of them make the heap e times as large.
    assert!((32..320).contains(&purges), "{purges}");
    blocks.into_iter().for_each(free);
}

#[test]
fn reaching_the_soft_bound_past_all_caches_purges_too() {
    let (_alone, _unbound) = (alone(), Unbound);
    assert!(purge(ARENAS_ALL));
    limits::set_soft(limits::held() + 32 * MIB);
    let flags = [0, 1].map(|_| Flags::NONE.arena(arenas::create().unwrap()));
    for size in [1000, 100_000] {
        let allocate = |flags| {
            let blocks = (0..20 * MIB / size).map(|_| raw::allocate(size, flags));
            blocks.collect::<Vec<_>>()
        };
        for block in allocate(flags[0]) {
            // SAFETY: a block of this allocator, freed once.
            unsafe { raw::deallocate(block, flags[0]) };
        }
        assert!(totals().dirty >= 16 * MIB, "below it nothing happens");
        let other = allocate(flags[1]);
        assert!(totals().dirty < 2 * MIB, "{size}: {}", totals().dirty);
        for block in other {
            // SAFETY: a block of this allocator, freed once.
            unsafe { raw::deallocate(block, flags[1]) };
        }
        assert!(purge(ARENAS_ALL));
    }
}

#[test]
fn an_arena_has_a_bound_of_its_own() {
    let _alone = alone();
    let arena = arenas::create().unwrap();
    assert_eq!(arenas::limit(arena), Some(0));
    assert!(arenas::set_limit(arena, 8 * MIB) && !arenas::set_limit(4000, 1));
    let flags = Flags::NONE.arena(arena);
    let first = raw::allocate(5 * MIB, flags);
    assert!(!first.is_null() && raw::allocate(5 * MIB, flags).is_null());
    let elsewhere = large(16 * MIB);
    assert!(!elsewhere.is_null(), "others are not bound by it");
    free(elsewhere);
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(first, flags) };
    assert!(!raw::allocate(7 * MIB, flags).is_null());
    // SAFETY: the blocks of the arena are no longer used.
    assert!(unsafe { arenas::destroy(arena) });
}
