//! Extent hooks: memory of the program, hooks that refuse, how pages are given back, and hooks that
//! call the allocator.
#![allow(unsafe_code)]

mod common;
#[path = "hooks/recording.rs"]
mod recording;
#[path = "hooks/functions.rs"]
mod functions;

use common::alone;
use common::block::Block;
use lumalloc::control::arenas::{self, ExtentHooks, Pages};
use lumalloc::control::{ARENAS_ALL, purge};
use lumalloc::observe::totals;
use lumalloc::raw::{self, Flags};
use recording::{Op, Recording};
use std::thread;

fn create(hooks: &'static ExtentHooks) -> u32 {
    // SAFETY: the tables stay valid, and their hooks do what the manual says.
    unsafe { arenas::create_with(std::ptr::from_ref(hooks).cast_mut()) }.expect("an arena")
}

fn destroy(arena: u32) {
    // SAFETY: the tests no longer use a block of the arena.
    assert!(unsafe { arenas::destroy(arena) });
}

fn allocate(arena: u32, size: usize, id: u64) -> Option<Block> {
    Block::filled(raw::allocate(size, Flags::NONE.arena(arena)), size, id)
}

fn free(block: &Block) {
    block.check(block.length);
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(block.ptr(), Flags::NONE.uncached()) };
}

/// Allocates, grows, shrinks and frees blocks, and checks their contents.
fn traffic(arena: u32) {
    let mut kept: Vec<Block> = Vec::new();
    for round in 0..3000usize {
        let size = match round % 10 {
            0 => 20_000 + round * 61 % 300_000,
            _ => 1 + round * 37 % 9000,
        };
        kept.extend(allocate(arena, size, round as u64));
        if round % 7 == 0
            && let Some(block) = kept.pop()
        {
            kept.push(resized(arena, block, 1 + round * 211 % 400_000));
        }
        if round % 3 != 0 {
            let at = round * 7919 % kept.len();
            free(&kept.swap_remove(at));
        }
        if round % 500 == 0 {
            assert!(purge(arena));
        }
    }
    kept.iter().for_each(free);
}

fn resized(arena: u32, block: Block, size: usize) -> Block {
    // SAFETY: a block of this allocator.
    let new = unsafe { raw::reallocate(block.ptr(), size, Flags::NONE.arena(arena)) };
    if new.is_null() {
        return block;
    }
    let common = size.min(block.length);
    // Only some bytes of a longer block were written, so only its beginning is checked.
    let moved = Block { address: new.expose_provenance(), length: block.length, id: block.id };
    moved.check(common.min(4096));
    Block::filled(new, size, block.id).expect("a block")
}

#[test]
fn an_arena_lives_in_memory_of_the_program_s() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 << 20);
    let arena = create(recording.hooks());
    traffic(arena);
    let block = allocate(arena, 100_000, 1).expect("a block");
    assert!(recording.holds(block.address));
    assert!(allocate(arena, 100 << 20, 1).is_none(), "more than there is");
    let mut all = vec![block];
    while let Some(block) = allocate(arena, 1 << 20, 7) {
        assert!(recording.holds(block.address));
        all.push(block);
    }
    assert!(all.len() > 40, "{}", all.len());
    all.iter().for_each(free);
    let long = allocate(arena, 30 << 20, 1);
    assert!(long.is_some(), "what is free goes back when nothing else helps");
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0, "all of it came back");
    assert!(recording.count(Op::Destroy) + recording.count(Op::Dalloc) > 0);
}

#[test]
fn an_arena_lives_in_a_file() {
    let _alone = alone();
    let recording = Recording::of_file(64 << 20);
    let arena = create(recording.hooks());
    traffic(arena);
    let block = allocate(arena, 1 << 20, 99).expect("a block");
    // SAFETY: the block is that long.
    let seen = unsafe { std::slice::from_raw_parts(block.ptr(), 4096) };
    assert_eq!(recording.file_at(block.address, 4096), seen, "what is written is in the file");
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0);
}

#[test]
fn hooks_may_refuse_each_operation_and_all_of_them() {
    let _alone = alone();
    for refused in [
        &[][..],
        &[Op::Dalloc],
        &[Op::Commit],
        &[Op::Decommit],
        &[Op::PurgeLazy],
        &[Op::PurgeForced],
        &[Op::Split],
        &[Op::Merge],
        &[Op::Dalloc, Op::Decommit],
        &[Op::Dalloc, Op::Decommit, Op::PurgeForced],
        &[Op::Split, Op::Merge, Op::Dalloc, Op::Decommit, Op::PurgeForced, Op::PurgeLazy],
    ] {
        let recording = Recording::of_buffer(256 << 20);
        recording.refuse(refused);
        let arena = create(recording.hooks());
        traffic(arena);
        assert!(arenas::set_decay_ms(arena, Pages::Muzzy, 1000));
        traffic(arena);
        destroy(arena);
        if !refused.contains(&Op::Dalloc) {
            assert_eq!(recording.bytes_held(), 0, "{refused:?}");
        }
    }
}

