//! System settings for huge pages that this machine does not have. The flags of the mappings show
//! what was requested of the system. Each scenario runs in a child process.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::mappings::{flags, flags_of, has_flags_for};
use common::touched::touch;
use lumalloc::testing::pretend_huge_pages;
use lumalloc::{control, raw};

const MIB: usize = 1 << 20;
const BLOCK: usize = 256 << 10;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    let Some(name) = scenario() else { return };
    pretend_huge_pages(name != "never");
    play_scenario(&name);
}

fn play_scenario(name: &str) {
    let [small, large, dense, zeros] = heap();
    match name {
        "default" => {
            assert!(small.contains(" nh ") && zeros.contains(" nh "), "{small} {zeros}");
            assert!(large.contains(" hg ") && dense.contains(" hg "), "{large} {dense}");
        }
        "everything" => {
            assert!([small, large, dense, zeros].iter().all(|all| all.contains(" hg ")))
        }
        "nothing" => assert!([small, large, dense, zeros].iter().all(|all| all.contains(" nh "))),
        "never" => {
            for flags in [small, large, dense, zeros] {
                assert!(!flags.contains(" nh ") && !flags.contains(" hg "), "{flags}");
            }
        }
        _ => panic!("no scenario {name}"),
    }
    assert!(control::purge(control::ARENAS_ALL));
    let huge = flags().iter().any(|(_, _, flags)| flags.contains(" hg "));
    assert_eq!(huge, name == "everything", "what was given back");
}

/// The flags of the mappings of a small block, a long one, one that a large heap grew by, and one
/// of zeros. All blocks are freed again.
fn heap() -> [String; 4] {
    let mut blocks = vec![raw::malloc(100), raw::malloc(16 * MIB)];
    touch(blocks[1], 0, BLOCK);
    // Huge pages are for blocks of a program that fills its blocks.
    for _ in 0..32 * MIB / BLOCK {
        let block = raw::malloc(BLOCK);
        touch(block, 0, BLOCK);
        blocks.push(block);
    }
    let zeros = raw::malloc_zeroed(17 * MIB);
    let last = blocks[blocks.len() - 1];
    let found = [blocks[0], blocks[1], last, zeros].map(flags_of);
    for block in blocks.into_iter().chain([zeros]) {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
    }
    found
}

#[test]
fn where_all_memory_is_in_huge_pages_only_what_wants_them_gets_them() {
    // Without huge pages the kernel keeps no such flags.
    if has_flags_for("a system with all memory in huge pages") {
        play_well("default", "");
        play_well("everything", "thp:always");
        play_well("nothing", "thp:never");
    }
}

#[test]
fn where_there_are_none_nothing_is_asked() {
    play_well("never", "");
    play_well("never", "thp:always");
}
