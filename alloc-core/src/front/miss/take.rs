//! Where the fast paths of malloc go when the bin is empty, or its countdown has run out.
//!
//! They hand over the cache that they have read, so that it is not looked up twice. The hardened
//! tier alone ([`sealed`]) is told by the bin that missed; what else the cache is, its kind says,
//! which is asked once.

use super::{sealed, small, watched};
use crate::front::bins::thread_cache::{Kind, ThreadCache};
use crate::front::cache::real_cache::RealCache;
use crate::front::supply::layouts;

/// A block of a size that slabs serve, at a multiple of `align`, after the fast path missed in this
/// cache, the calling thread's. Null: no memory.
#[cold]
#[inline(never)]
pub(crate) fn malloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let block = sealed::malloc(cache, size, align);
    if block.is_null() { malloc_by_kind(size, align, cache) } else { block }
}

/// As [`malloc`], for a caller who will say the layout when it frees.
#[cold]
#[inline(never)]
pub(crate) fn alloc(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    layouts::come();
    malloc(size, align, cache)
}

#[inline(never)]
fn malloc_by_kind(size: usize, align: usize, cache: &'static ThreadCache) -> *mut u8 {
    let block = match cache.kind() {
        Kind::Real => RealCache::plain(cache)
            .map_or(core::ptr::null_mut(), |real| small::malloc_plain(real, size, align)),
        Kind::Mode => watched::malloc(cache, size, align),
        Kind::Empty | Kind::Reentrant | Kind::Uncached => core::ptr::null_mut(),
    };
    if block.is_null() { small::malloc_any(size, align) } else { block }
}
