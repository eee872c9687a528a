//! Pages that nobody touched yet, and how many of them may be huge pages' memory: of slabs, that no
//! block was taken of, and of chunks, that are left for later.
//!
//! One huge page under many slabs costs one fault where small pages cost 512; but it is memory
//! from its first touch on, and nothing tells of a fresh slab whether it will be filled. So it is
//! watched how far fresh slabs are used (each in its record: see `middle/slabs/fresh_pages.rs`),
//! and huge pages are for a fresh slab as long as what they waste is a small part of what is in
//! use, and slabs are filled in this process, as a rule: where a thousand threads hold hardly
//! touched slabs, they are not.
//!
//! What is left of the chunks that arenas took last ([`super::dense`]) waits for who fills it. It
//! may be as much, or one chunk's: so only a heap to which that is little takes chunks at all.

use crate::back::aging::limit;
use crate::back::runs::chunk_notes::CHUNK;
use crate::ground::counters::SharedCount;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The part of the memory in use that untouched pages of slabs in huge pages may be, and that what
/// is left of chunks may be.
const PART_OF_USED: usize = 8;

/// Untouched pages of slabs in small pages, which have no memory, and in huge pages.
static IN_SMALL: SharedCount = SharedCount::new();
static IN_HUGE: SharedCount = SharedCount::new();

/// Pages left of all arenas' chunks, and those that chunks will leave which are being taken.
pub(in crate::back) static LEFT: AtomicUsize = AtomicUsize::new(0);

fn count(in_huge: bool) -> &'static SharedCount {
    if in_huge { &IN_HUGE } else { &IN_SMALL }
}

/// Notes pages of a fresh slab.
pub(crate) fn add(pages: usize, in_huge: bool) {
    count(in_huge).add(pages as u64);
}

/// Notes that so many of them are touched, or no slab's any more.
pub(crate) fn sub(pages: usize, in_huge: bool) {
    count(in_huge).sub(pages as u64);
}

/// Pages of all arenas and records that hold something, as far as is known.
fn used_pages() -> usize {
    let untouched = (IN_SMALL.get() + IN_HUGE.get()) as usize;
    (limit::held() >> LG_PAGE).saturating_sub(untouched).saturating_sub(LEFT.load(Relaxed))
}

/// Whether a fresh slab of so many pages may lie in huge pages although nothing tells that it will
/// be filled.
pub(crate) fn may_be_huge(pages: usize) -> bool {
    is_small_part(pages, IN_SMALL.get() as usize, IN_HUGE.get() as usize, used_pages())
}

fn is_small_part(pages: usize, in_small: usize, in_huge: usize, used: usize) -> bool {
    let are_filled = in_small.saturating_add(in_huge) <= used;
    are_filled && in_huge.saturating_add(pages) <= used / PART_OF_USED
}

/// Lets an arena take a chunk of which so many pages will be left, if all arenas together use
/// `heap` pages and the bound is kept. They count in [`LEFT`] from now on: many threads may ask.
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
        // Other tests make slabs meanwhile: more than they all have.
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
