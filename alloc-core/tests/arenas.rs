//! Arenas that the program creates: their blocks, their end, their settings.
#![allow(unsafe_code)]

mod common;

use common::alone;
use common::block::Block;
use lumalloc::control::arenas::{self, Pages};
use lumalloc::control::{ARENAS_ALL, flush_thread_cache, narenas, purge};
use lumalloc::observe::totals;
use lumalloc::options::Dss;
use lumalloc::raw::{self, Flags};
use std::thread;

fn create() -> u32 {
    arenas::create().expect("an arena")
}

/// Ends an arena none of whose blocks is used any more.
fn destroy(arena: u32) -> bool {
    // SAFETY: the tests no longer use a block of the arena.
    unsafe { arenas::destroy(arena) }
}

fn reset(arena: u32) -> bool {
    // SAFETY: the tests no longer use a block of the arena.
    unsafe { arenas::reset(arena) }
}

/// Allocates blocks of all kinds: a few small ones of each size, and large ones.
fn blocks(arena: u32) -> Vec<*mut u8> {
    let sizes = (0..60).flat_map(|n| [8 + n * 13, 100 + n * 131, 3000 + n * 200]);
    let large = [20_000, 100_000, 1 << 20, 5 << 20];
    let sizes = sizes.chain(large);
    let take = |size| {
        let block = raw::allocate(size, Flags::NONE.arena(arena));
        assert!(!block.is_null());
        // SAFETY: a fresh block of this size.
        unsafe { block.write_bytes(0xab, size) };
        assert_eq!(arenas::lookup(block), Some(arena));
        block
    };
    sizes.map(take).collect()
}

#[test]
fn indices_follow_the_automatic_ones_and_come_again() {
    let _alone = alone();
    let before = narenas();
    let (first, second) = (create(), create());
    assert_eq!(second, first + 1);
    assert!(narenas() >= before && narenas() > second);
    assert!(arenas::is_initialized(first) && arenas::is_initialized(ARENAS_ALL));
    assert!(destroy(first));
    assert!(!arenas::is_initialized(first) && !destroy(first) && !reset(first));
    assert!(raw::allocate(10, Flags::NONE.arena(first)).is_null());
    assert_eq!(create(), first, "the lowest index that is free");
    assert!(destroy(first) && destroy(second));
    assert!(!arenas::is_initialized(4000));
}

#[test]
fn automatic_arenas_are_neither_reset_nor_destroyed() {
    let _alone = alone();
    assert!(!reset(0) && !destroy(0));
    assert!(!reset(4000) && !destroy(ARENAS_ALL));
}

#[test]
fn blocks_stay_in_their_arena_and_move_when_told() {
    let _alone = alone();
    let (one, two) = (create(), create());
    let block = raw::allocate(100, Flags::NONE.arena(one));
    // SAFETY: the block has 100 bytes.
    unsafe { block.write_bytes(7, 100) };
    // SAFETY: a block of this allocator.
    let same = unsafe { raw::reallocate(block, 110, Flags::NONE.arena(one)) };
    assert_eq!(same, block);
    // SAFETY: a block of this allocator.
    let moved = unsafe { raw::reallocate(block, 100_000, Flags::NONE.arena(two)) };
    assert_eq!(arenas::lookup(moved), Some(two));
    // SAFETY: the first 100 bytes were copied.
    assert!((0..100).all(|at| unsafe { moved.wrapping_add(at).read() } == 7));
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(moved, Flags::NONE.uncached()) };
    assert!(destroy(one) && destroy(two));
}

#[test]
fn lookup_knows_blocks_and_nothing_else() {
    let _alone = alone();
    let automatic = raw::malloc(100);
    assert!(arenas::lookup(automatic).is_some_and(|arena| arena < narenas()));
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(automatic) };
    let large = raw::malloc(100_000);
    assert!(arenas::lookup(large).is_some());
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(large) };
    // A block of 0 bytes lies in no arena, so the first one stands for it.
    let nothing = raw::malloc(0);
    assert_eq!(arenas::lookup(nothing), Some(0));
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(nothing) };
    assert_eq!(arenas::lookup(nothing), None);
    let foreign = Box::leak(Box::new([0u8; 100])).as_ptr();
    for pointer in [std::ptr::null(), std::ptr::without_provenance(usize::MAX), foreign] {
        assert_eq!(arenas::lookup(pointer), None, "{pointer:?}");
    }
}

