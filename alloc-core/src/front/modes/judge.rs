//! What the modes in force do with a block when it is handed out or freed.
//!
//! A thread's façade does this without reading the options: see `front/miss/watched.rs`.

use super::block_size::{Given, usable, usable_of_large};
use super::fill;
use super::guarded;
use super::hardened::{canary, large_canary};
use super::watch;
use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::back::runs::contents;
use crate::ground::fatal::{self, Place};
use crate::ground::fill_mode;
use crate::ground::low;
use crate::ground::options;
use crate::ground::size_class::{BIN_BYTES, SizeClass, size_for_align};
use crate::middle::arenas::large;
use crate::middle::slabs::slab::Slab;

/// Makes a small block ready for a request of `size` bytes. Ends the process if the hardened tier
/// sees that it was written to after its free.
///
/// # Safety
/// `block` must be a free block of that class that belongs to the caller.
pub(crate) unsafe fn handed_out(block: *mut u8, class: SizeClass, size: usize) {
    if !watch::is_on() {
        return;
    }
    let is_hardened = options::current().hardened;
    if is_hardened && !low::is_low_or_null(block) {
        // Not a sample, so it was zeroed when it was freed.
        // SAFETY: a free block. In the hardened tier none is shorter than two words.
        if unsafe { block.cast::<u64>().read() } != 0 {
            canary::report_written(block);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { fill::allocated(block, usable(class)) };
    if is_hardened {
        // SAFETY: the caller's promise.
        unsafe { canary::seal(block, class, size) };
    }
}

/// Lets a block of a slab, of `old` usable bytes, serve a request of `size` bytes. The bytes that
/// it gains are zero, or filled as the options say.
///
/// # Safety
/// The caller must own `block`, and its class must be large enough. If it is no valid block, the
/// process ends here.
pub(crate) unsafe fn resized(slab: &Slab, block: *mut u8, old: usize, size: usize, zero: bool) {
    if !options::current().hardened {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { canary::reseal(slab, block, size) };
    let (more, gained) = (block.wrapping_add(old), size.saturating_sub(old));
    if zero {
        // SAFETY: usable bytes of the caller's block.
        unsafe { more.write_bytes(0, gained) };
    } else {
        // SAFETY: as above.
        unsafe { fill::allocated(more, gained) };
    }
}

/// Checks a block of a slab that is freed, and wipes it, or ends the process.
///
/// # Safety
/// The caller must own `block`. If it is no valid block, the process ends here.
pub(crate) unsafe fn taken_back(slab: &Slab, block: *mut u8) {
    if !watch::is_on() {
        return;
    }
    let hardened = options::current().hardened;
    if hardened {
        // SAFETY: the caller found the slab by this address.
        unsafe { canary::unseal(slab, slab.class().bin(), block) };
    } else if slab.class().slot_at((block as usize).wrapping_sub(slab.base())).is_none() {
        // An address between blocks is reported by the code that gives blocks back to slabs.
        return;
    }
    // SAFETY: a block of the slab, which the caller gave up.
    unsafe { wipe(block, slab.class(), hardened) };
}

/// Lets a large block serve a request of `size` bytes, in the hardened tier.
///
/// # Safety
/// The caller must own the block, which is in use, and `size` must be at most its length.
#[inline(never)]
pub(crate) unsafe fn large_handed_out(extent: &Extent, size: usize) {
    if options::current().hardened {
        // SAFETY: the caller's promise.
        unsafe { large_canary::seal(extent, size) };
    }
}

/// Ends the process in the hardened tier if a write behind a large block is found, which is about
/// to be resized.
///
/// # Safety
/// The caller must own the block, which is in use.
#[inline]
pub(crate) unsafe fn check_large(extent: &Extent) {
    if watch::is_on() && options::current().hardened {
        // SAFETY: the caller's promise.
        unsafe { large_canary::check(extent) };
    }
}

/// Lets a large block that was resized, from `old` usable bytes, serve a request of `size` bytes.
/// The bytes that it gains are zero with `zero`, or else filled as the options say. `before` is how
/// long the block was; what lies behind reads zero if `zero` says so.
///
/// # Safety
/// As [`large_handed_out`].
#[inline(never)]
pub(crate) unsafe fn large_resized(
    extent: &'static Extent,
    before: usize,
    old: usize,
    size: usize,
    zero: bool,
) {
    if zero {
        let gained = before.min(size).saturating_sub(old);
        // SAFETY: bytes of the caller's block.
        unsafe { extent.base_ptr().wrapping_add(old).write_bytes(0, gained) };
    } else if old < size {
        fill::large_allocated(extent, old);
    }
    // SAFETY: the caller's promise.
    unsafe { large_handed_out(extent, size) };
}

/// Checks a large block that is freed, and fills it if the options say so, or ends the process.
/// Returns the block.
///
/// # Safety
/// The caller must own the block, which is in use.
#[inline(always)]
pub(crate) unsafe fn large_taken_back(extent: &'static Extent) -> &'static Extent {
    if watch::is_on() {
        // SAFETY: the caller's promise.
        unsafe { large_taken_back_watched(extent) };
    }
    extent
}

/// The rest of [`large_taken_back`].
///
/// # Safety
/// As [`large_taken_back`].
#[inline(never)]
unsafe fn large_taken_back_watched(extent: &'static Extent) {
    if options::current().hardened {
        // SAFETY: the caller's promise.
        unsafe { large_canary::unseal(extent) };
    }
    contents::junked(extent);
}

/// Fills or zeroes a freed block.
///
/// # Safety
/// `block` must be a block of that class that belongs to the caller.
#[inline]
pub(crate) unsafe fn wipe(block: *mut u8, class: SizeClass, hardened: bool) {
    let usable = usable(class);
    if fill_mode::current().junk_freed {
        // SAFETY: the caller's promise.
        unsafe { fill::freed(block, usable) };
    } else if hardened {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(0, class.size() - canary::BYTES) };
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

/// Ends the process if the size of a sized free is of another class than the block's, or in the
/// hardened tier not the requested one.
///
/// # Safety
/// If a small block begins at the address, its slab must stay.
pub(crate) unsafe fn check_size(entry: Entry, address: usize, given: Given) {
    // SAFETY: the caller's promise.
    let requested = unsafe { requested(entry, address) };
    if requested.is_some_and(|size| given.is_size_alone(size)) {
        return;
    }
    let bin = if options::current().hardened { given.hardened_bin() } else { given.bin() };
    let is_other = match requested {
        Some(size) => !given.is_of(size),
        // Where the system has no memory for records, a block may have pages beyond its class.
        None => bin == 0 && is_other_large(entry, given),
    };
    if bin != bin_at(entry, address) || is_other {
        wrong_size(entry, address, given, requested);
    }
}

/// Returns whether no request of the size gets a block as long as the large one with this page map
/// entry. A block may be shorter than its class, because a request may get whole pages only.
fn is_other_large(entry: Entry, given: Given) -> bool {
    let most = large::usable(size_for_align(given.size, given.align).unwrap_or(given.size));
    entry.extent().is_some_and(|extent| {
        given.size > extent.bytes() || most.is_some_and(|most| most < extent.bytes())
    })
}

/// Returns the size that a block of the hardened tier was requested with. `None` for other blocks,
/// and for one that is free or overrun, which other checks report.
///
/// # Safety
/// As for [`check_size`].
pub(crate) unsafe fn requested(entry: Entry, address: usize) -> Option<usize> {
    if !options::current().hardened {
        return None;
    }
    let Some(slab) = Slab::of(entry) else {
        let block = entry.extent().filter(|extent| extent.is_block_at(address));
        return block.and_then(Extent::requested);
    };
    let block = core::ptr::with_exposed_provenance(address);
    slab.class().slot_at(address.wrapping_sub(slab.base()))?;
    // SAFETY: a block of the slab, which stays.
    unsafe { canary::requested(block, slab.class()) }
}

/// Ends the process for a query of a small block of the hardened tier that is free.
///
/// # Safety
/// As for [`check_size`].
#[cold]
pub(crate) unsafe fn check_not_freed(entry: Entry, address: usize) {
    if let Some(slab) = Slab::of(entry)
        // SAFETY: a block of the slab, as the caller says, which stays.
        && unsafe { canary::is_free(core::ptr::with_exposed_provenance(address), slab.class()) }
    {
        fatal::freed_query(address, slab.place().arena);
    }
}

/// Returns the bin that serves the block at an address with this page map entry; 0 for a large
/// block or none.
fn bin_at(entry: Entry, address: usize) -> usize {
    guarded::bin_of(address).unwrap_or(entry.bin_offset() / BIN_BYTES)
}

/// Ends the process if the size of a sized free is neither of the block's class nor of the one
/// before, or not of a large block's class. The hardened tier has no such blocks and makes its own
/// check.
pub(crate) fn check_roomy(address: usize, given: Given) {
    if options::current().hardened {
        return;
    }
    let entry = page_map::lookup(address);
    let (asked, bin) = (given.bin(), bin_at(entry, address));
    let is_other = bin != asked && (asked == 0 || bin != asked + 1);
    if is_other || (bin == 0 && is_other_large(entry, given)) {
        wrong_size(entry, address, given, None);
    }
}

/// Ends the process because a block was freed by a wrong size. Its own size is the one that was
/// requested, if that is known. Returns if there is no block at the address, which other checks
/// report.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(entry: Entry, address: usize, given: Given, requested: Option<usize>) {
    let large = || entry.extent().filter(|extent| extent.is_block_at(address));
    let usable = guarded::usable_size(address).or_else(|| large().map(usable_of_large));
    if usable.is_some_and(|size| given.is_size_alone(size)) {
        return;
    }
    guarded::wrong_size(address, given.size);
    let place = match (Slab::of(entry), entry.extent()) {
        (Some(slab), _) if slab.class().slot_at(address.wrapping_sub(slab.base())).is_some() => {
            let place = slab.place();
            // With the right size, the alignment told is another one.
            let own = requested.filter(|size| *size != given.size);
            Place { size: own.unwrap_or(place.size), ..place }
        }
        (None, Some(extent)) if extent.is_block_at(address) => {
            let own = requested.filter(|size| *size != given.size);
            Place { size: own.unwrap_or(extent.bytes()), arena: extent.arena(), owner: None }
        }
        _ => return,
    };
    fatal::wrong_size(address, given.size, place)
}
