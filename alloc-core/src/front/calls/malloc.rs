//! malloc: takes a block from the bin of its class.

use crate::front::bins::tls;
use crate::front::miss::out_of_memory::no_memory;
use crate::front::miss::{large_blocks, take};
use crate::ground::checked::at;
use crate::ground::operator::Operator;
use crate::ground::probes;
use crate::ground::size_class::{MAX_CACHED, OFFSET_OF_SIZE, OFFSET_UNIT, size_for_align};

/// Returns where the bin of a size begins, in units of [`OFFSET_UNIT`]. The size is at most
/// [`MAX_CACHED`]. For 0 that is the trap, which has no blocks.
#[inline(always)]
pub(super) fn offset_of(size: usize) -> usize {
    // SAFETY: the table has an entry for each size up to MAX_CACHED.
    usize::from(*unsafe { at(&OFFSET_OF_SIZE, (size + 7) >> 3) })
}

/// Allocates at least `size` bytes, 16-byte aligned from 16 bytes on. A size of 0 gives an address
/// that no thread may touch, different from all other blocks.
///
/// ```
/// let p = lumalloc::raw::malloc(100);
/// assert!(!p.is_null());
/// // SAFETY: p came from malloc, and is freed once.
/// unsafe { lumalloc::raw::free(p) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc(size: usize) -> *mut u8 {
    malloc_by(size, Operator::Unknown)
}

/// As [`malloc`], for an operator of C++: [`free_by`](super::free::free_by) in the hardened tier
/// compares it.
///
/// ```
/// use lumalloc::raw::{self, Operator};
/// let p = raw::malloc_by(100, Operator::Array);
/// // SAFETY: p came from malloc_by, and is freed once, by the same operator.
/// unsafe { raw::free_by(p, Operator::Array) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc_by(size: usize, operator: Operator) -> *mut u8 {
    if size > MAX_CACHED {
        return large_blocks::malloc(size, 1, false, operator);
    }
    malloc_rounded(size, size, 1, operator)
}

/// Allocates `size` bytes at a multiple of `align`. `rounded` is what [`size_for_align`] makes of
/// both, at most [`MAX_CACHED`].
#[inline(always)]
pub(crate) fn malloc_rounded(
    rounded: usize,
    size: usize,
    align: usize,
    operator: Operator,
) -> *mut u8 {
    let cache = tls::current();
    let offset = offset_of(rounded) * OFFSET_UNIT;
    let hit = |block| probes::allocated(block, size);
    // Two ways, because a constant operator costs the hardened tier nothing.
    match operator {
        Operator::Unknown => cache.pop_or(offset, hit, || take::malloc(size, align, cache)),
        _ => cache.pop_or(offset, hit, || take::malloc_by(size, align, cache, operator)),
    }
}

/// As [`malloc_rounded`], but for a caller that frees by the layout.
#[inline(always)]
pub(crate) fn alloc_rounded(rounded: usize, size: usize, align: usize) -> *mut u8 {
    let cache = tls::current();
    let offset = offset_of(rounded) * OFFSET_UNIT;
    let hit = |block| probes::allocated_by_layout(block, size);
    cache.pop_or(offset, hit, || take::alloc(size, align, cache))
}

/// Zeroes the first `size` bytes, for callers that never ask for the usable size.
#[inline]
pub(crate) fn zeroed(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        // SAFETY: a fresh block of at least `size` bytes.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// Allocates at least `size` bytes at a multiple of `align`, a power of two of any size. A size of
/// 0 gives a smallest block.
#[inline(always)]
#[must_use]
pub fn malloc_aligned(size: usize, align: usize) -> *mut u8 {
    malloc_aligned_by(size, align, Operator::Unknown)
}

/// As [`malloc_aligned`], for an operator of C++: see [`malloc_by`].
#[inline(always)]
#[must_use]
pub fn malloc_aligned_by(size: usize, align: usize, operator: Operator) -> *mut u8 {
    let size = size.max(1);
    match size_for_align(size, align) {
        Some(rounded) if rounded <= MAX_CACHED => malloc_rounded(rounded, size, align, operator),
        Some(_) => large_blocks::malloc(size, align, false, operator),
        None => no_memory(size),
    }
}
