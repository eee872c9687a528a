//! Returns the blocks that wait in the bins of an arena to their slabs, and gives back empty slabs.

use super::shared_slabs::{drain, release};
use super::transfer_moves;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena::Arena;
use crate::middle::events::UNCACHED;

/// Drains every bin and gives up slabs that are all free.
pub(crate) fn tidy(arena: &'static Arena) {
    for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
        let bin = arena.bin(class);
        let Some(mut slabs) = bin.slabs.try_lock() else { continue };
        transfer_moves::empty(arena, &mut slabs);
        drain(arena, &mut slabs, class, &UNCACHED);
        while let Some(slab) = slabs.find_unused() {
            if !release(arena, &mut slabs, slab) {
                break;
            }
        }
    }
}