#[test]
fn hooks_that_are_not_there_refuse() {
    let _alone = alone();
    let recording = Recording::of_buffer(256 << 20);
    let only_alloc: &ExtentHooks = Box::leak(Box::new(ExtentHooks {
        alloc: recording.hooks().alloc,
        ..ExtentHooks::default()
    }));
    recording.answer_for(only_alloc);
    let arena = create(only_alloc);
    traffic(arena);
    destroy(arena);
    let none: &ExtentHooks = Box::leak(Box::new(ExtentHooks::default()));
    let arena = create(none);
    assert!(allocate(arena, 10, 1).is_none() && allocate(arena, 1 << 20, 1).is_none());
    destroy(arena);
}

#[test]
fn memory_goes_back_as_far_as_it_is_let() {
    let _alone = alone();
    let way = |refused: &[Op]| {
        let recording = Recording::of_buffer(64 << 20);
        recording.refuse(refused);
        let arena = create(recording.hooks());
        free(&allocate(arena, 1 << 20, 3).expect("a block"));
        recording.forget();
        assert!(purge(arena));
        let way = recording.ops();
        let again = allocate(arena, 1 << 20, 3).expect("a block");
        let commits = recording.count(Op::Commit);
        free(&again);
        destroy(arena);
        (way, commits > 0)
    };
    use Op::{Dalloc, Decommit, PurgeForced, PurgeLazy};
    assert_eq!(way(&[]), (vec![Dalloc], false));
    assert_eq!(way(&[Dalloc]), (vec![Dalloc, Decommit], true), "committed before its next use");
    assert_eq!(way(&[Dalloc, Decommit]), (vec![Dalloc, Decommit, PurgeForced], false));
    let last = vec![Dalloc, Decommit, PurgeForced, PurgeLazy];
    assert_eq!(way(&[Dalloc, Decommit, PurgeForced]), (last.clone(), false));
    assert_eq!(way(&[Dalloc, Decommit, PurgeForced, PurgeLazy]), (last, false));
}

/// Memory that was in use, memory that was purged, and the rest of a chunk, which was never used.
#[test]
fn only_what_is_used_gets_memory_again() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 << 20);
    recording.refuse(&[Op::Dalloc]);
    let arena = create(recording.hooks());
    let committed = || -> usize {
        let runs = &recording.state().runs;
        runs.values().filter(|(_, is_committed)| *is_committed).map(|(size, _)| size).sum()
    };
    let long = allocate(arena, 8 << 20, 1).expect("a block");
    free(&long);
    assert!(purge(arena));
    let before = committed();
    let short = allocate(arena, 64 << 10, 2).expect("a block");
    assert!(committed() <= before + (1 << 20), "{} {before}", committed());
    // SAFETY: a block of this allocator.
    let grown = unsafe { raw::reallocate(short.ptr(), 128 << 10, Flags::NONE.arena(arena)) };
    assert!(committed() <= before + (1 << 20), "{} {before}", committed());
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::free(grown) };
    destroy(arena);
}

#[test]
fn what_alloc_gave_and_hooks_refuse_to_commit_comes_back_when_the_arena_ends() {
    let _alone = alone();
    let recording = Recording::of_buffer(256 << 20);
    recording.give_uncommitted();
    recording.refuse(&[Op::Commit, Op::Dalloc]);
    let arena = create(recording.hooks());
    assert!(allocate(arena, 20_000, 1).is_none());
    assert!(recording.bytes_held() > 0, "hooks have not taken it back");
    recording.refuse(&[Op::Dalloc]);
    free(&allocate(arena, 20_000, 2).expect("a block that is committed now"));
    recording.refuse(&[Op::Commit, Op::Dalloc]);
    assert!(allocate(arena, 8 << 20, 3).is_none());
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0, "destroy got it");
}

#[test]
fn a_large_block_is_asked_of_one_arena_s_hooks() {
    let _alone = alone();
    let default = arenas::extent_hooks(0).expect("the first arena");
    let recording = Recording::of_hooks(default);
    let table = std::ptr::from_ref(recording.hooks()).cast_mut();
    let automatic = || (0..).take_while(|arena| arenas::extent_hooks(*arena).is_some());
    for arena in automatic() {
        // SAFETY: the table stays valid, and its hooks do what the manual says.
        assert_eq!(unsafe { arenas::set_extent_hooks(arena, table) }, Some(default));
    }
    let before = recording.count(Op::Alloc);
    let block = Block::filled(raw::malloc(64 << 20), 64 << 20, 5).expect("a block");
    assert_eq!(recording.count(Op::Alloc), before + 1);
    free(&block);
    for arena in automatic() {
        // SAFETY: the default table stays valid.
        assert_eq!(unsafe { arenas::set_extent_hooks(arena, default) }, Some(table));
    }
}

