//! Sparse slabs: their free pages are given back to the system, and their blocks stay.
#![allow(unsafe_code)]

mod common;

use common::assert_empty;
use common::block::Block;
use common::child::{play_well, scenario};
use common::random::Random;
use lumalloc::control::arenas::{self, Pages};
use lumalloc::control::limits;
use lumalloc::observe::totals;
use lumalloc::raw;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of anonymous memory that the process occupies.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).expect("a number") << 10
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}

/// Allocates 100 MiB of small blocks and frees all but one in twenty. Returns these, and the memory
/// of the process before the frees.
fn sparse(random: &mut Random) -> (Vec<Block>, usize) {
    let (mut all, mut bytes) = (Vec::new(), 0);
    while bytes < 100 << 20 {
        let size = 64 + random.below(961);
        all.extend(Block::filled(raw::malloc(size), size, bytes as u64));
        bytes += size;
    }
    let (mut kept, full) = (Vec::new(), resident());
    for block in all {
        if random.below(20) == 0 { kept.push(block) } else { free(block) }
    }
    (kept, full)
}

/// Nothing goes but what the scenario gives back.
const BY_HAND: &str = "dirty_decay_ms:10000000,background_thread_auto:false";

#[test]
#[ignore = "the scenarios of the tests below"]
fn child() {
    match scenario().as_deref() {
        Some("purged") => purged(),
        Some("decays") => decays(),
        Some("decays-from-now-on") => {
            assert!(arenas::set_decay_ms(0, Pages::Dirty, 400));
            decays();
        }
        Some("never") => never(),
        Some("below-the-soft-bound") => below_the_soft_bound(),
        Some("no-more") => {
            assert!(arenas::set_decay_ms(0, Pages::Dirty, -1));
            never();
        }
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Holes have no memory, so the soft bound leaves them out, until blocks in them are handed out.
fn below_the_soft_bound() {
    let mut random = Random::new(9);
    let (kept, _) = sparse(&mut random);
    lumalloc::control::flush_thread_cache();
    assert!(lumalloc::control::purge(0));
    let totals = totals();
    assert!(totals.holes > 20 << 20, "{totals:#?}");
    limits::set_soft(limits::held() - (10 << 20));
    let reached = limits::soft_reached();
    let block = |id| Block::filled(raw::malloc(1 << 20), 1 << 20, id);
    (0..8).filter_map(block).for_each(free);
    assert_eq!(limits::soft_reached(), reached, "{totals:#?}");
    end(&mut random, kept);
    assert!(limits::soft_reached() > reached, "the holes are filled");
}

/// The remaining blocks are whole, their holes can be used again, and all can be freed.
fn end(random: &mut Random, kept: Vec<Block>) {
    kept.iter().for_each(|block| block.check(block.length));
    let before = totals();
    let more: Vec<Block> = (0..200_000)
        .filter_map(|id| {
            let size = 64 + random.below(961);
            Block::filled(raw::malloc(size), size, id)
        })
        .collect();
    let after = totals();
    assert!(after.holes < before.holes / 4, "{before:#?} {after:#?}");
    kept.into_iter().chain(more).for_each(free);
    assert_empty();
    assert_eq!(totals().holes, 0);
}

fn purged() {
    let mut random = Random::new(1);
    let (kept, _) = sparse(&mut random);
    lumalloc::control::flush_thread_cache();
    // Free slabs are given back whole first, and the remaining slabs are sparse.
    let (before, counted) = (resident(), totals());
    assert_eq!((counted.holes, counted.work.holes_given), (0, 0));
    assert!(lumalloc::control::purge(0));
    let after = totals();
    let fallen = before - resident();
    assert!(after.holes > 20 << 20, "{after:#?}");
    assert!(fallen > 9 * (after.holes / 10), "{fallen} {after:#?}");
    assert!(after.resident + after.holes <= counted.resident, "{counted:#?} {after:#?}");
    assert_eq!(after.work.holes_given as usize, after.holes >> 12);
    assert!(after.allocated <= after.active && after.active <= after.resident);
    // Each hole is given back once.
    let calls = after.work.call_madvise;
    assert!(lumalloc::control::purge(0));
    assert_eq!(totals().work.call_madvise, calls);
    end(&mut random, kept);
}

#[test]
fn purging_gives_back_free_pages_inside_slabs() {
    play_well("purged", BY_HAND);
}

/// Nearly all blocks are samples of the heap profiler, which lie in slabs of their own.
#[test]
fn free_pages_inside_slabs_of_samples_are_given_back_too() {
    play_well("purged", &format!("{BY_HAND},prof:true,lg_prof_sample:4"));
    play_well("decays", "dirty_decay_ms:400,prof:true,lg_prof_sample:4");
}

fn decays() {
    let mut random = Random::new(2);
    let (kept, full) = sparse(&mut random);
    lumalloc::control::flush_thread_cache();
    let hang = Instant::now() + Duration::from_secs(300);
    while totals().holes < 20 << 20 {
        assert!(Instant::now() < hang, "nothing goes: {:#?}", totals());
        // A large block takes a slow path, which runs the decay pass, and uses no slab.
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(raw::malloc(1 << 20)) };
        thread::sleep(Duration::from_millis(5));
    }
    // Some of those pages were never touched, and the loop itself uses a little. (On a busy machine
    // the first holes are given back while blocks are still being freed.)
    let (fallen, holes) = (full.saturating_sub(resident()), totals().holes);
    assert!(fallen > holes / 2, "{fallen} of {:#?}", totals());
    end(&mut random, kept);
}

#[test]
fn what_stays_sparse_for_a_decay_time_is_given_back() {
    play_well("decays", "dirty_decay_ms:400");
    play_well("decays-from-now-on", "dirty_decay_ms:-1,narenas:1");
}

fn never() {
    let mut random = Random::new(3);
    let (kept, _) = sparse(&mut random);
    for _ in 0..30 {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(raw::malloc(1 << 20)) };
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(totals().holes, 0);
    kept.into_iter().for_each(free);
}

#[test]
fn without_decay_nothing_is_given_back() {
    play_well("never", "dirty_decay_ms:-1");
    play_well("no-more", "dirty_decay_ms:400,narenas:1");
}

#[test]
fn the_soft_bound_leaves_holes_out() {
    play_well("below-the-soft-bound", BY_HAND);
}
