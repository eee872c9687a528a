//! Which arena a block belongs to.

use crate::back::map::extent::Extent;
use crate::back::map::page_map;
use crate::middle::slabs::slab::Slab;

/// Returns the arena that a block belongs to. `None`: no arena's block begins at the address.
pub(crate) fn arena_of(address: usize) -> Option<u32> {
    let entry = page_map::lookup(address);
    match Slab::of(entry) {
        Some(slab) => Some(slab.arena()),
        None => entry.extent().filter(|extent| extent.is_block_at(address)).map(Extent::arena),
    }
}
