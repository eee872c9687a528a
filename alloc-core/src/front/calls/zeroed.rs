//! Blocks that read zero in every usable byte.
//!
//! Source: jemalloc, where `calloc` and `MALLOCX_ZERO` zero the whole usable size. Growth with
//! `MALLOCX_ZERO` relies on it, because it zeroes only the bytes behind the old usable size. In a
//! small class that costs at most a quarter more than the requested bytes.

use super::malloc::offset_of;
use super::query::usable_size;
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::bins::tls;
use crate::front::miss::out_of_memory::no_memory;
use crate::front::miss::{counted, diverted, large_blocks, take};
use crate::ground::operator::Operator;
use crate::ground::probes;
use crate::ground::size_class::{MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align};

/// As [`malloc`](super::malloc::malloc), but all usable bytes are zero.
#[inline]
#[must_use]
pub fn malloc_zeroed(size: usize) -> *mut u8 {
    if size > MAX_CACHED {
        return large_blocks::malloc(size, 1, true, Operator::Unknown);
    }
    small(size, size, 1)
}

/// As [`malloc_aligned`](super::malloc::malloc_aligned), but all usable bytes are zero.
#[inline]
#[must_use]
pub fn malloc_aligned_zeroed(size: usize, align: usize) -> *mut u8 {
    let size = size.max(1);
    match size_for_align(size, align) {
        Some(rounded) if rounded <= MAX_CACHED => small(rounded, size, align),
        Some(_) => large_blocks::malloc(size, align, true, Operator::Unknown),
        None => no_memory(size),
    }
}

/// Allocates a zeroed block for `size` bytes at a multiple of `align`. `rounded` is what
/// [`size_for_align`] makes of both, at most [`MAX_CACHED`].
#[inline(always)]
fn small(rounded: usize, size: usize, align: usize) -> *mut u8 {
    let offset = offset_of(rounded) * OFFSET_UNIT;
    let cache = tls::current();
    let block = cache.pop(offset);
    if block.is_null() {
        return after_miss(size, align, cache);
    }
    probes::allocated(block, size);
    // SAFETY: a fresh block of the class. If a bin has blocks, no mode is in force, and its blocks
    // are usable to the end.
    unsafe { block.write_bytes(0, SizeClass::of(rounded).size()) };
    block
}

/// The end of [`small`], if the bin has no block. A mode may give less than the class has (a
/// canary, a sample) or a large block, so the block's usable size is looked up.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
fn after_miss(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let sealed = take::sealed_block(size, align, cache, Operator::Unknown);
    if !sealed.is_null() {
        probes::allocated(sealed, size);
        // SAFETY: a fresh block, of which as many bytes are usable as were requested.
        unsafe { sealed.write_bytes(0, size) };
        return sealed;
    }
    let counted = counted::malloc(cache, size, align);
    if !counted.is_null() {
        probes::allocated(counted, size);
        // SAFETY: a fresh block of this length, usable to the end, because no mode is in force.
        unsafe { counted.write_bytes(0, counted::length(size, align)) };
        return counted;
    }
    if let Some(block) = diverted::malloc_zeroed(size, align) {
        return block;
    }
    let block = take::malloc(size, align, cache);
    if !block.is_null() {
        // SAFETY: a fresh block of this allocator.
        let usable = unsafe { usable_size(block) };
        // SAFETY: its usable bytes.
        unsafe { block.write_bytes(0, usable) };
    }
    block
}