#[test]
fn what_alloc_gave_comes_back_by_dalloc_or_destroy_when_the_arena_ends() {
    let _alone = alone();
    let end = |refused: &[Op], has_destroy: bool| {
        let recording = Recording::of_buffer(256 << 20);
        let destroy_hook = recording.hooks().destroy.filter(|_| has_destroy);
        let table = ExtentHooks { destroy: destroy_hook, ..*recording.hooks() };
        let table: &ExtentHooks = Box::leak(Box::new(table));
        recording.answer_for(table);
        recording.refuse(refused);
        let arena = create(table);
        traffic(arena);
        assert!(purge(arena));
        let blocks = [100, 20_000, 1 << 20].map(|size| allocate(arena, size, 1).expect("a block"));
        free(&blocks[1]);
        let held = recording.bytes_held();
        recording.forget();
        destroy(arena);
        let returned = held - recording.bytes_held();
        (returned == held, recording.count(Op::Dalloc) > 0, recording.count(Op::Destroy) > 0)
    };
    assert_eq!(end(&[], true), (true, true, false));
    assert_eq!(end(&[], false), (true, true, false));
    assert_eq!(end(&[Op::Split, Op::Merge], false), (true, true, false));
    assert_eq!(end(&[Op::Dalloc], true), (true, true, true));
    assert_eq!(end(&[Op::Dalloc, Op::Decommit], true), (true, true, true));
    assert_eq!(end(&[Op::Dalloc], false), (false, true, false), "the hooks keep it");
}

#[test]
fn purged_memory_reads_zero_where_hooks_say_so() {
    let _alone = alone();
    for refused in [&[Op::Dalloc][..], &[Op::Dalloc, Op::Decommit]] {
        let recording = Recording::of_buffer(64 << 20);
        recording.refuse(refused);
        let arena = create(recording.hooks());
        free(&allocate(arena, 1 << 20, 3).expect("a block"));
        assert!(purge(arena));
        let zeroed = raw::allocate(1 << 20, Flags::NONE.arena(arena).zeroed());
        // SAFETY: the block is that long.
        let bytes = unsafe { std::slice::from_raw_parts(zeroed, 1 << 20) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        destroy(arena);
    }
}

#[test]
fn a_decay_time_of_zero_gives_back_without_a_lock() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 << 20);
    let arena = create(recording.hooks());
    assert!(arenas::set_decay_ms(arena, Pages::Dirty, 0));
    free(&allocate(arena, 1 << 20, 3).expect("a block"));
    // The next slow path of any thread does it.
    free(&Block::filled(raw::malloc(1 << 20), 1 << 20, 1).expect("a block"));
    assert_eq!(recording.bytes_held(), (2 << 20) - (1 << 20), "the other half of the chunk");
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0);
}

#[test]
fn hooks_may_allocate_and_ask() {
    let _alone = alone();
    let recording = Recording::of_buffer(128 << 20);
    recording.meddle();
    let arena = create(recording.hooks());
    traffic(arena);
    assert!(purge(ARENAS_ALL));
    destroy(arena);
    assert!(recording.meddled() > 20);
}

#[test]
fn many_threads_share_an_arena_with_hooks() {
    let _alone = alone();
    let recording = Recording::of_buffer(512 << 20);
    recording.meddle();
    let arena = create(recording.hooks());
    thread::scope(|scope| {
        let threads = [(); 6].map(|()| scope.spawn(|| traffic(arena)));
        threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
    });
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0);
}

#[test]
fn default_hooks_work_for_whoever_calls_them() {
    let _alone = alone();
    free(&Block::filled(raw::malloc(1000), 1000, 1).expect("a block"));
    let held = || {
        let totals = totals();
        totals.active + totals.dirty + totals.muzzy + totals.retained
    };
    let before = held();
    let default = arenas::extent_hooks(0).expect("the first arena");
    let recording = Recording::of_hooks(default);
    let arena = create(recording.hooks());
    traffic(arena);
    assert!(recording.count(Op::Alloc) > 0);
    destroy(arena);
    assert_eq!(held(), before);
}

#[test]
fn an_automatic_arena_takes_hooks_and_gives_them_back() {
    let _alone = alone();
    let kept = Block::filled(raw::malloc(3 << 20), 3 << 20, 5).expect("a block");
    let default = arenas::extent_hooks(0).expect("the first arena");
    let recording = Recording::of_hooks(default);
    recording.meddle();
    let table = std::ptr::from_ref(recording.hooks()).cast_mut();
    // SAFETY: the table stays valid, and its hooks do what the manual says.
    assert_eq!(unsafe { arenas::set_extent_hooks(0, table) }, Some(default));
    assert_eq!(arenas::extent_hooks(0), Some(table));
    for round in 0..50usize {
        let size = (1 << 20) + round * 65536;
        let block = Block::filled(raw::malloc(size), size, 9).expect("a block");
        // SAFETY: a block of this allocator, freed once.
        unsafe { raw::free(block.ptr()) };
    }
    traffic(0);
    free(&kept);
    assert!(purge(0));
    assert!(recording.count(Op::Dalloc) > 0);
    // SAFETY: the default table stays valid.
    assert_eq!(unsafe { arenas::set_extent_hooks(0, default) }, Some(table));
    traffic(0);
    // SAFETY: the call is refused.
    assert_eq!(unsafe { arenas::set_extent_hooks(0, std::ptr::null_mut()) }, None);
    // SAFETY: the call is refused.
    assert_eq!(unsafe { arenas::set_extent_hooks(4000, default) }, None);
}
