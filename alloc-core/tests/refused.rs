//! Random programs against the shadow map while the system refuses one kind of call for pages.
//!
//! Each kind is refused always, and every third time, with each option that changes how pages are
//! handled. Only refused reservations may make a request fail. No two blocks may overlap, and no
//! block may lose its contents.
#![allow(unsafe_code)]

mod common;
mod shadow;

use common::block::Block;
use common::child::{play_well, scenario};
use lumalloc::PAGE;
use lumalloc::control::arenas;
use lumalloc::raw;
use lumalloc::testing::{Refused, fail_system_calls, fail_system_calls_of, forgotten_pages};
use shadow::op;
use shadow::world::World;

const PERIODS: [u64; 2] = [1, 3];
const STEPS: usize = 300;

fn each_kind(conf: &str) {
    for kind in 0..Refused::EACH.len() {
        for period in PERIODS {
            play_well(&format!("{kind} {period}"), conf);
        }
    }
}

#[test]
fn default_options_with_each_kind_refused() {
    each_kind("");
}

#[test]
fn pages_given_back_at_once_with_each_kind_refused() {
    each_kind("dirty_decay_ms:0");
    each_kind("dirty_decay_ms:0,hardened:true");
}

#[test]
fn pages_given_back_lazily_with_each_kind_refused() {
    each_kind("dirty_decay_ms:1,muzzy_decay_ms:1");
}

#[test]
fn addresses_given_back_with_each_kind_refused() {
    each_kind("retain:false,dirty_decay_ms:0");
}

#[test]
fn the_data_segment_with_each_kind_refused() {
    each_kind("dss:primary");
}

#[test]
fn huge_pages_for_everything_with_each_kind_refused() {
    each_kind("thp:always,dirty_decay_ms:1");
}

#[test]
fn samples_of_a_large_heap_with_each_kind_refused() {
    for kind in 0..Refused::EACH.len() {
        for period in PERIODS {
            let conf = "prof:true,lg_prof_sample:9,prof_final:false,dirty_decay_ms:0";
            play_well(&format!("samples {kind} {period}"), conf);
        }
    }
}

#[test]
fn hardened_blocks_for_whose_records_memory_ends_are_freed_by_their_size() {
    // The memory may end at each of the records that a block takes.
    for shift in 0..3 {
        let conf = "hardened:true,dirty_decay_ms:-1,background_thread:false";
        play_well(&format!("records {shift}"), conf);
    }
}

#[test]
#[ignore = "a scenario of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
    if let Some(shift) = name.strip_prefix("records ") {
        return records(shift.parse().expect("a number"));
    }
    if let Some(numbers) = name.strip_prefix("samples ") {
        let (kind, period) = numbers.split_once(' ').expect("two numbers");
        let kind: usize = kind.parse().expect("a number");
        return samples(Refused::EACH[kind], period.parse().expect("a number"));
    }
    let numbers: Vec<u64> = name.split(' ').map(|word| word.parse().expect("a number")).collect();
    let [kind, period] = numbers.as_slice() else { panic!("no kind and period: {name}") };
    let index = u8::try_from(*kind).expect("a small number");
    run(index, Refused::EACH[usize::from(index)], *period);
}

fn run(seed: u8, kind: Refused, period: u64) {
    let refuses_memory = matches!(kind, Refused::All | Refused::Reserve);
    let mut world = if refuses_memory { World::short_of_memory() } else { World::new() };
    fail_system_calls_of(period, kind);
    for (thread, op) in op::any_program(seed, STEPS) {
        world.step(thread, &op);
    }
    fail_system_calls(0);
    assert_eq!(forgotten_pages(), 0);
    lumalloc::checks::all();
    world.end();
}

/// Uses up the memory for records by arenas, and the rest by large blocks. After that, each that is
/// freed leaves records for the next one, which takes several if pages without access are to lie
/// around it.
fn records(shift: usize) {
    const SIZE: usize = 40_000;
    const UNUSED: usize = 256 << 20;
    let unused = raw::malloc(UNUSED);
    assert!(!unused.is_null());
    // SAFETY: this function's own block.
    unsafe { raw::free(unused) };
    let mut blocks = Vec::with_capacity(1 << 16);
    fail_system_calls_of(1, Refused::Reserve);
    while arenas::create().is_some() {}
    let allocate = || Some(raw::malloc(SIZE)).filter(|block| !block.is_null());
    // SAFETY: a live block, with the size that was requested.
    let free = |block| unsafe { raw::free_sized(block, SIZE) };
    // Before an aligned block there is no page without access, so it takes one record less.
    blocks.extend((0..shift).map(|_| raw::malloc_aligned(SIZE, 2 * PAGE)));
    blocks.extend(std::iter::from_fn(allocate));
    assert!(blocks.len() < UNUSED / (2 * SIZE), "the records did not end");
    for _ in 0..100 {
        // Only so many runs are closed in a time.
        std::thread::sleep(std::time::Duration::from_millis(5));
        blocks.pop().into_iter().for_each(free);
        blocks.extend(allocate());
    }
    blocks.into_iter().for_each(free);
    fail_system_calls(0);
    lumalloc::checks::all();
}

/// Samples lie in chunks beside so much memory.
const BALLAST: usize = 256 << 20;

/// Allocates and frees blocks, most of them samples, beside a large heap. Each keeps its contents.
fn samples(kind: Refused, period: u64) {
    let ballast = raw::malloc(BALLAST);
    assert!(!ballast.is_null());
    fail_system_calls_of(period, kind);
    let block = |n: usize| {
        let length = n % 97 * 160 + 16;
        Block::filled(raw::malloc(length), length, n as u64)
    };
    for _ in 0..3 {
        let blocks: Vec<Block> = (0..2000).filter_map(block).collect();
        blocks.into_iter().for_each(free);
    }
    fail_system_calls(0);
    assert_eq!(forgotten_pages(), 0);
    lumalloc::checks::all();
    // SAFETY: this function's own block.
    unsafe { raw::free(ballast) };
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}
