//! The end of the process because of a misused block, with a message that says what is wrong.

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map::{self, Entry};
use crate::ground::fatal::{self, Place};
use crate::ground::seen::address_seen;
use crate::ground::size_class::{BIN_BYTES, SizeClass};
use crate::ground::units::PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::slabs::slab::Slab;

/// The slab of a block of a class. Ends the process if the block has none, or one of another class.
pub(in crate::middle) fn find_slab(class: SizeClass, address: usize) -> &'static Slab {
    let entry = page_map::lookup(address);
    slab_of_class(entry, class).unwrap_or_else(|| reject(entry, class, address))
}

/// The slab that a page belongs to, if it is one of the class.
fn slab_of_class(entry: Entry, class: SizeClass) -> Option<&'static Slab> {
    (entry.bin_offset() == class.bin() * BIN_BYTES).then(|| Slab::of(entry)).flatten()
}

/// Ends the process if a block that a cache holds is no block of its class, or is free already.
pub(crate) fn check_held(class: SizeClass, block: *mut u8) {
    if is_misused(class, block) {
        held_twice(class, block);
    }
}

/// Returns whether a block that a cache holds is no block of its class, or is free already. Nothing
/// is locked, so the result may be out of date.
pub(crate) fn is_misused(class: SizeClass, block: *mut u8) -> bool {
    let address = block.expose_provenance();
    let is_block = |slab: &Slab| class.slot_at(address.wrapping_sub(slab.base())).is_some();
    slab_of_class(page_map::lookup(address), class)
        .is_none_or(|slab| !is_block(slab) || looks_free(slab, address))
}

/// Ends the process for a block that a cache holds twice, or that is no block of its class.
#[cold]
#[inline(never)]
pub(crate) fn held_twice(class: SizeClass, block: *mut u8) -> ! {
    let address = block.expose_provenance();
    let slab = find_slab(class, address);
    if slab.class().slot_at(address.wrapping_sub(slab.base())).is_none() {
        interior(slab, address);
    }
    fatal::double_free(address, slab.place())
}

/// Ends the process for a block that its cache bin should not hold.
#[cold]
#[inline(never)]
fn reject(entry: Entry, class: SizeClass, address: usize) -> ! {
    match Slab::of(entry) {
        Some(slab) if slab.class().slot_at(address - slab.base()).is_none() => {
            interior(slab, address)
        }
        Some(slab) => fatal::wrong_size(address, class.size(), slab.place()),
        None => invalid(address, Some(class.size())),
    }
}

/// Ends the process for a pointer inside a slab at which no block begins.
#[cold]
#[inline(never)]
pub(crate) fn interior(slab: &Slab, address: usize) -> ! {
    fatal::interior_free(address, block_around(slab, address), slab.place())
}

/// Returns the address of the slab's block that an address lies in. What lies behind the last block
/// counts as a part of it.
fn block_around(slab: &Slab, address: usize) -> usize {
    let class = slab.class();
    let slot = class.slot_around(address.wrapping_sub(slab.base())).min(class.slots() - 1);
    slab.base() + slot * class.size()
}

/// Ends the process for a pointer into no slab: in a large block, freed before, or foreign.
#[cold]
#[inline(never)]
pub(crate) fn invalid(address: usize, size: Option<usize>) -> ! {
    if let Some(arena) = page_map::lookup(address).dead_arena() {
        fatal::discarded_free(address, arena);
    }
    let Some(extent) = page_map::extent_around(address) else { fatal::foreign_free(address) };
    let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
    if extent.state.get() != ExtentState::Active {
        if arena_list::by_id(extent.arena()).is_some_and(Arena::was_reset) {
            fatal::discarded_free(address, extent.arena());
        }
        free_again(extent, address, place);
    }
    match size {
        Some(size) if extent.base() == address => fatal::wrong_size(address, size, place),
        _ => fatal::interior_free(address, extent.base(), place),
    }
}

/// Ends the process for a pointer into a run that is not in use. A run that a thread keeps is as
/// long as its block was. Others are merged with their neighbours, and no block of pages begins
/// within a page.
fn free_again(extent: &Extent, address: usize, place: Place) -> ! {
    if extent.state.get() == ExtentState::Kept && extent.base() == address {
        fatal::double_free(address, place);
    }
    if address.is_multiple_of(PAGE) {
        fatal::double_free_of_pages(address, place.arena);
    }
    fatal::unused_free(address, place.arena)
}

/// Ends the process for a query of a pointer at which no block begins.
#[cold]
#[inline(never)]
pub(crate) fn no_block(address: usize) -> ! {
    let entry = page_map::lookup(address);
    if let Some(slab) = Slab::of(entry) {
        fatal::interior_query(address, block_around(slab, address), slab.place());
    }
    if let Some(arena) = entry.dead_arena() {
        fatal::discarded_query(address, arena);
    }
    let Some(extent) = page_map::extent_around(address) else { fatal::foreign_query(address) };
    if extent.state.get() == ExtentState::Active {
        let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
        fatal::interior_query(address, extent.base(), place);
    }
    if address.is_multiple_of(PAGE) {
        fatal::freed_query(address, extent.arena());
    }
    fatal::unused_query(address, extent.arena())
}

/// Ends the process for blocks whose bits are set already.
#[cold]
#[inline(never)]
pub(in crate::middle) fn died_twice(slab: &Slab, word: u32, twice: u64) -> ! {
    fatal::double_free(slab.block_at(word as usize, twice.trailing_zeros()), slab.place())
}

/// Whether the block of a slab at an address seems to be free. Nothing is locked, so the result may
/// be out of date.
#[cold]
pub(crate) fn looks_free(slab: &Slab, address: usize) -> bool {
    let slot = slab.class().slot_around(address.wrapping_sub(slab.base()));
    let Some(word) = slab.free_words().get(slot / 64) else { return false };
    // SAFETY: a word of the record; it may be out of date.
    let free = unsafe { address_seen(word.as_ptr().cast()) } as u64;
    (free | slab.remote.seen(slot / 64)) >> (slot % 64) & 1 != 0
}
