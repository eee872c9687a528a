//! The reserve of an arena: unused pages with memory that stay, whatever purges. It is for threads
//! that must go on when no memory is left, or when others are stuck in the allocator. A thread
//! whose arena has one does not purge for others and waits for no other arena, and its allocations
//! fail at once where nothing is left (see `front/life/background.rs` and `front/miss/retry.rs`).

use super::{decay_pass, idle_owner};
use crate::ground::units::PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::blocks::tidy_bins;
use crate::middle::owners::owner;
use core::ptr;

/// Sets how many bytes of unused pages stay in `arena`, in whole pages, and purges the rest. Slabs
/// without a block in use are unused pages too, so its threads' ones are given back before. With a
/// reserve, the arena keeps few addresses without memory.
pub(crate) fn set(arena: &'static Arena, bytes: usize) {
    {
        // Both under the lock, so that they are of one of two threads that set the reserve.
        let mut pages = arena.pages.lock();
        pages.allocator.source().set_keeps_few(bytes > 0);
        arena.note_reserve(bytes.div_ceil(PAGE));
    }
    // A walk over live blocks may be under way. A thread that is to go on when others are stuck
    // does not wait for long; the slabs go with the next pass or call.
    decay_pass::between_passes_if_soon(|| {
        owner::all().filter(|owner| ptr::eq(owner.home.get(), arena)).for_each(idle_owner::settle);
        tidy_bins::tidy(arena);
    });
    arena.purge_by_hand(0, 0);
}
