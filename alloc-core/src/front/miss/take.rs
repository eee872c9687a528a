//! The slow path of malloc, if the bin is empty or its countdown has run out.
//!
//! The fast paths pass the cache that they have read, so that it is not looked up twice. The bin
//! that missed tells whether the hardened tier is the only mode ([`sealed`]). For all other cases
//! the cache's kind is checked once.

use super::{diverted, recorded, sealed, small, watched};
use crate::front::bins::thread_cache::{Kind, ThreadCache};
use crate::front::cache::emptying;
use crate::front::cache::real_cache::RealCache;
use crate::front::life::thread_begin;
use crate::front::supply::layouts;
use crate::ground::probes;
use crate::middle::blocks::empty_blocks;
use crate::profile::backtrace;

/// Allocates a block of a size that slabs serve, at a multiple of `align`, after the fast path
/// missed in `cache`, the calling thread's. Returns null if there is no memory.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let block = take(size, align, cache);
    probes::allocated(block, size);
    block
}

#[inline(always)]
fn take(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    if let Some(block) = diverted::malloc(size, align) {
        return block;
    }
    let mut block = sealed::malloc(cache, size, align);
    if block.is_null() {
        block = malloc_by_kind(size, align, cache);
        backtrace::keep_frame();
    }
    block
}

/// As [`malloc`], but for a caller that frees by the layout.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn alloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    layouts::come();
    let block = take(size, align, cache);
    probes::allocated_by_layout(block, size);
    block
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
    recorded::allocated(block, 0);
    Some(block)
}
