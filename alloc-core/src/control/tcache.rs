//! Caches that belong to no thread. Source: jemalloc(3), `tcache.*`.
//!
//! The number of a cache goes into [`Flags::tcache`](crate::raw::Flags::tcache). With a number that
//! names no cache, an allocation returns null with `errno` EINVAL, and a freed block is returned to
//! its slab past all caches.

use crate::front::life::explicit;
use crate::front::life::thread_begin::real_cache;

/// Makes a cache and returns its number. The cache takes memory from the arena of the calling
/// thread. Any thread may use it, one at a time (two at once wait for each other). Returns `None`
/// if there is no memory, or there are 4094 caches. Source: jemalloc(3), `tcache.create`.
///
/// ```
/// use lumalloc::control::tcache;
/// use lumalloc::raw::{self, Flags};
///
/// let cache = tcache::create().unwrap();
/// let flags = Flags::NONE.tcache(cache);
/// let block = raw::allocate(100, flags);
/// // SAFETY: a live block, freed once.
/// unsafe { raw::deallocate(block, flags) };
/// assert_eq!(raw::allocate(100, flags), block, "it was cached");
/// // SAFETY: as above.
/// unsafe { raw::deallocate(block, flags) };
/// assert!(tcache::destroy(cache));
/// assert!(!tcache::destroy(cache));
/// ```
#[must_use]
pub fn create() -> Option<u32> {
    explicit::create(real_cache()?)
}

/// Empties a cache: its blocks are returned to their slabs. Returns `false` if there is no cache
/// with this number. Source: jemalloc(3), `tcache.flush`.
pub fn flush(id: u32) -> bool {
    explicit::flush(id)
}

/// Empties a cache as [`flush`], and gives its number back, so that the next [`create`] may return
/// it. Returns `false` if there is no cache with this number. Source: jemalloc(3),
/// `tcache.destroy`.
pub fn destroy(id: u32) -> bool {
    explicit::destroy(id)
}
