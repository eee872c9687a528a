//! What a thread's caches may hold: on or off, up to which size, how many of a class.
//!
//! A bin without an array takes nothing and gives nothing, so a limit needs no test on the fast
//! paths: what is not to be cached has no array, and the slow paths give it none.

use super::{arrays, flush};
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::ground::cache_limits::{BY_CLASS, CacheLimits};
use crate::ground::size_class::{MAX_CACHED, SizeClass};

/// Turns the thread's caches on or off; off, they are emptied first.
pub(crate) fn enable(thread: &'static Thread, on: bool) {
    thread.set_enabled(on);
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// Sets the largest size that the thread caches, rounded up to a class. Larger blocks go home.
pub(crate) fn set_max(thread: &'static Thread, size: usize) {
    let size = size.min(MAX_CACHED);
    thread.set_max(SizeClass::of(size).size());
    thread.caches().for_each(|cache| set_largest(cache, thread.largest()));
}

/// What a new cache of a thread holds: as its other caches do.
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

/// Sends home what the bins of some classes hold, and their arrays with it.
fn clear(cache: &'static RealCache, which: impl Fn(SizeClass) -> bool) {
    let mut state = cache.owner.state.lock();
    cache.owner.activity.add(1);
    flush::beside(cache, &mut state);
    for class in SizeClass::all().filter(|class| which(*class)) {
        flush::oldest(cache, &mut state, class, cache.bin(class).level());
        arrays::drop(cache, class);
    }
}

/// How many blocks of the class of a size the thread may cache. `None`: no such class is cached.
pub(crate) fn ncached_max(thread: &'static Thread, size: usize) -> Option<usize> {
    if size > MAX_CACHED || !thread.is_enabled() {
        return None;
    }
    let (class, cache) = (SizeClass::of(size), thread.caches().next()?);
    Some(if cache.holds(class) { arrays::capacity_max(cache, class) } else { 0 })
}

/// Sets how many blocks of some classes each of the thread's caches may hold: `low-high:n`, several
/// parts between `|`. `false`: the text is no such thing, and nothing changed.
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
