//! Leading all threads to a slow path before their next operation, without their help.
//!
//! The marks, façades and words are those of [`emptying`], but no block is taken. A thread that
//! finds the mark makes its cache whole, which changes nothing, and follows the rate of the heap
//! profiler ([`RealCache::follow_rate`]). So it does at the latest before its second operation from
//! now on: one may be under way.
//!
//! A thread that begins, ends or runs a callback is marked too. It sees the mark when it shows its
//! cache.

use super::emptying;
use super::real_cache::RealCache;
use super::registry::{self, REGISTRY};
use crate::ground::os;

/// Rouses all threads. Returns `false` if there is no memory for a façade, or the system cannot do
/// it: then some follow at a later slow path. The caller holds no lock.
pub(crate) fn all() -> bool {
    let registry = REGISTRY.lock();
    let caches = || registry::all().filter(|cache| cache.thread().is_some());
    // All are marked, also where one of them cannot be.
    let are_all_marked = caches().filter(|cache| !mark(cache)).count() == 0;
    let shut = || {
        for cache in caches() {
            emptying::shut(&registry, cache);
        }
        os::fence_all_threads()
    };
    os::fence_all_threads() && shut() && are_all_marked
}

/// Marks a cache, if it can have a façade.
fn mark(cache: &'static RealCache) -> bool {
    // One whose blocks are gone stays marked, with the façade that it has then.
    cache.emptied.set(true);
    let is_marked = cache.prepare_facade();
    if !is_marked {
        cache.emptied.set(false);
    }
    is_marked
}
