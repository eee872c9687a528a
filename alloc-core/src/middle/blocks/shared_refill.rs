//! Refills from slabs that no cache owns.

use super::shared_slabs;
use crate::back::page_allocator::Memory;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::choose_arena::{enter, others};
use crate::middle::arenas::home_arena::HomeArena;
use crate::middle::events::{Event, EventCounts};

/// Takes up to `want` blocks from slabs that no cache owns, in the order of
/// [`with_pages`](crate::middle::arenas::choose_arena::with_pages). Returns how many, and from
/// which arena; 0 blocks without memory.
pub(crate) fn fill_shared(
    home: &HomeArena,
    class: SizeClass,
    want: usize,
    events: &EventCounts,
    mut give: impl FnMut(*mut u8),
) -> (usize, u32) {
    events.add(Event::RefillShared, 1);
    let (arena, mut slabs) = enter(home, |arena| &arena.bin(class).slabs);
    let (unused, any) = (Memory::Resident, Memory::Any);
    let taken = shared_slabs::fill(arena, &mut slabs, class, want, unused, events, &mut give);
    if taken > 0 {
        return (taken, arena.id());
    }
    for other in others(home, arena) {
        let Some(mut slabs) = other.bin(class).slabs.try_lock() else { continue };
        let taken = shared_slabs::fill(other, &mut slabs, class, want, unused, events, &mut give);
        if taken > 0 {
            return (taken, other.id());
        }
    }
    (shared_slabs::fill(arena, &mut slabs, class, want, any, events, &mut give), arena.id())
}
