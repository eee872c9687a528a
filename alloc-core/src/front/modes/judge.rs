//! What the modes in force ask of a block, wherever it is handed out and taken back.
//!
//! A thread's façade does the same without asking for the options: see `front/miss/watched.rs`.

use super::block_size::{Given, usable};
use super::fill;
use super::guarded;
use super::hardened::canary;
use super::watch;
use crate::back::map::page_map::{self, Entry};
use crate::ground::fatal::{self, Place};
use crate::ground::fill_mode;
use crate::ground::options;
use crate::ground::size_class::{BIN_BYTES, SizeClass};
use crate::middle::slabs::slab::Slab;

/// Makes a small block ready for the program.
///
/// # Safety
/// It is a free block of that class, and the caller's.
pub(crate) unsafe fn handed_out(block: *mut u8, class: SizeClass) {
    if !watch::is_on() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { fill::allocated(block, usable(class)) };
    if options::current().hardened {
        // SAFETY: the caller's promise.
        unsafe { canary::seal(block, class) };
    }
}

/// Judges a block of a slab that comes back, and wipes it.
///
/// # Safety
/// The block was the caller's to free, or dies here.
pub(crate) unsafe fn taken_back(slab: &Slab, block: *mut u8) {
    if !watch::is_on() {
        return;
    }
    let hardened = options::current().hardened;
    if hardened {
        // SAFETY: the caller found the slab by this address.
        unsafe { canary::unseal(slab, slab.class().bin(), block) };
    } else if slab.class().slot_at((block as usize).wrapping_sub(slab.base())).is_none() {
        // An address between blocks: whoever takes it home says so.
        return;
    }
    // SAFETY: a block of the slab's, which the caller gave up.
    unsafe { wipe(block, slab.class(), hardened) };
}

/// Fills or zeroes what was freed.
///
/// # Safety
/// It is a block of that class, and the caller's.
#[inline]
pub(crate) unsafe fn wipe(block: *mut u8, class: SizeClass, hardened: bool) {
    let usable = usable(class);
    if fill_mode::current().junk_freed {
        // SAFETY: the caller's promise.
        unsafe { fill::freed(block, usable) };
    } else if hardened && class.size() <= canary::ZEROED {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(0, usable) };
    }
}

/// [`wipe`] in the hardened tier, out of line.
///
/// # Safety
/// As [`wipe`].
#[inline(never)]
pub(crate) unsafe fn wipe_filled(block: *mut u8, class: SizeClass) {
    // SAFETY: the caller's promise.
    unsafe { wipe(block, class, true) };
}

/// Dies of a sized free whose size is another class's, in the hardened tier.
pub(crate) fn check_size(entry: Entry, address: usize, given: Given) {
    if options::current().hardened && given.hardened_bin() != bin_at(entry, address) {
        wrong_size(entry, address, given);
    }
}

/// The bin that serves the block at an address, of which the page map says `entry`; 0 for a large
/// block's, or for no block.
fn bin_at(entry: Entry, address: usize) -> usize {
    guarded::bin_of(address).unwrap_or(entry.bin_offset() / BIN_BYTES)
}

/// Dies of a sized free whose size is neither of the block's class nor of the one before, but for
/// the hardened tier, which has no such blocks and judges in its own way.
pub(crate) fn check_roomy(address: usize, given: Given) {
    if options::current().hardened {
        return;
    }
    let entry = page_map::lookup(address);
    let (asked, bin) = (given.bin(), bin_at(entry, address));
    if bin != asked && (asked == 0 || bin != asked + 1) {
        wrong_size(entry, address, given);
    }
}

/// Dies of a block that was freed by another size than its own; what is no block at all is for
/// others to judge.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(entry: Entry, address: usize, given: Given) {
    guarded::wrong_size(address, given.size);
    let place = match (Slab::of(entry), entry.extent()) {
        (Some(slab), _) if slab.class().slot_at(address.wrapping_sub(slab.base())).is_some() => {
            slab.place()
        }
        (None, Some(extent)) if extent.is_block_at(address) => {
            Place { size: extent.bytes(), arena: extent.arena(), owner: None }
        }
        _ => return,
    };
    fatal::wrong_size(address, given.size, place)
}
