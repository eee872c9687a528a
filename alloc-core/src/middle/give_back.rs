//! Blocks on their way home, many at a time.
//!
//! A batch is grouped by the 64-bit word of the slab that its blocks belong to. For a slab of the
//! cache's own a group is a plain OR; for any other it is one atomic OR, and the block itself is
//! never touched. Misuse is noticed here at no cost to the fast path: bits already set are a double
//! free, an offset that is no multiple of the size an interior pointer, another class a wrong size.

use super::effort::Deed;
use super::owner::{BIN_BYTES, Owner, OwnerState};
use super::slab::Slab;
use super::slab_guard::{free_remotely, place_of};
use crate::back::page_map::{self, Entry};
use crate::ground::fatal::{self, Place};
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;

/// Groups held open at a time.
const GROUPS: usize = 16;

#[derive(Clone, Copy)]
struct Group {
    slab: &'static Slab,
    word: usize,
    mask: u64,
}

/// A batch of one class on its way home.
struct Batch<'a> {
    owner: &'static Owner,
    state: &'a mut OwnerState,
    class: SizeClass,
    remote: u64,
    groups: [Option<Group>; GROUPS],
}

/// Gives blocks of a class back to their slabs. The caller holds the owner's lock.
pub(crate) fn give_back(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
    blocks: &[*mut u8],
) {
    let mut batch = Batch { owner, state, class, remote: 0, groups: [None; GROUPS] };
    let mut last: Option<&'static Slab> = None;
    for block in blocks {
        let address = block.expose_provenance();
        let slab = match last.filter(|slab| is_in(slab, address)) {
            Some(slab) => slab,
            None => find_slab(class, address),
        };
        last = Some(slab);
        let Some(slot) = class.slot_at(address.wrapping_sub(slab.base())) else {
            interior(slab, address)
        };
        batch.add(slab, slot / 64, 1 << (slot % 64));
    }
    batch.finish();
    let counts = owner.counts(class);
    counts.flushed.add(blocks.len() as u64);
    counts.remote.add(batch.remote);
    owner.effort.add(Deed::Flush, 1);
}

fn is_in(slab: &Slab, address: usize) -> bool {
    address.wrapping_sub(slab.base()) < slab.class().slab_bytes()
}

fn find_slab(class: SizeClass, address: usize) -> &'static Slab {
    let entry = page_map::lookup(address);
    match Slab::of(entry) {
        Some(slab) if entry.bin_offset() == class.bin() * BIN_BYTES => slab,
        _ => reject(entry, class, address),
    }
}

/// Dies of a block that is not what its cache bin holds.
#[cold]
#[inline(never)]
fn reject(entry: Entry, class: SizeClass, address: usize) -> ! {
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
    use crate::back::extent::ExtentState;
    let Some(extent) = page_map::extent_around(address) else { fatal::foreign_free(address) };
    let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
    if extent.state.get() != ExtentState::Active {
        fatal::double_free(address, place);
    }
    match size {
        Some(size) if extent.base() == address => fatal::wrong_size(address, size, place),
        _ => fatal::interior_free(address, extent.base(), place),
    }
}

impl Batch<'_> {
    fn add(&mut self, slab: &'static Slab, word: usize, mask: u64) {
        let key = slab.base() / PAGE + word;
        let Some(place) = self.groups.get_mut(key % GROUPS) else { return };
        match place {
            Some(group) if core::ptr::eq(group.slab, slab) && group.word == word => {
                if group.mask & mask != 0 {
                    died_twice(slab, word, mask);
                }
                group.mask |= mask;
            }
            _ => {
                if let Some(full) = place.replace(Group { slab, word, mask }) {
                    self.emit(full);
                }
            }
        }
    }

    fn finish(&mut self) {
        for index in 0..GROUPS {
            if let Some(group) = self.groups.get_mut(index).and_then(Option::take) {
                self.emit(group);
            }
        }
    }

    fn emit(&mut self, Group { slab, word, mask }: Group) {
        self.owner.effort.add(Deed::Group, 1);
        if slab.remote.is_owned_by(self.owner.id()) {
            if let Err(twice) = slab.put(word, mask) {
                died_twice(slab, word, twice);
            }
            self.state.refile(slab, mask.count_ones() as usize);
            return;
        }
        self.remote += u64::from(mask.count_ones());
        if let Err(twice) = free_remotely(&self.owner.effort, slab, self.class, word, mask) {
            died_twice(slab, word, twice);
        }
    }
}

#[cold]
#[inline(never)]
fn died_twice(slab: &Slab, word: usize, twice: u64) -> ! {
    fatal::double_free(slab.block_at(word, twice.trailing_zeros()), place_of(slab))
}
