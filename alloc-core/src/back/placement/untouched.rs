//! Pages that were not touched yet, and how many of them may lie in huge pages: pages of slabs from
//! which no block was taken, and the rests of chunks.
//!
//! One huge page under many slabs costs one fault where small pages cost 512. But it is memory from
//! its first touch on, and nothing shows whether a fresh slab will be filled. So each fresh slab's
//! record notes how far it is used (see `middle/slabs/fresh_pages.rs`). A fresh slab may lie in
//! huge pages as long as they waste a small part of the memory in use and most slabs of this
//! process are filled. Where a thousand threads hold hardly touched slabs, it may not.
//!
//! The rests of the chunks that arenas took last ([`super::dense`]) wait for runs that fill them.
//! They may be the same part of the memory in use, or one chunk, so only a large heap has any.

use crate::back::aging::limit;
use crate::back::runs::chunk_notes::CHUNK;
use crate::ground::counters::SharedCount;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the memory in use that untouched pages of slabs in huge pages may be, and that the
/// rests of chunks may be.
const PART_OF_USED: usize = 8;

/// Untouched pages of slabs in small pages, which have no memory, and in huge pages.
static IN_SMALL: SharedCount = SharedCount::new();
static IN_HUGE: SharedCount = SharedCount::new();

/// Pages in the rests of all arenas' chunks, including those of chunks that are being taken.
pub(in crate::back) static LEFT: AtomicUsize = AtomicUsize::new(0);

fn count(in_huge: bool) -> &'static SharedCount {
    if in_huge { &IN_HUGE } else { &IN_SMALL }
}

/// Counts untouched pages of a fresh slab.
pub(crate) fn add(pages: usize, in_huge: bool) {
    count(in_huge).add(pages as u64);
}

/// Uncounts pages that were touched or that belong to no slab any more.
pub(crate) fn sub(pages: usize, in_huge: bool) {
    count(in_huge).sub(pages as u64);
}

/// Pages with memory of all arenas and records, without those known to be untouched.
fn used_pages() -> usize {
    let untouched = (IN_SMALL.get() + IN_HUGE.get()) as usize;
    (limit::held() >> LG_PAGE).saturating_sub(untouched).saturating_sub(LEFT.load(Relaxed))
}

/// Whether a fresh slab of `pages` pages may lie in huge pages although it is unknown whether it
/// will be filled.
pub(crate) fn may_be_huge(pages: usize) -> bool {
    is_small_part(pages, IN_SMALL.get() as usize, IN_HUGE.get() as usize, used_pages())
}

fn is_small_part(pages: usize, in_small: usize, in_huge: usize, used: usize) -> bool {
    let are_filled = in_small.saturating_add(in_huge) <= used;
    are_filled && in_huge.saturating_add(pages) <= used / PART_OF_USED
}

/// Lets an arena take a chunk whose rest is `leaves` pages, if all arenas together use `heap` pages
/// and the bound is kept. Many threads may ask, so the pages count in [`LEFT`] from now on.
pub(in crate::back) fn claim(leaves: usize, heap: usize) -> bool {
    claim_of(&LEFT, used_pages(), leaves, heap)
}

fn claim_of(left: &AtomicUsize, used: usize, leaves: usize, heap: usize) -> bool {
    if used < heap {
        return false;
    }
    let is_within = left.fetch_add(leaves, Relaxed) + leaves <= CHUNK.max(used / PART_OF_USED);
    if !is_within {
        left.fetch_sub(leaves, Relaxed);
    }
    is_within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_for_slabs_where_little_is_wasted_and_slabs_are_filled() {
        let used = 100 * PART_OF_USED;
        assert!(is_small_part(16, 0, 84, used));
        assert!(!is_small_part(16, 0, 85, used), "too much is wasted already");
        assert!(is_small_part(16, used - 84, 84, used));
        assert!(!is_small_part(16, used - 83, 84, used), "slabs are hardly touched here");
        assert!(!is_small_part(16, 0, 0, 0), "nothing is in use");
        assert!(!is_small_part(16, usize::MAX, 1, used));
    }

    #[test]
    fn what_is_noted_counts_until_it_is_touched() {
        // More pages than the slabs that other tests make meanwhile have.
        const MANY: usize = 1 << 40;
        for in_huge in [false, true] {
            add(MANY, in_huge);
            assert_eq!(used_pages(), 0);
            assert!(!may_be_huge(1));
            sub(MANY, in_huge);
        }
    }

    #[test]
    fn small_arenas_take_chunks_where_all_together_leave_little_of_theirs() {
        const HEAP: usize = 3 * CHUNK;
        let left = AtomicUsize::new(0);
        let mut total = 0;
        let mut claims = |used: usize, leaves: usize, expected: bool| {
            assert_eq!(
                claim_of(&left, used, leaves, HEAP),
                expected,
                "{used} {leaves} beside {total}"
            );
            total += if expected { leaves } else { 0 };
            assert_eq!(left.load(Relaxed), total);
        };
        claims(HEAP - 1, 0, false);
        claims(HEAP, CHUNK - 1, true);
        claims(HEAP, 2, false);
        claims(HEAP, 1, true);
        let large = 3 * PART_OF_USED * CHUNK;
        claims(large, CHUNK, true);
        claims(large, CHUNK + 1, false);
        claims(large, CHUNK, true);
    }
}
