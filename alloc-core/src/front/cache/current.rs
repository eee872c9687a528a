//! The calling thread's cache and record, and counts of bytes past its bins.

use super::real_cache::{RealCache, Thread};
use crate::front::bins::tls;

/// Returns the calling thread's real cache, if it has one.
#[inline]
pub(crate) fn real_cache() -> Option<&'static RealCache> {
    RealCache::of(tls::current())
}

/// Returns the calling thread's record, or `None` before its first call and after its last.
#[inline]
pub(crate) fn thread() -> Option<&'static Thread> {
    real_cache()?.thread()
}

/// Returns the index of the arena that the calling thread allocates from, or `None` if the thread
/// has no cache.
pub(crate) fn arena() -> Option<u32> {
    let cache = real_cache()?;
    cache.thread()?;
    Some(cache.owner.home.get().id())
}

/// Returns whether the calling thread's arena has a reserve. Such a thread works for no other and
/// waits for none.
pub(crate) fn lives_on_reserve() -> bool {
    real_cache().is_some_and(|cache| cache.owner.home.get().has_reserve())
}

/// Counts bytes that the calling thread freed past its bins.
pub(crate) fn count_freed(bytes: usize) {
    if let Some(thread) = thread() {
        thread.freed_past(bytes);
    }
}

/// Counts bytes that the calling thread was given past its bins.
pub(crate) fn count_given(bytes: usize) {
    if let Some(thread) = thread() {
        thread.got_past(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::bins::thread_cache::EMPTY;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::passes::reserve;

    #[test]
    fn a_thread_lives_on_the_reserve_of_the_arena_that_its_cache_takes_pages_from() {
        let cache = new_cache();
        assert!(!lives_on_reserve() && arena().is_none());
        tls::set_current(&cache.front);
        assert!(!lives_on_reserve());
        reserve::set(cache.owner.home.get(), 1);
        assert!(lives_on_reserve());
        reserve::set(cache.owner.home.get(), 0);
        // The cache belongs to no thread.
        assert!(thread().is_none() && arena().is_none());
        tls::set_current(&EMPTY);
        end(cache);
    }
}
