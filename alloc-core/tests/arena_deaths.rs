//! A late free of a block whose arena was reset or destroyed ends the process.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::control::{arenas, flush_thread_cache};
use lumalloc::raw::{self, Flags};

#[test]
fn cached_block_of_a_reset_arena() {
    dies("reset", "");
}

#[test]
fn cached_block_of_a_destroyed_arena() {
    dies("destroy", "");
}

#[test]
fn large_block_of_a_destroyed_arena() {
    dies("large", "");
}

#[test]
fn query_of_a_block_of_a_destroyed_arena() {
    dies("query", "");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
    // Gives the bin room, so that freed blocks stay in the cache.
    free(raw::malloc(100));
    let arena = arenas::create().expect("an arena");
    let size = if name == "large" { 100_000 } else { 100 };
    let block = raw::allocate(size, Flags::NONE.arena(arena));
    let act = if name == "query" { "query" } else { "free" };
    let text = format!("invalid {act} of {block:p}: discarded when arena {arena} was reset or");
    tell(&format!("{text} destroyed"));
    if name != "large" && name != "query" {
        free(block);
    }
    let ended = if name == "reset" {
        // SAFETY: none. A block is used afterwards, which is the mistake that is tested.
        unsafe { arenas::reset(arena) }
    } else {
        // SAFETY: none. A block is used afterwards, which is the mistake that is tested.
        unsafe { arenas::destroy(arena) }
    };
    assert!(ended);
    if name == "large" {
        free(block);
    }
    if name == "query" {
        // SAFETY: none. This is the mistake that is tested.
        let _never = unsafe { raw::usable_size(block) };
    }
    flush_thread_cache();
    panic!("{name} survived");
}

fn free(block: *mut u8) {
    // SAFETY: a block of this allocator, or the mistake that is tested.
    unsafe { raw::free(block) };
}
