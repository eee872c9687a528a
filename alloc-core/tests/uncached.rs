//! Threads without caches, in children: which memory their blocks come from.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::control::arenas::{self, Pages};
use lumalloc::raw::{self, Flags};

const MIB: usize = 1 << 20;

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    match scenario().as_deref() {
        Some("unused") => unused(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Leaves so many unused bytes in an automatic arena.
fn fill(arena: u32, bytes: usize) {
    let block = raw::allocate(bytes, Flags::NONE.arena(arena));
    assert!(!block.is_null());
    assert!(arenas::set_decay_ms(arena, Pages::Dirty, -1));
    // SAFETY: a live block, freed once.
    unsafe { raw::free(block) };
}

fn unused() {
    fill(1, 16 * MIB);
    let arenas_of_blocks: Vec<_> = (0..4000).map(|_| arenas::lookup(raw::malloc(1000))).collect();
    let of_the_other = arenas_of_blocks.iter().filter(|arena| **arena == Some(1)).count();
    // At home there may be a little unused memory.
    assert!(of_the_other > 2000, "{of_the_other}");
}

/// Before an arena grows, unused memory of others is taken, if it is much.
#[test]
fn no_arena_grows_beside_much_unused_memory() {
    play_well("unused", "tcache:false,narenas:2");
    play_well("unused", "tcache_max:512,narenas:2");
}
