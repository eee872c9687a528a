//! The reserve of an arena: purges leave it, and a thread that allocates from it never waits.
#![allow(unsafe_code)]

mod common;

use common::alone;
use common::child::{play_well, scenario};
use lumalloc::control::{self, ARENAS_ALL, arenas, limits, thread};
use lumalloc::observe::Detail;
use lumalloc::raw::{self, Flags};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MIB: usize = 1 << 20;

/// Creates an arena with `unused` unused bytes and a reserve.
fn arena_with(unused: usize, reserve: usize) -> u32 {
    let arena = arenas::create().unwrap();
    assert!(arenas::set_decay_ms(arena, arenas::Pages::Dirty, -1));
    assert_eq!(arenas::reserve(arena), Some(0));
    fill(arena, unused);
    assert!(arenas::set_reserve(arena, reserve));
    assert_eq!(arenas::reserve(arena), Some(reserve));
    arena
}

fn fill(arena: u32, bytes: usize) {
    let block = raw::allocate(bytes, Flags::NONE.arena(arena));
    assert!(!block.is_null());
    // SAFETY: a live block, freed once.
    unsafe { raw::free(block) };
}

#[test]
fn what_purges_leaves_it() {
    let _alone = alone();
    let arena = arena_with(6 * MIB, 2 * MIB);
    let held = || arenas::held(arena).unwrap();
    assert!((2 * MIB..3 * MIB).contains(&held()), "{}", held());
    assert!(control::purge(arena) && control::purge(ARENAS_ALL));
    assert!((2 * MIB..3 * MIB).contains(&held()), "{}", held());
    limits::set_hard(limits::held() + MIB);
    assert!(raw::allocate(64 * MIB, Flags::NONE).is_null());
    limits::set_hard(0);
    assert!((2 * MIB..3 * MIB).contains(&held()), "{}", held());
    assert!(arenas::set_reserve(arena, 0));
    assert!(held() < MIB, "{}", held());
    assert!(!arenas::set_reserve(4000, MIB));
    assert_eq!(arenas::reserve(4000), None);
}

/// A thread that has to go on without memory must not take the addresses of the others.
#[test]
fn few_addresses_stay_without_memory() {
    let _alone = alone();
    let arena = arena_with(0, MIB);
    let addresses = || {
        let mut detail = Detail::new();
        detail.refresh();
        let space = &detail.arena(arena as usize).unwrap().space;
        space.mapped + space.retained
    };
    for unused in [3 * MIB, 40 * MIB, 100 * MIB, 5 * MIB] {
        fill(arena, unused);
        assert!(control::purge(arena));
        assert!(addresses() <= 8 * MIB, "{} of {unused}", addresses());
    }
    assert!(arenas::set_reserve(arena, 0));
    fill(arena, 40 * MIB);
    assert!(control::purge(arena) && addresses() >= 40 * MIB, "{}", addresses());
}

/// A thread of another arena takes none of it, although that arena has unused memory.
#[test]
fn it_is_for_the_threads_of_its_arena() {
    play_well("other", "narenas:2");
}

#[test]
#[ignore = "the scenario of the test above"]
fn child() {
    let Some(name) = scenario() else { return };
    assert_eq!(name, "other", "no such scenario");
    let arena_of_a_large_block = || arenas::lookup(raw::malloc(3 * MIB));
    fill(1, 16 * MIB);
    assert!(arenas::set_decay_ms(1, arenas::Pages::Dirty, -1));
    fill(1, 16 * MIB);
    assert_eq!(arena_of_a_large_block(), Some(1), "its unused memory is anybody's");
    assert!(arenas::set_reserve(1, 8 * MIB));
    assert_eq!(arena_of_a_large_block(), Some(0));
}

static ASKED: AtomicUsize = AtomicUsize::new(0);

/// At the bound others purge and ask the program. A thread on a reserve uses it up, and fails.
#[test]
fn who_lives_on_it_asks_nobody() {
    let _alone = alone();
    let arena = arena_with(2 * MIB, 2 * MIB);
    assert!(limits::set_function(|_| {
        ASKED.fetch_add(1, Relaxed);
        false
    }));
    limits::set_hard(limits::held());
    let worker = std::thread::spawn(move || {
        thread::set_arena(arena).unwrap();
        let mut blocks = Vec::new();
        loop {
            let block = raw::malloc(100 << 10);
            if block.is_null() {
                break blocks.len();
            }
            blocks.push(block as usize);
            if blocks.len() == 1000 {
                break 1000;
            }
        }
    });
    let got = worker.join().unwrap();
    assert!((10..=22).contains(&got), "{got} blocks of 100 KiB in 2 MiB");
    assert_eq!(ASKED.load(Relaxed), 0);
    assert!(raw::malloc(64 * MIB).is_null());
    assert_eq!(ASKED.load(Relaxed), 1);
    limits::set_hard(0);
}
