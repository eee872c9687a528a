//! What other threads may do while an extent hook runs, and what waits for the hook.
#![allow(unsafe_code)]

mod common;
#[allow(dead_code, reason = "for several test programs")]
#[path = "hooks/recording.rs"]
mod recording;
#[allow(dead_code, reason = "for several test programs")]
#[path = "hooks/at_work.rs"]
mod at_work;
#[path = "hooks/functions.rs"]
mod functions;

use at_work::{block_in, create, destroy, free, stop_at, with_a_hooked_first_arena};
use common::alone;
use common::block::Block;
use lumalloc::control::{ARENAS_ALL, arenas, purge};
use lumalloc::raw::{self, Flags};
use recording::{Op, Recording};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

const MIB: usize = 1 << 20;

#[test]
fn an_arena_ends_after_the_hooks_that_are_under_way() {
    let _alone = alone();
    for stop in [Op::Dalloc, Op::Decommit, Op::PurgeForced, Op::PurgeLazy] {
        let recording = Recording::of_buffer(64 * MIB);
        if stop != Op::Dalloc {
            recording.refuse(&[Op::Dalloc, Op::Decommit, Op::PurgeForced]);
        }
        let arena = create(recording);
        free(&block_in(arena, MIB));
        let (door, stopped) = stop_at(recording, stop);
        let purger = thread::spawn(move || assert!(purge(arena)));
        stopped.recv().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let ender = thread::spawn(move || {
            destroy(arena);
            over.store(true, Relaxed);
        });
        // The arena cannot end, because the hook still has the run.
        (0..1000).for_each(|_| thread::yield_now());
        assert!(!is_over.load(Relaxed), "{stop:?}");
        door.open();
        purger.join().unwrap();
        ender.join().unwrap();
        assert_eq!(recording.bytes_held(), 0, "{stop:?}");
    }
}

#[test]
fn in_a_forked_child_an_arena_ends_without_what_hooks_had_in_hand() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 * MIB);
    let arena = create(recording);
    free(&block_in(arena, MIB));
    let held = recording.bytes_held();
    let (door, stopped) = stop_at(recording, Op::Dalloc);
    let purger = thread::spawn(move || assert!(purge(arena)));
    stopped.recv().unwrap();
    // SAFETY: the child makes only calls that are allowed there, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a child that hangs is killed.
        unsafe { libc::alarm(30) };
        // SAFETY: no thread uses the arena.
        let ended = unsafe { arenas::destroy(arena) };
        let lost = recording.bytes_held();
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(i32::from(!(ended && lost > 0 && lost <= held))) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    door.open();
    purger.join().unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    destroy(arena);
    assert_eq!(recording.bytes_held(), 0);
}

#[test]
fn in_a_forked_child_an_arena_that_was_being_destroyed_can_be_destroyed() {
    let _alone = alone();
    let recording = Recording::of_buffer(64 * MIB);
    let arena = create(recording);
    free(&block_in(arena, MIB));
    let (door, stopped) = stop_at(recording, Op::Dalloc);
    let ender = thread::spawn(move || destroy(arena));
    stopped.recv().unwrap();
    // SAFETY: the child makes only calls that are allowed there, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a child that hangs is killed.
        unsafe { libc::alarm(30) };
        // SAFETY: no thread uses the arena.
        let ended = unsafe { arenas::destroy(arena) };
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(i32::from(!ended)) };
    }
    let mut status = 0;
    // SAFETY: the child is this process's, and `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    door.open();
    ender.join().unwrap();
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status:#x}");
    assert_eq!(recording.bytes_held(), 0);
}

#[test]
fn a_run_that_a_hook_works_on_is_nobody_else_s() {
    let _alone = alone();
    for stop in [Op::Split, Op::Commit, Op::Merge] {
        let recording = Recording::of_buffer(64 * MIB);
        let arena = create(recording);
        match stop {
            // A run of sufficient length without memory.
            Op::Commit => {
                recording.refuse(&[Op::Dalloc]);
                free(&block_in(arena, MIB));
                assert!(purge(arena));
            }
            // Two neighbours that are long enough only together.
            Op::Merge => {
                let blocks = [block_in(arena, MIB), block_in(arena, MIB)];
                blocks.iter().for_each(free);
            }
            _ => free(&block_in(arena, MIB)),
        }
        let (door, stopped) = stop_at(recording, stop);
        let size = if stop == Op::Merge { 2 * MIB } else { MIB / 2 };
        let worker = thread::spawn(move || block_in(arena, size));
        stopped.recv().unwrap();
        // Meanwhile this thread allocates, purges, merges and queries. The hooks check each call.
        let blocks: Vec<Block> =
            [MIB, MIB / 4, 3 * MIB, 5000, 100].map(|size| block_in(arena, size)).into();
        assert!(purge(ARENAS_ALL));
        blocks.iter().for_each(free);
        assert!(purge(arena));
        door.open();
        free(&worker.join().unwrap());
        destroy(arena);
        assert_eq!(recording.bytes_held(), 0, "{stop:?}");
    }
}

#[test]
fn threads_of_several_arenas_with_hooks_never_meet() {
    let _alone = alone();
    with_a_hooked_first_arena(|_| {
        let recordings = [(); 2].map(|()| Recording::of_buffer(256 * MIB));
        let all = recordings.map(|recording| {
            recording.meddle();
            (recording, create(recording))
        });
        thread::scope(|scope| {
            for (thread, (_, arena)) in (0..6).flat_map(|n| all.map(|one| (n, one))) {
                scope.spawn(move || {
                    for round in 0..150usize {
                        let size = 5000 + (round * 7919 + thread * 104_729) % 300_000;
                        let flags = Flags::NONE.arena(arena);
                        let got = Block::filled(raw::allocate(size, flags), size, round as u64);
                        let block = got.expect("there is enough of it");
                        thread::yield_now();
                        free(&block);
                        if round % 40 == 0 {
                            assert!(purge(arena));
                        }
                    }
                });
            }
        });
        for (recording, arena) in all {
            destroy(arena);
            assert_eq!(recording.bytes_held(), 0);
        }
    });
}
