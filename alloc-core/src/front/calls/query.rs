//! Queries about a block or a size. They change nothing.

use crate::back::map::page_map;
use crate::front::life::thread_begin;
use crate::front::miss::diverted;
use crate::front::modes::block_size::{self, usable_of};
use crate::front::modes::guarded;
use crate::front::modes::judge;
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass, size_for_align};
use crate::ground::units::PAGE;
use crate::middle::arenas::large;
use crate::middle::blocks::{empty_blocks, misuse_report};
use crate::middle::slabs::slab::Slab;

/// Returns the number of bytes that a block may hold.
///
/// # Safety
/// `ptr` must be a block of this allocator, in use. (Other pointers end the process with a
/// message.)
#[must_use]
pub unsafe fn usable_size(ptr: *mut u8) -> usize {
    let Some(most) = block_size(ptr) else {
        return diverted::size(ptr).unwrap_or_else(|| {
            guarded::freed_query(ptr as usize);
            misuse_report::no_block(ptr as usize)
        });
    };
    if !options::current().hardened {
        return most;
    }
    let (entry, address) = (page_map::lookup(ptr as usize), ptr as usize);
    // SAFETY: the caller's promise.
    unsafe { judge::requested(entry, address) }.unwrap_or_else(|| {
        // SAFETY: the caller's promise.
        unsafe { judge::check_not_freed(entry, address) };
        most
    })
}

/// Returns the number of bytes that the block at an address may hold at most, or `None` if no block
/// of this allocator begins there. A small block may be one that was freed. In the hardened tier a
/// block's [`usable_size`] is what was requested, which may be less.
///
/// ```
/// use lumalloc::raw;
/// let block = raw::malloc(100);
/// assert_eq!(raw::block_size(block), Some(112));
/// assert_eq!(raw::block_size(block.wrapping_add(1)), None);
/// # // SAFETY: a live block, used no more.
/// # unsafe { raw::free(block) };
/// ```
#[must_use]
#[inline]
pub fn block_size(ptr: *const u8) -> Option<usize> {
    block_size::of_block(ptr)
}

/// Returns the usable size that [`malloc_aligned`](super::malloc::malloc_aligned) would give for a
/// size (with `align` 1, also [`malloc`](super::malloc::malloc) for a size above 0), or 0 if the
/// size or the alignment is beyond 2^48, the last size class.
#[must_use]
pub fn good_size(size: usize, align: usize) -> usize {
    // Makes the modes known at the first call.
    thread_begin::real_cache();
    if let Some(room) = block_size::room(size, align).filter(|room| *room <= MAX_CACHED) {
        if guarded::may_be_sample(size) {
            return size.max(1);
        }
        return usable_of(SizeClass::of(room), size);
    }
    let Some(rounded) = size_for_align(size, align) else { return 0 };
    let bytes = large::usable(if align > PAGE { size } else { rounded });
    let bytes = bytes.filter(|_| align <= large::LONGEST).unwrap_or(0);
    if bytes > 0 && options::current().hardened { size.max(1) } else { bytes }
}

/// Returns whether an address lies in a slab of this allocator, or is the beginning of a large
/// block, of a guarded sample or of a block of no bytes.
#[must_use]
pub fn is_ours(ptr: *const u8) -> bool {
    let entry = page_map::lookup(ptr as usize);
    Slab::of(entry).is_some()
        || entry.extent().is_some_and(|extent| extent.is_block_at(ptr as usize))
        || guarded::usable_size(ptr as usize).is_some()
        || empty_blocks::is_block_at(ptr as usize)
}
