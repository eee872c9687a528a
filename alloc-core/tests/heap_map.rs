//! The heap as a map: each run is shown with its state, and with what it holds.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::mappings::flags_of;
use common::touched::touch;
use lumalloc::control;
use lumalloc::control::arenas;
use lumalloc::observe::{self, Run, RunState};
use lumalloc::raw::{self, Flags};

const PAGE: usize = 4096;
const BIG: usize = 192 * PAGE;

#[test]
fn states_follow_what_happens_to_a_block() {
    play_well("states", "dirty_decay_ms:-1");
    play_well("waits", "dirty_decay_ms:-1,hardened:true");
}

#[test]
fn a_slab_tells_its_blocks_and_what_a_purge_gives() {
    play_well("slab", "dirty_decay_ms:-1,muzzy_decay_ms:-1,tcache:false,narenas:1");
}

#[test]
fn samples_tell_who_holds_them() {
    play_well("samples", "prof:true,lg_prof_sample:0,narenas:1");
    play_well("samples", "prof:true,lg_prof_sample:1,narenas:1");
    play_well("none", "prof:false");
}

#[test]
fn guarded_samples_and_records_are_shown() {
    play_well("guarded", "guarded_sample:1");
}

#[test]
fn huge_pages_are_told() {
    play_well("huge", "thp:always");
    play_well("huge", "thp:never");
    play_well("huge", "");
}

#[test]
fn a_map_in_parts_is_the_whole_map() {
    play_well("parts", "dirty_decay_ms:-1");
}

