//! Caches that belong to no thread. Source: jemalloc(3), `tcache.*`.
//!
//! Their number goes into [`Flags::tcache`](crate::raw::Flags::tcache). A number that names no
//! cache is refused where a call can say so: allocation answers null with `errno` EINVAL; a block
//! that is freed with it goes home past all caches.

use crate::front::life::explicit;
use crate::front::life::thread_begin::real_cache;

/// Makes a cache and answers its number. It takes memory from the arena of the calling thread; any
/// thread may use it, one at a time (two at once wait for each other). `None`: no memory, or 4094
/// caches. Source: jemalloc(3), `tcache.create`.
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

/// Sends home what a cache holds. `false`: there is none with this number. Source: jemalloc(3),
/// `tcache.flush`.
pub fn flush(id: u32) -> bool {
    explicit::flush(id)
}

/// Sends home what a cache holds, and gives its number back: the next [`create`] may answer it.
/// `false`: there is none with this number. Source: jemalloc(3), `tcache.destroy`.
pub fn destroy(id: u32) -> bool {
    explicit::destroy(id)
}
