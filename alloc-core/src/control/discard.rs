//! The end of all blocks of an arena.

use crate::front::cache::registry::REGISTRY;
use crate::front::miss::recorded;
use crate::middle::arenas::arena::Arena;
use crate::middle::passes::{arena_end, decay_pass::PASS};
use crate::observe::{Block, for_each_block};

/// Discards every block of an arena. The heap monitor records that they are freed.
pub(super) fn discard(arena: &'static Arena) {
    if recorded::is_on() {
        let freed = |block: Block| recorded::freed(block.address as *mut u8);
        for_each_block(Some(arena.id()), freed);
    }
    let _pass = PASS.lock();
    let _registry = REGISTRY.lock();
    arena_end::discard_all(arena);
}