#[test]
fn states_have_names_of_one_word() {
    let names = RunState::ALL.map(RunState::name);
    assert_eq!(
        names,
        [
            "slab", "samples", "large", "kept", "dirty", "muzzy", "retained", "aside", "guarded",
            "metadata"
        ]
    );
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().as_deref() {
        Some("states") => states(),
        Some("waits") => waits(),
        Some("slab") => slab(),
        Some("samples") => samples(),
        Some("none") => none(),
        Some("guarded") => guarded(),
        Some("huge") => huge(),
        Some("parts") => parts(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// The run around an address.
#[track_caller]
fn at(address: usize) -> Run {
    let run = observe::heap_map().find(|run| (run.base..run.base + run.bytes).contains(&address));
    run.unwrap_or_else(|| panic!("no run at {address:#x}"))
}

fn free(block: *mut u8) {
    // SAFETY: the callers pass a live block that they do not use afterwards.
    unsafe { raw::deallocate(block, Flags::NONE.uncached()) }
}

fn states() {
    let arena = arenas::create().expect("an arena");
    let blocks = [(); 3].map(|()| raw::allocate(BIG, Flags::NONE.arena(arena).uncached()));
    let address = blocks[1].addr();
    let run = at(address + BIG / 2);
    let expected = Run {
        base: address,
        bytes: BIG,
        state: RunState::Large,
        arena: Some(arena),
        block: BIG,
        blocks: 1,
        used: 1,
        huge: run.huge,
        purgeable: 0,
        absent: 0,
    };
    assert_eq!(run, expected);
    free(blocks[1]);
    let run = at(address);
    assert_eq!((run.state, run.arena, run.used, run.block), (RunState::Dirty, Some(arena), 0, 0));
    assert!(run.purgeable == run.bytes && run.bytes >= BIG && run.absent == 0, "{run:?}");
    assert_eq!(runs_of(arena, RunState::Dirty), observe::totals().dirty);
    assert!(control::purge(arena));
    let run = at(address);
    assert_eq!((run.state, run.purgeable, run.absent), (RunState::Retained, 0, run.bytes));
    assert_eq!(runs_of(arena, RunState::Dirty), 0);
    free(blocks[0]);
    free(blocks[2]);
}

/// In the hardened tier the memory of a large block goes when it is freed.
fn waits() {
    let arena = arenas::create().expect("an arena");
    let blocks = [(); 3].map(|()| raw::allocate(BIG, Flags::NONE.arena(arena).uncached()));
    assert_eq!(at(blocks[1].addr()).state, RunState::Large);
    free(blocks[1]);
    let run = at(blocks[1].addr());
    assert_eq!(
        (run.state, run.arena, run.used, run.block),
        (RunState::Retained, Some(arena), 0, 0)
    );
    assert!(run.absent == run.bytes && run.bytes >= BIG && run.purgeable == 0, "{run:?}");
    free(blocks[0]);
    free(blocks[2]);
}

/// The bytes of all runs of an arena in a state.
fn runs_of(arena: u32, state: RunState) -> usize {
    let runs = observe::heap_map().filter(|run| run.arena == Some(arena) && run.state == state);
    runs.map(|run| run.bytes).sum()
}

fn slab() {
    // All blocks of a slab that has more than a page, of which some pages become free.
    let blocks: Vec<*mut u8> = (0..64).map(|_| raw::malloc(1024)).collect();
    let run = at(blocks[0].addr());
    assert_eq!((run.state, run.block, run.purgeable), (RunState::Slab, 1024, 0));
    let here = |block: &&*mut u8| (run.base..run.base + run.bytes).contains(&block.addr());
    assert_eq!(run.used, blocks.iter().filter(here).count());
    assert!(run.blocks * run.block <= run.bytes && run.blocks > 4, "{run:?}");
    // One block stays in each slab, so pages of it become free.
    blocks.iter().skip(1).for_each(|block| free(*block));
    let left = at(blocks[0].addr());
    assert_eq!((left.base, left.used, left.absent), (run.base, 1, 0));
    assert_eq!(left.purgeable, run.bytes - PAGE);
    assert!(control::purge(control::ARENAS_ALL));
    let purged = at(blocks[0].addr());
    assert_eq!((purged.purgeable, purged.absent), (0, left.purgeable));
    free(blocks[0]);
}

fn samples() {
    let small = raw::malloc(100);
    let large = raw::malloc(BIG);
    // Where each allocation is a sample, samples are ordinary blocks.
    let is_exact = observe::lg_profile_sample() == 0;
    let of_small = if is_exact { RunState::Slab } else { RunState::Samples };
    for (block, state) in [(small, of_small), (large, RunState::Large)] {
        let run = at(block.addr());
        assert_eq!(run.state, state);
        let mut found = Vec::new();
        run.samples(|sample| {
            found.push((sample.address, sample.requested, sample.stack.is_empty()));
        });
        found.retain(|(address, ..)| *address == block.addr());
        let requested = if state == RunState::Large { BIG } else { 100 };
        assert_eq!(found, [(block.addr(), requested, false)]);
        let age = run.oldest().expect("a sample");
        assert!(at(block.addr()).oldest() >= Some(age));
        free(block);
        run.samples(|sample| assert_ne!(sample.address, block.addr()));
        assert!(of_small == RunState::Slab || run.oldest().is_none());
    }
}

fn none() {
    let block = raw::malloc(100);
    let run = at(block.addr());
    run.samples(|sample| panic!("{sample:?}"));
    assert_eq!((run.state, run.oldest()), (RunState::Slab, None));
    free(block);
}

fn guarded() {
    let blocks = [(); 20].map(|()| raw::malloc(100));
    let live = observe::blocks(None).filter(|block| block.arena.is_none()).count();
    let run = observe::heap_map().find(|run| run.state == RunState::Guarded).expect("a run");
    assert!(live > 0 && run.used == live && run.arena.is_none(), "{live} {run:?}");
    assert_eq!((run.block, run.bytes), (PAGE, (2 * run.blocks + 1) * PAGE));
    (0..1000).for_each(|_| assert!(arenas::create().is_some()));
    let records = observe::heap_map().filter(|run| run.state == RunState::Metadata);
    let records: Vec<usize> = records.map(|run| run.bytes).collect();
    let totals = observe::totals();
    let used = totals.metadata - totals.metadata_rtree;
    assert!(records.len() > 1 && records.iter().sum::<usize>() >= used, "{records:?} {used}");
    blocks.into_iter().for_each(free);
}

fn huge() {
    let block = raw::malloc(16 << 20);
    touch(block, 0, PAGE);
    assert_eq!(at(block.addr()).huge, flags_of(block).contains(" hg "));
    free(block);
}

fn parts() {
    let blocks: Vec<*mut u8> = (0..500).map(|n| raw::malloc(n * 300)).collect();
    let whole: Vec<Run> = observe::heap_map().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    while let [.., last] = observe::heap_map_from(from).take(3).collect::<Vec<Run>>()[..] {
        parts.extend(observe::heap_map_from(from).take(3));
        from = last.base + last.bytes;
    }
    assert_eq!(parts, whole);
    assert!(whole.len() > 10, "{whole:?}");
    // From within a run, the next one follows.
    let next = observe::heap_map_from(whole[0].base + 1).next();
    assert_eq!(next, Some(whole[1]));
    blocks.into_iter().for_each(free);
}
