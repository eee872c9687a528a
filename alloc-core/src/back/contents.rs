//! What an active run holds: making it read zero, by hand or by the system.

use super::extent::Extent;
use super::page_provider::{PageProvider, Purged};
use core::ptr::NonNull;

/// Writes zeros over an active run from `from` bytes on. The caller owns the block.
pub(crate) fn zero(extent: &'static Extent, from: usize) {
    let base = extent.base_ptr().wrapping_add(from);
    // SAFETY: an active run is mapped and writable to its end, and its block is the caller's.
    unsafe { base.write_bytes(0, extent.bytes() - from) };
}

/// Makes an active run read zero by giving its pages back. The caller owns the block. `false`: the
/// contents are undefined.
pub(crate) fn purge(provider: &dyn PageProvider, extent: &'static Extent) -> bool {
    let Some(base) = NonNull::new(extent.base_ptr()) else { return false };
    // SAFETY: the run lies in one reservation; its contents are not needed (the caller's word).
    unsafe { provider.purge(base, extent.bytes()) == Purged::Zeroed }
}
