//! A look for misused blocks among those that a cache holds, where it costs next to nothing.
//!
//! By default a small block that is freed twice, or a pointer into one, is found when it is
//! returned to its slab. Many programs end before. So the newest blocks are looked at when a thread
//! requests blocks of a class for the first time, and when a countdown has run out; and all of them
//! when the process exits. Nothing is given back.

use crate::front::cache::real_cache::RealCache;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::wait::{self, Deadline};
use crate::middle::blocks::{misuse_report, transfer_moves};
use crate::middle::owners::owner::OwnerState;

/// The newest blocks of a bin that are compared with each other.
const NEWEST: usize = 4;

/// Looks at the newest blocks of each bin that was used, when a class is requested for the first
/// time. Called by the cache's thread.
#[cold]
#[inline(never)]
pub(super) fn of_all_bins(cache: &RealCache) {
    cache.ready();
    for class in SizeClass::all().filter(|class| cache.bin(*class).level() > 0) {
        newest(cache, class, core::ptr::null_mut());
        // SAFETY: the caller is the bin's thread.
        let blocks = unsafe { cache.bin(class).blocks() };
        let Some(block) = blocks.last() else { continue };
        misuse_report::check_held(class, *block);
        if transfer_moves::waits(class, *block) == Some(true) {
            misuse_report::held_twice(class, *block);
        }
    }
}

/// Ends the process if one of the newest blocks of a bin is there twice, or is the block that was
/// just `taken` from it. Called by the cache's thread.
#[inline]
pub(super) fn newest(cache: &RealCache, class: SizeClass, taken: *mut u8) {
    // SAFETY: the caller is the bin's thread.
    let blocks = unsafe { cache.bin(class).blocks() };
    let newest = blocks.get(blocks.len().saturating_sub(NEWEST)..).unwrap_or_default();
    for (index, block) in newest.iter().enumerate() {
        if *block == taken || newest.iter().take(index).any(|other| other == block) {
            misuse_report::held_twice(class, *block);
        }
    }
}

/// Looks at all blocks that a cache holds, and sorts its bins. Called by its thread when the
/// process exits. Returns `false`, and does nothing, if another thread, or this one, is inside the
/// cache.
pub(crate) fn all(cache: &RealCache, deadline: Deadline) -> bool {
    // What went back while the thread slept was looked at then.
    let state = wait::within_a_time(deadline, || cache.try_lock_own());
    let Some(state) = state else { return false };
    for class in SizeClass::all() {
        // SAFETY: the caller is the bin's thread.
        let blocks = unsafe { cache.bin(class).sorted() };
        let found = wait::within_a_time(deadline, || among(&state, class, blocks));
        if let Some(Some(block)) = found {
            misuse_report::held_twice(class, block);
        }
    }
    true
}

/// Returns a block that is no block of its class, or free already, or there twice, among the sorted
/// blocks of a bin and those that overflowed, if there is one. Returns `None` if none is found, but
/// some could not be looked at, because the lock of their arena's bin was taken.
pub(super) fn among(
    state: &OwnerState,
    class: SizeClass,
    blocks: &[*mut u8],
) -> Option<Option<*mut u8>> {
    let mut is_seen = true;
    let mut waits = |block| {
        // Once a lock was waited for in vain, no other block is asked for.
        let try_once = || transfer_moves::waits(class, block);
        let waits = if is_seen { wait::for_a_moment(try_once) } else { None };
        is_seen = waits.is_some();
        waits == Some(true)
    };
    let mut is_misused =
        |block: &*mut u8| misuse_report::is_misused(class, *block) || waits(*block);
    let twice = || blocks.array_windows().find(|[one, other]| one == other).map(|[one, _]| one);
    let mut found = blocks.iter().find(|block| is_misused(block)).or_else(twice).copied();
    state.overflow.for_each(class, |block| {
        if found.is_none() && (is_misused(&block) || blocks.binary_search(&block).is_ok()) {
            found = Some(block);
        }
    });
    if found.is_none() && !is_seen { None } else { Some(found) }
}

/// Returns whether a cache holds a block, after [`all`] has sorted its bins, or may hold it,
/// because another thread is inside the cache. Called by its thread.
pub(crate) fn holds(cache: &RealCache, class: SizeClass, block: *mut u8) -> bool {
    // SAFETY: the caller is the bin's thread.
    if unsafe { cache.bin(class).blocks() }.binary_search(&block).is_ok() {
        return true;
    }
    let mut found = false;
    let mut see = |other: *mut u8| found |= other == block;
    cache.facade().into_iter().for_each(|facade| facade.for_each_waiting(&mut see));
    let Some(state) = cache.owner.state.try_lock() else { return true };
    state.overflow.for_each(class, see);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::front::supply::refill;

    #[test]
    fn a_cache_that_another_thread_looks_into_may_hold_any_block() {
        let (cache, class) = (new_cache(), SizeClass::of(64));
        let all = |cache| all(cache, Deadline::of_all());
        let block = refill::request(cache, class);
        assert!(all(cache) && !holds(cache, class, block));
        let looked_into = cache.owner.state.lock();
        assert!(!all(cache), "the bins are not sorted");
        assert!(holds(cache, class, block));
        drop(looked_into);
        if !cache.bin(class).put(block) {
            refill::overflow(cache, class, block);
        }
        assert!(all(cache) && holds(cache, class, block));
        end(cache);
    }
}
