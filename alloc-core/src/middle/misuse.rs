//! What is wrong with a block on its way home: the process ends with a message that says so.

use super::arena::{self, Arena};
use super::remote_free::Guard;
use super::slab::Slab;
use super::slab_guard::place_of;
use crate::back::extent::ExtentState;
use crate::back::page_map::{self, Entry};
use crate::ground::fatal::{self, Place};
use crate::ground::size_class::SizeClass;

/// What may be wrong with a block that comes back.
pub(crate) enum Misuse {
    /// This address is not where a block begins.
    Interior(usize),
    /// The block at this address is free already.
    Twice(usize),
}

impl Slab {
    /// The name of its guard, for last words.
    pub(crate) fn owner(&self) -> Option<u32> {
        match self.remote.guard() {
            Some(Guard::Owner(id)) => Some(id),
            _ => None,
        }
    }
}

/// Dies of a block that is not what its cache bin holds.
#[cold]
#[inline(never)]
pub(super) fn reject(entry: Entry, class: SizeClass, address: usize) -> ! {
    match Slab::of(entry) {
        Some(slab) if slab.class().slot_at(address - slab.base()).is_none() => {
            interior(slab, address)
        }
        Some(slab) => fatal::wrong_size(address, class.size(), place_of(slab)),
        None => invalid(address, Some(class.size())),
    }
}

/// Dies of a pointer inside a slab that is not where a block begins.
#[cold]
#[inline(never)]
pub(crate) fn interior(slab: &Slab, address: usize) -> ! {
    let class = slab.class();
    let slot = class.slot_around(address.wrapping_sub(slab.base())).min(class.slots() - 1);
    fatal::interior_free(address, slab.base() + slot * class.size(), place_of(slab))
}

/// Dies of a pointer that no slab holds: inside a large block, freed before, or not ours at all.
#[cold]
#[inline(never)]
pub(crate) fn invalid(address: usize, size: Option<usize>) -> ! {
    if let Some(arena) = page_map::lookup(address).dead_arena() {
        fatal::discarded_free(address, arena);
    }
    let Some(extent) = page_map::extent_around(address) else { fatal::foreign_free(address) };
    let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
    if extent.state.get() != ExtentState::Active {
        if arena::by_id(extent.arena()).is_some_and(Arena::was_reset) {
            fatal::discarded_free(address, extent.arena());
        }
        fatal::double_free(address, place);
    }
    match size {
        Some(size) if extent.base() == address => fatal::wrong_size(address, size, place),
        _ => fatal::interior_free(address, extent.base(), place),
    }
}

/// Dies of blocks whose bits are set already.
#[cold]
#[inline(never)]
pub(super) fn died_twice(slab: &Slab, word: u32, twice: u64) -> ! {
    fatal::double_free(slab.block_at(word as usize, twice.trailing_zeros()), place_of(slab))
}
