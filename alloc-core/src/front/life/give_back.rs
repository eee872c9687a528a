//! Giving back what a thread had: its caches' blocks and slabs, its caches and its record.
//!
//! A thread gives them back itself, at its exit call. A thread whose first call comes in the second
//! round of the destructors of keys or later makes too few exit calls, and so does one that ends by
//! the system call alone. Before the word of another thread is touched, the kernel is therefore
//! asked whether that thread is still there ([`registry`]). What a lost thread had is given back by
//! the passes over idle caches, and before another thread needs a new record.

use super::may_start;
use crate::front::cache::caches_of_thread::OfThread;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::registry;
use crate::front::supply::{arrays, flush};
use crate::ground::size_class::SizeClass;
use crate::middle::passes::idle_owner;

/// Gives a cache's blocks back to their slabs and its slabs up for adoption.
pub(crate) fn empty(cache: &'static RealCache) {
    let mut state = cache.lock_own();
    #[cfg(feature = "checks")]
    cache.check();
    flush::all(cache, &mut state);
    idle_owner::give_up(&cache.owner, &mut state);
    for class in SizeClass::all() {
        arrays::drop(cache, class);
    }
}

/// Gives the record and the caches of a thread back: the calling one, or one that has ended.
pub(super) fn of_thread(thread: &'static Thread) {
    #[cfg(feature = "checks")]
    thread.check_caches();
    thread.caches().for_each(empty);
    let mut next = thread.caches().next();
    while let Some(cache) = next {
        next = cache.next_of_thread().get();
        registry::put(cache);
    }
    thread.end_events();
    registry::put_thread(thread);
}

/// Gives back what threads had that ended without their exit call. The caller holds no lock.
pub(super) fn of_lost_threads() {
    // The child of a vfork(2) may be in a namespace in which the parent's threads have no numbers.
    if !may_start::is_own_process() {
        return;
    }
    let mut records = registry::threads();
    while let Some(thread) = registry::take_lost(&mut records) {
        of_thread(thread);
    }
}

/// As [`of_lost_threads`], of a few threads at most, before a thread gets a new record.
pub(super) fn of_few_lost_threads() {
    if !may_start::is_own_process() {
        return;
    }
    while let Some(thread) = registry::take_lost_of_few() {
        of_thread(thread);
    }
}
