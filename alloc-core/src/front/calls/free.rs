//! free: puts a block into the bin of its class, which the class map or the caller knows.

use super::malloc::offset_of;
use crate::back::map::class_map;
use crate::front::bins::tls;
use crate::front::miss::give;
use crate::front::supply::layouts;
use crate::ground::operator::Operator;
use crate::ground::probes;
use crate::ground::size_class::{MAX_CACHED, OFFSET_UNIT, size_for_align};

/// Frees a block. Does nothing if `ptr` is null.
///
/// # Safety
/// `ptr` must be null, or a block of this allocator that is not used afterwards. (Foreign, interior
/// and twice freed pointers end the process with a message, at once or when the block is returned
/// to its slab.)
#[inline(always)]
pub unsafe fn free(ptr: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { free_by(ptr, Operator::Unknown) };
}

/// As [`free`], for an operator of C++. The hardened tier ends the process if it is not the one of
/// [`malloc_by`](super::malloc::malloc_by).
///
/// # Safety
/// As [`free`].
#[inline(always)]
pub unsafe fn free_by(ptr: *mut u8, operator: Operator) {
    probes::freed(ptr);
    let Some(units) = class_map::bin_units(ptr) else {
        // SAFETY: the caller's promise.
        return unsafe { give::unknown(ptr, operator) };
    };
    let cache = tls::current();
    if !cache.bin_at(units * OFFSET_UNIT).push(ptr) {
        // Two ways, because a constant operator costs the hardened tier nothing.
        match operator {
            // SAFETY: the caller's promise.
            Operator::Unknown => unsafe { give::known(ptr, units, cache) },
            // SAFETY: as above.
            _ => unsafe { give::known_by(ptr, units, cache, operator) },
        }
    }
}

/// Frees a block whose size is known, without a look-up.
///
/// # Safety
/// `ptr` must be a block of this allocator, and must not be used afterwards. `size` must be the
/// size that was asked for, or any size from there to the block's usable size.
#[inline(always)]
pub unsafe fn free_sized(ptr: *mut u8, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_sized_by(ptr, size, Operator::Unknown) };
}

/// As [`free_sized`], for an operator of C++: see [`free_by`].
///
/// # Safety
/// As [`free_sized`].
#[inline(always)]
pub unsafe fn free_sized_by(ptr: *mut u8, size: usize, operator: Operator) {
    probes::freed(ptr);
    let cache = tls::current();
    if size < layouts::bound() && cache.bin_at(offset_of(size) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { give::sized_by(ptr, size, 1, cache, operator) };
}

/// As [`free_sized`], but for a block that was asked for with an alignment.
///
/// # Safety
/// As [`free_sized`]. `align` must be the alignment that was asked for.
#[inline(always)]
pub unsafe fn free_sized_aligned(ptr: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_sized_aligned_by(ptr, size, align, Operator::Unknown) };
}

/// As [`free_sized_aligned`], for an operator of C++: see [`free_by`].
///
/// # Safety
/// As [`free_sized_aligned`].
#[inline(always)]
pub unsafe fn free_sized_aligned_by(ptr: *mut u8, size: usize, align: usize, operator: Operator) {
    probes::freed(ptr);
    let cache = tls::current();
    let rounded = size_for_align(size, align).unwrap_or(usize::MAX);
    if rounded < layouts::bound() && cache.bin_at(offset_of(rounded) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { give::sized_by(ptr, size, align, cache, operator) };
}

/// As [`free_sized_aligned`], but only for blocks of
/// [`alloc_rounded`](super::malloc::alloc_rounded) and of layouts. Trusts sizes even where samples
/// are taken, because the bins are then screened.
///
/// # Safety
/// As [`free_sized_aligned`].
#[inline(always)]
pub(crate) unsafe fn free_layout(ptr: *mut u8, size: usize, align: usize) {
    probes::freed_by_layout(ptr);
    let cache = tls::current();
    let rounded = size_for_align(size, align).unwrap_or(usize::MAX);
    if rounded <= MAX_CACHED && cache.bin_at(offset_of(rounded) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { give::sized(ptr, size, align, cache) };
}
