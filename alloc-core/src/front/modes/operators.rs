//! The comparison of the operators of C++ that allocate and free a block.
//!
//! In the hardened tier a small block's canary and a large block's record hold the operator that
//! allocated it. `delete[]` of what `new` made, and `delete` of what `new[]` made, end the process.
//! A block whose operator is unknown may be freed by all: one of `malloc`, of a `new` that had to
//! ask the new-handler, and one that `realloc` returned. `free` takes the blocks of all operators.

use super::hardened::canary;
use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::ground::fatal::{self, Place};
use crate::ground::operator::Operator;
use crate::ground::options;
use crate::middle::slabs::slab::Slab;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ARE_COMPARED: AtomicBool = AtomicBool::new(false);

/// Lets the hardened tier compare the operators of blocks from now on. A program may call this if
/// all its `new` and `delete` lead to this allocator, because otherwise a `new[]` of its own may
/// call this allocator's `new`, and its `delete[]` may not be its own.
pub fn compare_operators() {
    ARE_COMPARED.store(true, Relaxed);
}

/// Notes in the hardened tier by which operator a block was allocated. Does nothing if `block` is
/// null or a sample.
///
/// # Safety
/// `block` must be null, or a block in use of the caller whose operator is not noted yet.
pub(crate) unsafe fn note(block: *mut u8, operator: Operator) {
    if operator == Operator::Unknown || block.is_null() || !options::current().hardened {
        return;
    }
    let entry = page_map::lookup(block.expose_provenance());
    if let Some(slab) = Slab::of(entry) {
        // A block of a region may lie in one of the heap.
        if slab.class().slot_at(block.addr().wrapping_sub(slab.base())).is_some() {
            // SAFETY: a block in use of the slab.
            unsafe { canary::note_operator(block, slab.class(), operator) };
        }
    } else if let Some(extent) = block_at(entry, block as usize) {
        extent.note.set_operator(operator);
    }
}

/// Ends the process if another operator than that of the free allocated the block. `block` may be
/// any address.
#[inline]
pub(crate) fn check(block: *mut u8, freed_by: Operator) {
    if freed_by != Operator::Unknown && options::current().hardened {
        check_known(block, freed_by);
    }
}

#[cold]
#[inline(never)]
fn check_known(block: *mut u8, freed_by: Operator) {
    let address = block.expose_provenance();
    let entry = page_map::lookup(address);
    let (allocated_by, place) = match (Slab::of(entry), block_at(entry, address)) {
        (Some(slab), _) if slab.class().slot_at(address.wrapping_sub(slab.base())).is_some() => {
            // SAFETY: a block of the slab, which stays while the caller frees a block of it.
            (unsafe { canary::operator(block, slab.class()) }, slab.place())
        }
        (None, Some(extent)) => {
            let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
            (extent.note.operator(), place)
        }
        _ => return,
    };
    let differ = allocated_by != Operator::Unknown && allocated_by != freed_by;
    if differ && ARE_COMPARED.load(Relaxed) {
        fatal::wrong_operator(address, freed_by, place);
    }
}

fn block_at(entry: Entry, address: usize) -> Option<&'static Extent> {
    entry.extent().filter(|extent| extent.is_block_at(address))
}