#[test]
fn a_reset_discards_everything_and_the_arena_goes_on() {
    let _alone = alone();
    flush_thread_cache();
    let arena = create();
    let before = totals();
    for _ in 0..3 {
        let count = blocks(arena).len();
        assert!(count > 180);
        assert!(totals().allocated > before.allocated + (6 << 20));
        assert!(reset(arena));
        let after = totals();
        assert_eq!(after.allocated, before.allocated);
        assert_eq!(after.active, before.active);
    }
    assert!(totals().dirty > before.dirty, "the memory waits for its next use");
    assert!(purge(arena));
    assert!(destroy(arena));
}

#[test]
fn destroyed_memory_is_gone() {
    let _alone = alone();
    let arena = create();
    let kept = blocks(arena);
    let page = kept.last().expect("a block").addr() & !4095;
    assert_eq!(mincore(page), Some(true));
    let before = totals();
    assert!(destroy(arena));
    assert_eq!(mincore(page), None, "its addresses are not mapped any more");
    let after = totals();
    assert!(after.mapped < before.mapped - (6 << 20));
    assert!(after.retained <= before.retained);
}

/// Whether a page is in memory, or `None` if it is not mapped.
fn mincore(page: usize) -> Option<bool> {
    let mut answer = 0u8;
    let place = std::ptr::with_exposed_provenance_mut(page);
    // SAFETY: `answer` has one byte, for one page.
    let status = unsafe { libc::mincore(place, 4096, &raw mut answer) };
    (status == 0).then_some(answer & 1 == 1)
}

#[test]
fn owned_slabs_are_stripped_from_other_threads_caches() {
    let _alone = alone();
    let arena = create();
    // Frees by other threads leave pending slabs on the stacks of the bins.
    let blocks: Vec<usize> = blocks(arena).into_iter().map(|block| block as usize).collect();
    thread::scope(|scope| {
        for part in blocks.chunks(40) {
            scope.spawn(move || {
                for block in part.iter().step_by(2) {
                    let block = std::ptr::with_exposed_provenance_mut(*block);
                    // SAFETY: a block of this allocator, freed once.
                    unsafe { raw::free(block) };
                }
                flush_thread_cache();
            });
        }
    });
    assert!(reset(arena));
    assert!(destroy(arena));
}

#[test]
fn other_arenas_work_while_one_is_reset() {
    let _alone = alone();
    let arena = create();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    for round in 0..3000usize {
                        let length = |n: usize| (n * 97 + round * 31 + seed) % 9000 + 1;
                        let fill =
                            |n: usize| Block::filled(raw::malloc(length(n)), length(n), n as u64);
                        let kept: Vec<Block> = (0..20).filter_map(fill).collect();
                        for block in kept {
                            block.check(block.length);
                            // SAFETY: a block of this allocator, freed once.
                            unsafe { raw::free(block.ptr()) };
                        }
                    }
                })
            })
            .collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            blocks(arena);
            assert!(reset(arena));
        }
    });
    assert!(destroy(arena));
}

#[test]
fn decay_times_are_set_for_one_and_for_those_made_later() {
    let _alone = alone();
    let arena = create();
    let options = lumalloc::options::current();
    assert_eq!(arenas::decay_ms(arena, Pages::Dirty), Some(options.dirty_decay_ms));
    assert_eq!(arenas::decay_ms(arena, Pages::Muzzy), Some(options.muzzy_decay_ms));
    assert!(!arenas::set_decay_ms(arena, Pages::Dirty, -2));
    assert!(!arenas::set_decay_ms(4000, Pages::Dirty, 1));
    assert!(arenas::set_decay_ms(arena, Pages::Muzzy, 500));
    assert_eq!(arenas::decay_ms(arena, Pages::Muzzy), Some(500));
    assert!(!arenas::set_default_decay_ms(Pages::Dirty, -2));
    assert!(arenas::set_default_decay_ms(Pages::Dirty, -1));
    assert_eq!(arenas::default_decay_ms(Pages::Dirty), -1);
    let later = create();
    assert_eq!(arenas::decay_ms(later, Pages::Dirty), Some(-1));
    assert!(arenas::set_default_decay_ms(Pages::Dirty, options.dirty_decay_ms));
    assert!(destroy(arena) && destroy(later));
    assert_eq!(arenas::decay_ms(arena, Pages::Dirty), None);
}

