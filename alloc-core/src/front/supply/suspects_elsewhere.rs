//! A look for misused blocks in the caches of other threads, when the process exits.
//!
//! Their threads may go on meanwhile: a thread may move a block while its bin is copied, and one
//! that is inside a slow path may have a block in a bin and in its slab for a moment. So a block is
//! reported only if each look finds it misused for a time.

use super::suspects;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::registry::{self, Locked};
use crate::ground::cache_limits;
use crate::ground::heap_sort::heap_sort;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::wait::{self, Deadline};
use crate::middle::blocks::misuse_report;
use core::cell::UnsafeCell;

/// Blocks that are looked at in all threads together, which takes some 30 ms.
const MOST: usize = 1 << 18;

/// Room for the blocks of one bin. Its pages are not touched before the exit.
struct BinCopy(UnsafeCell<[*mut u8; cache_limits::MOST as usize]>);

// SAFETY: used by the holder of the registry's lock only.
unsafe impl Sync for BinCopy {}

static COPY: BinCopy =
    BinCopy(UnsafeCell::new([core::ptr::null_mut(); cache_limits::MOST as usize]));

/// A block that was found misused in a cache.
struct Suspect {
    cache: &'static RealCache,
    class: SizeClass,
    block: *mut u8,
    /// How many looks found it misused.
    looks: usize,
}

/// The most suspects at once. Most are blocks that a thread moves at this moment.
const SUSPECTS: usize = 64;

/// So many looks must find a suspect misused. At others its cache may be in use.
const LOOKS: usize = 4;

/// Ends the process for a misused block in a cache of another thread than the calling one, whose
/// record is `mine`. What is not found in time for the deadline is left out.
pub(crate) fn all(_registry: &mut Locked<'_>, mine: Option<&Thread>, deadline: Deadline) {
    // SAFETY: the registry is locked, so this is the only reference, during this call.
    let copy = unsafe { &mut *COPY.0.get() };
    let mut suspects = [const { None }; SUSPECTS];
    let mut places = suspects.iter_mut();
    let mut left = MOST;
    let end_of_scan = deadline.of_scan();
    let is_other = |thread: &Thread| mine.is_none_or(|mine| !core::ptr::eq(thread, mine));
    for cache in registry::all().filter(|cache| cache.thread().is_some_and(is_other)) {
        for class in cache.owner.ledger.used_classes() {
            left = left.saturating_sub(cache.in_bin(class));
            if left > 0
                && !end_of_scan.is_over()
                && let Some(Some(block)) = find(cache, class, copy)
                && let Some(place) = places.next()
            {
                *place = Some(Suspect { cache, class, block, looks: 0 });
            }
        }
    }
    let is_left = wait::retain_lasting(deadline, &mut suspects, |it| {
        let is_misused = it.is_misused(copy);
        it.looks += usize::from(is_misused == Some(true));
        is_misused
    });
    let mut is_seen = |it: &Suspect| {
        it.looks >= LOOKS && wait::within_a_time(deadline, || it.is_misused(copy)) == Some(true)
    };
    if is_left && let Some(found) = suspects.iter().flatten().find(|it| is_seen(it)) {
        misuse_report::held_twice(found.class, found.block);
    }
}

impl Suspect {
    /// Returns whether the block is still misused, or `None` if that cannot be seen now.
    fn is_misused(&self, copy: &mut [*mut u8]) -> Option<bool> {
        let found = find(self.cache, self.class, copy)?;
        Some(found == Some(self.block))
    }
}

/// Returns a misused block of a class that a cache holds, if there is one. Returns `None` if
/// another thread, or this one, stays inside the cache, or inside the bin of its blocks.
fn find(cache: &RealCache, class: SizeClass, copy: &mut [*mut u8]) -> Option<Option<*mut u8>> {
    let state = wait::for_a_moment(|| cache.owner.state.try_lock())?;
    let blocks = cache.see_bin(class, copy);
    heap_sort(blocks);
    suspects::among(&state, class, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::front::supply::refill;

    #[test]
    fn a_block_that_is_in_a_bin_twice_or_free_is_found_without_a_change_of_the_bin() {
        let (cache, class) = (new_cache(), SizeClass::of(64));
        let mut copy = [core::ptr::null_mut(); cache_limits::MOST as usize];
        let [one, other] = [(); 2].map(|()| refill::request(cache, class));
        let level = cache.bin(class).level();
        for (blocks, expected) in [(vec![one, other], None), (vec![one, other, one], Some(one))] {
            let count = blocks.len();
            assert!(blocks.into_iter().all(|block| cache.bin(class).put(block)));
            assert_eq!(find(cache, class, &mut copy), Some(expected));
            assert_eq!(cache.bin(class).level(), level + count);
            (0..count).for_each(|_| assert!(!cache.bin(class).pop_uncounted().is_null()));
        }
        let looked_into = cache.owner.state.lock();
        assert_eq!(find(cache, class, &mut copy), None, "it is locked");
        drop(looked_into);
        assert!(cache.bin(class).put(one) && cache.bin(class).put(other));
        end(cache);
    }
}
