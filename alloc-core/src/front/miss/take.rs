//! The slow path of malloc, if the bin is empty or its countdown has run out.
//!
//! The fast paths pass the cache that they have read, so that it is not looked up twice. The bin
//! that missed tells whether the hardened tier is the only mode ([`sealed`]), and the cache whether
//! it only counts ([`counted`]). For all other cases the cache's kind is checked once.

use super::{counted, diverted, recorded, sampled, sealed, small, watched};
use crate::front::bins::thread_cache::{Kind, ThreadCache};
use crate::front::cache::emptying;
use crate::front::cache::real_cache::RealCache;
use crate::front::life::thread_begin;
use crate::front::modes::diversion;
use crate::front::modes::operators;
use crate::front::supply::layouts;
use crate::ground::operator::Operator;
use crate::ground::probes;
use crate::middle::blocks::empty_blocks;
use crate::profile::backtrace;

/// Allocates a block of a size that slabs serve, at a multiple of `align`, after the fast path
/// missed in `cache`, the calling thread's. Returns null if there is no memory.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    malloc_for_c(size, align, cache, Operator::Unknown)
}

/// As [`malloc`], by an operator.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc_by(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) -> *mut u8 {
    malloc_for_c(size, align, cache, operator)
}

#[inline(always)]
fn malloc_for_c(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) -> *mut u8 {
    let block = sealed_block(size, align, cache, operator);
    if block.is_null() {
        return counted_for_c(size, align, cache, operator);
    }
    probes::allocated(block, size);
    block
}

/// The next step of [`malloc`] without the hardened tier, for threads whose operations are counted
/// only. It is out of line, so that it saves no registers of the other steps.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
fn counted_for_c(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) -> *mut u8 {
    let block = counted::malloc(cache, size, align);
    if block.is_null() {
        return unsealed_for_c(size, align, cache, operator);
    }
    probes::allocated(block, size);
    block
}

/// As [`malloc`], but for a caller that frees by the layout.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn alloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    layouts::come();
    let mut block = sealed_block(size, align, cache, Operator::Unknown);
    if block.is_null() {
        block = counted::malloc(cache, size, align);
    }
    if block.is_null() {
        block = unsealed(size, align, cache);
    }
    probes::allocated_by_layout(block, size);
    block
}

/// Returns a block of the hardened tier, or null if another way has to be taken.
#[inline(always)]
pub(crate) fn sealed_block(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) -> *mut u8 {
    // What the diversion takes over later, it takes over from the next miss of the real bin.
    if align > sealed::ALIGN || diversion::is_on() {
        return core::ptr::null_mut();
    }
    sealed::malloc(cache, size, operator)
}

/// The end of [`malloc`] without the hardened tier. It is out of line, so that calls of that tier
/// do not save its registers.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
fn unsealed_for_c(
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) -> *mut u8 {
    let block = unsealed_block(size, align, cache);
    // SAFETY: a fresh block whose operator is not noted, or null.
    unsafe { operators::note(block, operator) };
    backtrace::keep_frame();
    probes::allocated(block, size);
    block
}

/// The end of [`alloc`] without the hardened tier.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
fn unsealed(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let block = unsealed_block(size, align, cache);
    backtrace::keep_frame();
    block
}

/// Allocates a block in any other way than [`sealed_block`].
#[inline(always)]
fn unsealed_block(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    if let Some(block) = diverted::malloc(size, align) {
        return block;
    }
    if align > sealed::ALIGN {
        let block = sealed::malloc_aligned(cache, size, align);
        if !block.is_null() {
            return block;
        }
    }
    malloc_by_kind(size, align, cache)
}

#[inline(never)]
fn malloc_by_kind(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let cache = emptying::awake(cache);
    if size == 0
        && let Some(block) = empty()
    {
        return block;
    }
    let block = match cache.kind() {
        Kind::Real => RealCache::plain(cache)
            .map_or(core::ptr::null_mut(), |real| small::malloc_plain(real, size, align)),
        Kind::Mode => watched::malloc(cache, size, align),
        Kind::Empty | Kind::Reentrant | Kind::Uncached => core::ptr::null_mut(),
    };
    if block.is_null() { small::malloc_any(size, align) } else { block }
}

/// Allocates a block of no bytes. Returns `None` if it has to be a smallest block.
#[cold]
#[inline(never)]
fn empty() -> Option<*mut u8> {
    // Makes the modes known at the first call.
    thread_begin::real_cache();
    let block = empty_blocks::allocate()?;
    sampled::empty_exactly(block);
    recorded::allocated(block, 0);
    Some(block)
}
