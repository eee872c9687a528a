//! Where the fast paths go when they miss: by a sample's screen, the hardened tier, a façade, or
//! [`slow`], in this order.
//!
//! They hand over the cache that they have read, and what the class map said, so that neither is
//! looked up twice.

use super::guarded::{self, layouts};
use super::hardened::calls;
use super::modes::{self, Given};
use super::slow;
use super::thread_cache::{self, ThreadCache};
use crate::back::class_map;
use crate::ground::size_class::OFFSET_UNIT;

/// A block of a size that slabs serve, after the fast path missed in this cache, the calling
/// thread's. Null: no memory.
#[cold]
#[inline(never)]
pub(crate) fn malloc_small(size: usize, cache: &'static ThreadCache) -> *mut u8 {
    let block = calls::malloc(cache, size);
    if block.is_null() { malloc_watched(size, 1) } else { block }
}

/// As [`malloc_small`], at a multiple of `align`.
#[cold]
#[inline(never)]
pub(crate) fn malloc_small_aligned(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
) -> *mut u8 {
    let block = calls::malloc_aligned(cache, size, align);
    if block.is_null() { malloc_watched(size, align) } else { block }
}

/// As [`malloc_small`], for a caller who will say the layout when it frees.
#[cold]
#[inline(never)]
pub(crate) fn alloc_small(size: usize, cache: &'static ThreadCache) -> *mut u8 {
    layouts::come();
    malloc_small(size, cache)
}

/// As [`malloc_small_aligned`], for a caller who will say the layout when it frees.
#[cold]
#[inline(never)]
pub(crate) fn alloc_small_aligned(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
) -> *mut u8 {
    layouts::come();
    malloc_small_aligned(size, align, cache)
}

#[inline(never)]
fn malloc_watched(size: usize, align: usize) -> *mut u8 {
    let cache = thread_cache::current();
    let block = match (cache.as_plain(), cache.as_facade()) {
        (Some(real), _) => slow::malloc_plain(real, size, align),
        (_, Some(facade)) => facade.pop(size, align),
        _ => core::ptr::null_mut(),
    };
    if block.is_null() { slow::malloc_missed(size, align) } else { block }
}

/// Takes a block back, after the fast path could not: this cache is the calling thread's, and the
/// class map says the offset of the block's bin in units, or 0. Null is nothing to do.
///
/// # Safety
/// `block` is null or a block of this allocator's (others are noticed and end the process).
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_known(block: *mut u8, units: usize, cache: &'static ThreadCache) {
    // SAFETY: the caller's promise.
    if !unsafe { calls::free(cache, block, units) } {
        // SAFETY: the caller's promise.
        unsafe { free_overflown(block, units, cache) };
    }
}

/// The end of [`free_known`] without the hardened tier, out of line: its registers are not saved
/// for each free of that.
///
/// # Safety
/// As [`free_known`].
#[cold]
#[inline(never)]
unsafe fn free_overflown(block: *mut u8, units: usize, cache: &'static ThreadCache) {
    let is_done = cache.bin_at(units * OFFSET_UNIT).put(block)
        || cache.as_plain().is_some_and(|real| slow::free_plain(real, block, units));
    if !is_done {
        // SAFETY: the caller's promise.
        unsafe { free(block) };
    }
}

/// As [`free_known`], of what the class map does not know.
///
/// # Safety
/// As [`free_known`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn free(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { free_watched(block, None) };
}

/// As [`free_known`], for a block that was asked for with this size and alignment.
///
/// # Safety
/// As [`free_known`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_sized(
    block: *mut u8,
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
) {
    // SAFETY: the caller's promise.
    let is_done = unsafe { calls::free_sized(cache, block, size, align) }
        || (guarded::is_on() && put_known(cache, block));
    if !is_done {
        // SAFETY: the caller's promise.
        unsafe { free_given(block, size, align) };
    }
}

/// As [`free_sized`], for a block that may be of the class behind its size's: another one ends the
/// process.
///
/// # Safety
/// As [`free_known`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_looked(
    block: *mut u8,
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
) {
    modes::check_roomy(block as usize, Given { size, align });
    // SAFETY: the caller's promise.
    let is_done =
        unsafe { calls::free_sized(cache, block, size, align) } || put_known(cache, block);
    if !is_done {
        // SAFETY: the caller's promise.
        unsafe { free_given(block, size, align) };
    }
}

/// Puts a block where the class map says, if it says anything: no sample lies there.
#[inline]
fn put_known(cache: &'static ThreadCache, block: *mut u8) -> bool {
    class_map::bin_offset(block).is_some_and(|offset| cache.bin_at(offset).put(block))
}

#[inline(never)]
unsafe fn free_given(block: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_watched(block, Some(Given { size, align })) };
}

#[inline]
unsafe fn free_watched(block: *mut u8, given: Option<Given>) {
    if let Some(facade) = thread_cache::current().as_facade()
        // SAFETY: the caller's promise.
        && unsafe { facade.push(block, given) }
    {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { slow::free_missed(block, given) };
}
