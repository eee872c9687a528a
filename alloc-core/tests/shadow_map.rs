//! Random programs against a shadow map: a table of the allocated blocks, kept by the test.
//!
//! Each step is done by one of several threads while the others wait. So every number is exact, and
//! a failing program shrinks. A second test runs threads against each other.
#![allow(unsafe_code)]

mod common;
mod shadow;

use common::alone;
use common::child::{play_well, scenario};
use proptest::prelude::*;
use shadow::op::{self, Op};
use shadow::traffic;
use shadow::world::World;

fn config(cases: u32) -> ProptestConfig {
    // No file is written next to the sources, because the message contains the shrunk program.
    ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Default::default()
    }
}

/// Fewer without the checks of all structures, which are another configuration of the tests.
const CASES: u32 = if cfg!(feature = "checks") { 400 } else { 100 };

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn random_programs_agree_with_the_shadow_map(
        program in prop::collection::vec((0..op::THREADS, op::any_op()), 1..200),
    ) {
        run(&program);
    }
}

/// Few sizes and many frees: slabs fill up, empty, and change hands.
#[test]
fn long_programs_agree_with_the_shadow_map() {
    for seed in 0..12 {
        run(&op::long_program(seed, 4000));
    }
}

#[test]
fn sanit_short_programs_agree_with_the_shadow_map() {
    for seed in 100..103 {
        run(&op::long_program(seed, 300));
    }
}

/// Modes that see every operation, in combination and without caches.
#[test]
fn modes_agree_with_the_shadow_map() {
    for conf in [
        "hardened:true",
        "hardened:true,junk:true",
        "hardened:true,tcache:false",
        "hardened:true,tcache_max:1000,dirty_decay_ms:0",
        "junk:true,tcache:false",
        "zero:true",
    ] {
        play_well("programs", conf);
    }
}

#[test]
#[ignore = "a scenario of the test above"]
fn child() {
    if let Some(name) = scenario() {
        assert_eq!(name, "programs", "no such scenario");
        for seed in 0..3 {
            run(&op::long_program(seed, 2000));
        }
        let _alone = alone();
        traffic::run(7, 6, 10_000);
    }
}

fn run(program: &[(usize, Op)]) {
    let _alone = alone();
    let mut world = World::new();
    for (thread, op) in program {
        world.step(*thread, op);
    }
    world.end();
}

#[test]
fn threads_against_each_other() {
    let _alone = alone();
    for seed in 0..4 {
        traffic::run(seed, 6, 20_000);
    }
}

#[test]
fn sanit_threads_against_each_other() {
    let _alone = alone();
    traffic::run(9, 3, 1500);
}

/// The shadow map detects overlaps.
#[test]
fn the_shadow_map_can_fail() {
    let mut map = shadow::map::Map::default();
    map.insert(0x1000, 0x100);
    for (address, length) in [(0x1000, 1), (0x10ff, 1), (0xf01, 0x100), (0xf00, 0x300)] {
        let overlaps = std::panic::catch_unwind(|| {
            let mut copy = map.clone();
            copy.insert(address, length);
        });
        assert!(overlaps.is_err(), "{address:#x}");
    }
    map.insert(0x1100, 1);
    map.insert(0xf00, 0x100);
}
