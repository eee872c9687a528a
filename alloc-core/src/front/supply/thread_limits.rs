//! The limits of a thread's caches: on or off, up to which size, and how many blocks of a class.
//!
//! A bin without an array takes nothing and gives nothing, so a limit needs no test on the fast
//! paths. A class that is not cached has no array, and the slow paths give it none.

use super::{arrays, flush};
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::ground::cache_limits::{BY_CLASS, CacheLimits};
use crate::ground::size_class::{MAX_CACHED, SizeClass};

/// Turns the thread's caches on, or empties them and turns them off.
pub(crate) fn enable(thread: &'static Thread, on: bool) {
    thread.set_enabled(on);
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// Sets the largest size that the thread caches, rounded up to a class. Larger blocks are given
/// back to their slabs.
pub(crate) fn set_max(thread: &'static Thread, size: usize) {
    let size = size.min(MAX_CACHED);
    thread.set_max(SizeClass::of(size).size());
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// Gives a new cache the limits of another cache of its thread.
pub(crate) fn inherit(cache: &'static RealCache, like: &'static RealCache) {
    cache.largest.set(like.largest.get());
    for class in SizeClass::all() {
        cache.cold(class).most.set(like.cold(class).most.get());
    }
}

fn set_largest(cache: &'static RealCache, largest: usize) {
    cache.largest.set(largest);
    clear(cache, |class| class.size() > largest);
}

/// Empties the bins of some classes and frees their arrays.
fn clear(cache: &'static RealCache, which: impl Fn(SizeClass) -> bool) {
    let mut state = cache.lock_own();
    cache.owner.activity.add(1);
    flush::beside(cache, &mut state);
    for class in SizeClass::all().filter(|class| which(*class)) {
        flush::oldest(cache, &mut state, class, cache.bin(class).level());
        arrays::drop(cache, class);
    }
}

/// Returns how many blocks of the class of a size the thread may cache, or `None` if it caches no
/// such class.
pub(crate) fn ncached_max(thread: &'static Thread, size: usize) -> Option<usize> {
    if size > MAX_CACHED || !thread.is_enabled() {
        return None;
    }
    let (class, cache) = (SizeClass::of(size), thread.caches().next()?);
    Some(if cache.holds(class) { arrays::capacity_max(cache, class) } else { 0 })
}

/// Sets how many blocks of some classes each of the thread's caches may hold, by `low-high:n`,
/// several parts separated by `|`. Returns `false` if the text is malformed; nothing changes then.
pub(crate) fn set_ncached_max(thread: &'static Thread, text: &[u8]) -> bool {
    let mut limits = CacheLimits::NONE;
    let is_good = limits.read(text);
    if is_good {
        thread.caches().for_each(|cache| set_most(cache, &limits));
    }
    is_good
}

fn set_most(cache: &'static RealCache, limits: &CacheLimits) {
    let is_told = |class: &SizeClass| limits.of(*class) != BY_CLASS;
    clear(cache, |class| is_told(&class));
    for class in SizeClass::all().filter(is_told) {
        cache.cold(class).most.set(limits.of(class));
    }
}
