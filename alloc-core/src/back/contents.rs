//! What an active run holds: making it read zero, by hand or by the system, or junk.

use super::dense::{self, DENSE};
use super::extent::Extent;
use super::huge;
use super::moves;
use super::page_provider::{PageProvider, Purged};
use crate::ground::fill_mode;
use crate::ground::units::PAGE;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What freed bytes read under `junk:free`. Source: jemalloc(3), `opt.junk`.
pub(crate) const JUNK_FREED: u8 = 0x5a;

/// Writes zeros over an active run from `from` bytes on. The caller owns the block.
pub(crate) fn zero(extent: &'static Extent, from: usize) {
    let base = extent.base_ptr().wrapping_add(from);
    // SAFETY: an active run is mapped and writable to its end, and its block is the caller's.
    unsafe { base.write_bytes(0, extent.bytes() - from) };
}

/// Runs shorter than this are zeroed by hand: that takes no longer than asking.
const SHORTEST_TO_ASK: usize = (256 << 10) / PAGE;
/// Of the runs that are full of memory so many are zeroed by hand for each one that is given back.
const BY_HAND: usize = 128;

/// Whether giving an active run back is the better way to make it zero.
///
/// Who used it last tells who will use it next: a run of which most has no memory was hardly
/// touched, and writing zeros would fill it. One that is full will be filled again, and faulting
/// its pages in costs ten times the zeros; but its last user may have been another, so now and then
/// one is given back to see.
pub(crate) fn is_better_purged(provider: &dyn PageProvider, extent: &'static Extent) -> bool {
    static FULL: AtomicUsize = AtomicUsize::new(0);
    if extent.pages() < SHORTEST_TO_ASK {
        return false;
    }
    let Some(base) = NonNull::new(extent.base_ptr()) else { return false };
    match provider.count_resident(base, extent.bytes()) {
        None => false,
        Some(resident) if resident < extent.pages() / 2 => true,
        Some(_) => FULL.fetch_add(1, Relaxed) % BY_HAND == BY_HAND - 1,
    }
}

/// Writes one byte over an active run from `from` bytes on. The caller owns the block.
pub(crate) fn fill(extent: &'static Extent, from: usize, byte: u8) {
    let base = extent.base_ptr().wrapping_add(from);
    // SAFETY: an active run is mapped and writable to its end, and its block is the caller's.
    unsafe { base.write_bytes(byte, extent.bytes() - from) };
}

/// A run that is about to be freed, filled with junk where `junk:free` says so.
pub(crate) fn junked(extent: &'static Extent) -> &'static Extent {
    if fill_mode::current().junk_freed {
        fill(extent, 0, JUNK_FREED);
    }
    extent
}

/// Gives part of an active run's memory back, in which nobody has a block. `false`: the system did
/// not, or not all of it.
pub(crate) fn purge_part(
    provider: &dyn PageProvider,
    extent: &'static Extent,
    from: usize,
    size: usize,
) -> bool {
    let Some(base) = NonNull::new(extent.base_ptr().wrapping_add(from)) else { return false };
    if extent.mapping() == DENSE {
        dense::break_up(provider, extent.base() + from, size);
    }
    // SAFETY: inside an active run, and its contents are not needed (the caller's word).
    unsafe { provider.purge(base, size) == Purged::Zeroed }
}

/// Makes an active run read zero by giving its pages back. The caller owns the block. `false`: the
/// contents are undefined.
pub(crate) fn purge(provider: &dyn PageProvider, extent: &'static Extent) -> bool {
    let Some(base) = NonNull::new(extent.base_ptr()) else { return false };
    // SAFETY: the run is the caller's; its contents are not needed (the caller's word).
    if moves::is_own(extent.mapping()) && unsafe { provider.renew(base, extent.bytes()) } {
        moves::mark(extent, 0);
        huge::advise_new(provider, base, extent.bytes());
        return true;
    }
    if extent.mapping() == DENSE {
        dense::break_up(provider, extent.base(), extent.bytes());
    }
    // SAFETY: the run lies in one reservation; its contents are not needed (the caller's word).
    unsafe { provider.purge(base, extent.bytes()) == Purged::Zeroed }
}
