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
#[ignore = "a scenario of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
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
