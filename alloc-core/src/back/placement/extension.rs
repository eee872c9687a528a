//! Unused runs made longer by the addresses behind them.
//!
//! A request for which no unused run is long enough would take new memory while a run that lacks a
//! few pages waits to be purged. Such runs exist because decay and growth trim runs, and blocks of
//! all lengths come and go. So the longest runs are looked at. One is taken if addresses without
//! memory right behind it make it long enough. Only these are new memory.
//!
//! A block in huge pages and the addresses added to it may be two mappings, so the whole is marked
//! ([`Mapping::Several`]). It is not moved, and once purged it is an ordinary mapping.

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::huge;
use crate::back::runs::in_hand::InHand;
use crate::back::runs::neighbours::neighbour_behind;
use crate::back::system::mapping::Mapping;
use crate::back::system::thp;
use crate::ground::units::PAGE;
use core::ptr::NonNull;

/// Runs up to this length are not made so. They are for slabs, for which there are many others.
const SHORT: usize = (64 << 10) / PAGE;
/// How many of the longest runs are looked at.
const LOOKED_AT: usize = 4;

/// Makes an unused run of at least half of `pages` pages at a multiple of `align` that long.
/// Returns it and how many of its pages are new, or `None` if there is none.
pub(in crate::back) fn take_extended(
    runs: &mut FreeRuns,
    pages: usize,
    align: usize,
) -> Option<(InHand, usize)> {
    if pages <= SHORT {
        return None;
    }
    runs.keep_records()?;
    let behind = |run: &'static Extent| {
        let more = pages.checked_sub(run.pages()).filter(|more| *more <= pages / 2)?;
        let behind = neighbour_behind(run, ExtentState::Retained)?;
        let mapping = Mapping::extended(run.mapping(), behind.mapping())?;
        let is_wanted = mapping != Mapping::Several || thp::backs_blocks();
        (is_wanted && more > 0 && behind.pages() >= more && run.base().is_multiple_of(align))
            .then_some((run, behind, more, mapping))
    };
    let longest = runs.longest_dirty(pages).take(LOOKED_AT);
    let (run, behind, more, mapping) = longest.filter_map(behind).next()?;
    let (run, behind) = (runs.remove(run), runs.remove(behind));
    if let Some(rest) = runs.cut_off(&behind, more) {
        runs.list_again(rest);
    }
    huge::back_room(runs.provider(), run.run());
    if mapping == Mapping::Several
        && let Some(base) = NonNull::new(behind.base_ptr())
    {
        // SAFETY: the addresses are in hand.
        unsafe { runs.provider().advise_huge(base, behind.bytes(), true) };
    }
    runs.append(&run, behind);
    run.set_mapping(mapping);
    Some((run, more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::mmap::Mmap;

    const LONG: usize = 64;

    fn trimmed(pages: &mut PageAllocator, keep: usize) {
        let batch = pages.take_batch(keep, 0).unwrap();
        batch.purge();
        assert!(pages.file_batch(batch));
        pages.check();
    }

    /// A heap whose only unused run was `long` pages long and was trimmed to `kept`.
    fn heap(long: usize, kept: usize) -> (PageAllocator, &'static Extent) {
        let mut pages = PageAllocator::for_test(&Mmap);
        let run = pages.allocate(long, PAGE, Memory::Filled).unwrap();
        let _behind = pages.allocate(1, PAGE, Memory::Any).unwrap();
        huge::back(&Mmap, run, run.bytes());
        pages.free(run);
        trimmed(&mut pages, kept);
        assert_eq!((run.pages(), pages.counts().dirty), (kept, kept));
        (pages, run)
    }

    #[test]
    fn what_decay_trimmed_is_made_whole_again() {
        let (mut pages, trimmed) = heap(LONG, LONG / 2);
        // No run is extended by more than half of the new length, or for a slab.
        assert!(take_extended(pages.runs(), LONG + 1, PAGE).is_none());
        assert!(take_extended(pages.runs(), SHORT, PAGE).is_none());
        let (retained, taken) = (pages.counts().retained, pages.counts().taken);
        let run = pages.allocate(LONG, PAGE, Memory::Filled).unwrap();
        assert_eq!((run.base(), run.pages()), (trimmed.base(), LONG));
        assert!(!run.zeroed.get());
        let counts = pages.counts();
        assert_eq!((counts.dirty, counts.taken), (0, taken + 1));
        assert_eq!(counts.retained, retained - LONG / 2);
        pages.check();
    }

    #[test]
    fn a_run_with_something_in_use_behind_it_stays_as_it_is() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let run = pages.allocate(LONG, PAGE, Memory::Filled).unwrap();
        let _behind = pages.allocate(1, PAGE, Memory::Any).unwrap();
        pages.free(run);
        assert!(take_extended(pages.runs(), LONG + 1, PAGE).is_none());
        pages.check();
    }

    #[test]
    fn a_block_in_huge_pages_is_joined_with_small_ones_and_moved_no_more() {
        let (long, kept) = (8 * thp::HUGE / PAGE, 6 * thp::HUGE / PAGE);
        let (mut pages, trimmed) = heap(long, kept);
        if trimmed.mapping() != Mapping::Huge {
            return;
        }
        let run = pages.allocate(long, PAGE, Memory::Filled).unwrap();
        assert_eq!((run.base(), run.mapping()), (trimmed.base(), Mapping::Several));
        assert!(pages.begin_move(run, long + 1, PAGE).is_none());
        // Once purged, the run is ordinary memory.
        pages.free(run);
        while let Some(batch) = pages.take_batch(0, 0) {
            batch.purge();
            assert!(pages.file_batch(batch));
        }
        let again = pages.allocate(long, PAGE, Memory::Any).unwrap();
        assert_eq!((again.base(), again.mapping()), (run.base(), Mapping::Ordinary));
    }
}
