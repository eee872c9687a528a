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

use super::huge_page_policy::{self, Heap};
use crate::back::aging::held;
use crate::ground::counters::SharedCount;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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
    (held::bytes() >> LG_PAGE).saturating_sub(untouched).saturating_sub(LEFT.load(Relaxed))
}

/// Whether a fresh slab of `pages` pages may lie in huge pages although it is unknown whether it
/// will be filled.
pub(crate) fn may_be_huge(pages: usize) -> bool {
    let (in_small, in_huge) = (IN_SMALL.get() as usize, IN_HUGE.get() as usize);
    huge_page_policy::is_slab_filled(pages, in_small, in_huge, used_pages())
}

/// The pages that a chunk will leave, counted in [`LEFT`] from before the decision to take it until
/// it is there, because many threads may decide at a time.
pub(in crate::back) struct Claim {
    left: &'static AtomicUsize,
    pages: usize,
}

impl Claim {
    /// Claims `pages` pages. Returns the heap of all arenas, in which they wait.
    pub(in crate::back) fn new(pages: usize) -> (Claim, Heap) {
        Claim::of(&LEFT, used_pages(), pages)
    }

    fn of(left: &'static AtomicUsize, used: usize, pages: usize) -> (Claim, Heap) {
        let waiting = left.fetch_add(pages, Relaxed) + pages;
        (Claim { left, pages }, Heap { used, waiting })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.left.fetch_sub(self.pages, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_claim_counts_while_it_lasts() {
        static WAITING: AtomicUsize = AtomicUsize::new(0);
        let (first, heap) = Claim::of(&WAITING, 100, 7);
        assert_eq!((heap.used, heap.waiting), (100, 7));
        let (second, heap) = Claim::of(&WAITING, 100, 5);
        assert_eq!(heap.waiting, 12);
        drop(first);
        assert_eq!(WAITING.load(Relaxed), 5);
        drop(second);
        assert_eq!(WAITING.load(Relaxed), 0);
    }
}