/// Frees a large block of an arena, and returns whether its memory is still there.
fn stays_after_free(arena: u32) -> bool {
    let block = raw::allocate(1 << 20, Flags::NONE.arena(arena));
    // SAFETY: a fresh block of this size.
    unsafe { block.write_bytes(1, 1 << 20) };
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(block, Flags::NONE.arena(arena)) };
    mincore(block as usize).expect("its addresses stay")
}

#[test]
fn each_arena_gives_pages_back_by_its_own_time() {
    let _alone = alone();
    let arena = create();
    assert!(stays_after_free(arena));
    assert!(arenas::set_decay_ms(arena, Pages::Dirty, 0));
    assert!(!stays_after_free(arena), "0: at once");
    assert!(arenas::set_decay_ms(arena, Pages::Dirty, -1));
    assert!(stays_after_free(arena));
    assert!(arenas::decay(arena) && arenas::decay(ARENAS_ALL) && !arenas::decay(4000));
    assert!(stays_after_free(arena), "-1: never");
    assert!(arenas::set_oversize_threshold(arena, 1 << 20));
    assert!(!stays_after_free(arena), "long ones at once");
    assert_eq!(arenas::oversize_threshold(arena), Some(1 << 20));
    assert!(destroy(arena));
    let again = create();
    assert_eq!(arenas::oversize_threshold(again), Some(0), "another life");
    assert!(destroy(again));
}

#[test]
fn a_written_decay_time_purges_what_is_unused_now() {
    let _alone = alone();
    let arena = create();
    let block = raw::allocate(1 << 20, Flags::NONE.arena(arena).zeroed());
    // SAFETY: a fresh block of this size.
    unsafe { block.write_bytes(1, 1 << 20) };
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(block, Flags::NONE.arena(arena)) };
    assert_eq!(mincore(block as usize), Some(true));
    assert!(arenas::set_decay_ms(arena, Pages::Dirty, 10_000));
    assert_eq!(mincore(block as usize), Some(false));
    assert!(destroy(arena));
}

#[test]
fn names_and_the_rest() {
    let _alone = alone();
    let arena = create();
    let name = arenas::name(arena).unwrap();
    assert!(name.starts_with(format!("manual_{arena}\0").as_bytes()));
    assert!(arenas::set_name(arena, b"tenant-7"));
    assert!(arenas::name(arena).unwrap().starts_with(b"tenant-7\0"));
    assert!(!arenas::set_name(4000, b"none") && arenas::name(4000).is_none());
    assert_eq!(arenas::dss(arena), arenas::dss(ARENAS_ALL));
    assert!(arenas::set_dss(arena, Dss::Primary));
    assert_eq!(arenas::dss(arena), Some(Dss::Primary));
    let from_segment = raw::allocate(100, Flags::NONE.arena(arena));
    // SAFETY: the call only returns the break.
    assert!((from_segment as usize) < unsafe { libc::sbrk(0) } as usize);
    assert!(destroy(arena), "what the system does not take goes to the first arena");
    let arena = create();
    assert_eq!(arenas::dss(arena), arenas::dss(ARENAS_ALL));
    assert_eq!(arenas::retain_grow_limit(arena), Some(1 << 30));
    assert!(arenas::set_retain_grow_limit(arena, (5 << 20) + 5000));
    assert_eq!(arenas::retain_grow_limit(arena), Some(5 << 20));
    assert!(!arenas::set_retain_grow_limit(arena, 4095));
    assert!(destroy(arena));
}
