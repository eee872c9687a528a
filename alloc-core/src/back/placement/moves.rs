//! Moving a run's memory to other addresses instead of copying it.
//!
//! ```text
//!   begin        under the lock: addresses without memory for the longer run, in no list
//!   move_pages   the system call, outside all locks
//!   end          under the lock: files the result
//! ```
//! Moved pages are a mapping of their own ([`Mapping::Moved`]), which has the number of the move.
//! Runs of different numbers are never merged, because the system could not move them together
//! again. Once purged, such a run is an ordinary mapping. With too many such runs
//! ([`mapping::has_room`]) nothing is moved.
//!
//! While the system moves the memory, other threads may be given the old addresses. Therefore both
//! runs leave the page map before.

use crate::back::aging::page_aging::PageAging;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::runs::access;
use crate::back::runs::chunk_notes;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::huge;
use crate::back::runs::in_hand::InHand;
use crate::back::runs::in_use::InUse;
use crate::back::system::mapping::{self, Mapping, MoveNumber};
use crate::back::system::page_provider::{Moved, PageProvider};
use crate::back::system::thp;
use crate::ground::units::PAGE;
use core::ptr::NonNull;

/// No run shorter than this is moved, because copying is faster then.
pub(crate) const SHORTEST: usize = 512 << 10;
/// Runs this long or longer are moved to a multiple of it, as the system then moves page tables.
const TABLE: usize = 2 << 20;
/// A block is copied to unused memory only if it grows by at least one part in so many.
const PARTS_OF_GROWTH: usize = 4;
/// Where dirty pages are kept for ever, blocks are moved while these are at most so small a part of
/// the pages in use.
const KEPT_PART: usize = 2;

/// Whether the memory of `run` is to be moved to a run of `pages` pages: the system could, enough
/// mappings are left for that, no page is to stay free behind it, and it is not better copied.
pub(in crate::back) fn is_wanted(
    runs: &FreeRuns,
    run: &Extent,
    pages: usize,
    align: usize,
) -> bool {
    mapping::has_room()
        && run.mapping().can_be_moved()
        && !access::may_leave_gap(pages)
        && !is_copied(runs, run, pages, align)
}

/// Whether so many dirty pages are kept for ever that nothing more is moved. What was moved is
/// merged with nothing until it is purged, so longer blocks would not use it again.
pub(in crate::back) fn keep_too_much(runs: &FreeRuns, aging: &PageAging, used: usize) -> bool {
    aging.millis(true) < 0 && runs.pages(ExtentState::Dirty) > used / KEPT_PART
}

/// Whether a block of `pages` pages is better copied to unused memory, which has room for it, than
/// moved beside it with new memory for the part that is added.
fn is_copied(runs: &FreeRuns, run: &Extent, pages: usize, align: usize) -> bool {
    let new = pages.saturating_sub(run.pages());
    new * PARTS_OF_GROWTH >= run.pages() && runs.fit(ExtentState::Dirty, pages, align).is_some()
}

/// Takes addresses without memory for a move of `run` to `pages` pages at a multiple of `align`.
/// Both runs leave the page map. Returns `None` if there are no addresses.
pub(in crate::back) fn begin(
    runs: &mut FreeRuns,
    in_use: &mut InUse,
    run: &'static Extent,
    pages: usize,
    align: usize,
) -> Option<&'static Extent> {
    runs.keep_records()?;
    let table = if run.bytes() >= TABLE { TABLE } else { PAGE };
    let new = runs.take_addresses(pages, align.max(table))?.release(ExtentState::Active);
    page_map::clear_ends(run);
    page_map::clear_ends(new);
    in_use.begin_move(run.pages(), new);
    Some(new)
}

/// Files the result of a move. If the memory was moved, `new` is the block and `run` is free. Then
/// returns how many pages the block has grown by.
pub(in crate::back) fn end(
    runs: &mut FreeRuns,
    in_use: &mut InUse,
    run: &'static Extent,
    new: &'static Extent,
    moved: Moved,
) -> Option<usize> {
    let done = matches!(moved, Moved::Here | Moved::Away);
    let grown = done.then(|| new.pages().saturating_sub(run.pages()));
    let (kept, left) = if done { (new, run) } else { (run, new) };
    in_use.end_move(run.pages(), left);
    page_map::set_ends(kept);
    let left = InHand::hold(left, ExtentState::Retained);
    if done {
        run.set_mapping(Mapping::Ordinary);
        chunk_notes::forget_chunks(new);
        new.set_mapping(Mapping::Moved(MoveNumber::next()));
        new.zeroed.set(false);
        new.marks.set_wiped(false);
        // The mapping that was moved is open.
        new.marks.set_closed(false);
    }
    match moved {
        Moved::Here | Moved::Refused => {
            left.zeroed.set(left.zeroed.get() || done);
            if done {
                // Their mapping is a new one, which is open.
                access::close(left.run(), false);
            }
            page_map::set_ends(left.run());
            runs.wait(left);
        }
        // Other code has the addresses.
        Moved::Away => runs.forget(left),
        // Other code has them, or they are mapped as before. Nothing tells which.
        Moved::Lost => {
            runs.source().abandon(left.pages());
            runs.forget(left);
        }
    }
    grown
}

/// Moves the memory of `run` to `new`. Called outside all locks, between [`begin`] and [`end`].
pub(crate) fn move_pages(
    provider: &dyn PageProvider,
    run: &'static Extent,
    new: &'static Extent,
) -> Moved {
    let (Some(from), Some(to)) = (NonNull::new(run.base_ptr()), NonNull::new(new.base_ptr()))
    else {
        return Moved::Refused;
    };
    // The system moves one mapping at a time.
    huge::back_room(provider, run);
    // SAFETY: the caller owns both runs, and the memory under `new` is not used.
    let moved = unsafe { provider.move_pages(from, run.bytes(), to, new.bytes()) };
    if moved == Moved::Here {
        thp::advise_new(provider, from, run.bytes());
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp::tests::has_huge_pages;

    #[test]
    fn a_block_with_huge_pages_under_its_beginning_is_moved_whole() {
        if !has_huge_pages() {
            return;
        }
        let mut pages = PageAllocator::for_test(&Mmap);
        let (long, begun) = (5 * thp::HUGE / PAGE, 4 * thp::HUGE);
        // The end of the block is touched after huge pages were asked for it, or never.
        for is_asked_for in [true, false] {
            let run = pages.allocate(long, thp::HUGE, Memory::Any).unwrap();
            huge::back(&Mmap, run, begun);
            assert_eq!(run.mapping(), Mapping::HugeButEnd);
            let write = |at: usize| {
                // SAFETY: the test owns the run.
                unsafe { run.base_ptr().wrapping_add(at).write(7) };
            };
            write(begun - 1);
            if is_asked_for {
                huge::back_room(&Mmap, run);
                assert_eq!(run.mapping(), Mapping::Huge);
                write(begun);
            }
            let new = pages.begin_move(run, long + 1, PAGE).unwrap();
            let moved = move_pages(&Mmap, run, new);
            // Another test may map something at the old addresses before they are mapped again.
            assert!(matches!(moved, Moved::Here | Moved::Away), "{moved:?}");
            assert!(pages.end_move(run, new, moved));
            let read = |at: usize| {
                // SAFETY: the test owns the run.
                unsafe { new.base_ptr().wrapping_add(at).read() }
            };
            assert_eq!((read(begun - 1), read(begun)), (7, if is_asked_for { 7 } else { 0 }));
            pages.check();
        }
    }

    #[test]
    fn a_block_that_grows_much_is_copied_where_unused_memory_has_room() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let [run, _, unused, _] =
            [100, 1, 320, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        let is_moved = |pages: &mut PageAllocator, length| {
            let new = pages.begin_move(run, length, PAGE);
            new.is_some_and(|new| !pages.end_move(run, new, Moved::Refused))
        };
        assert!(is_moved(&mut pages, 320), "no memory is unused");
        pages.free(unused);
        let lengths = [124, 125, 320, 321];
        let expected = [true, false, false, true];
        assert_eq!(lengths.map(|length| is_moved(&mut pages, length)), expected);
        pages.check();
    }

    #[test]
    fn nothing_is_moved_where_many_pages_are_kept_dirty_for_ever() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let [run, _, unused, more, _] =
            [200, 1, 100, 2, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        pages.aging().set_millis(true, -1);
        let is_moved = |pages: &mut PageAllocator| {
            let new = pages.begin_move(run, 210, PAGE);
            new.is_some_and(|new| !pages.end_move(run, new, Moved::Refused))
        };
        pages.free(unused);
        assert!(is_moved(&mut pages), "100 dirty pages beside 204");
        pages.free(more);
        assert!(!is_moved(&mut pages), "102 beside 202");
        pages.aging().set_millis(true, 1000);
        assert!(is_moved(&mut pages));
        pages.check();
    }

    #[test]
    fn a_move_that_has_begun_counts_for_the_bounds() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let run = pages.allocate(200, PAGE, Memory::Any).unwrap();
        let held = pages.held();
        let new = pages.begin_move(run, 300, PAGE).expect("addresses");
        assert_eq!(pages.held(), held + 100);
        // Another thread may look at the arena now.
        pages.check();
        assert!(!pages.end_move(run, new, Moved::Refused));
        assert_eq!(pages.held(), held);
        pages.check();
    }

    #[test]
    fn a_new_place_that_was_lost_is_counted() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let run = pages.allocate(200, PAGE, Memory::Any).unwrap();
        let new = pages.begin_move(run, 300, PAGE).expect("addresses");
        let (mapped, base) = (pages.counts().mapped, run.base());
        assert!(!pages.end_move(run, new, Moved::Lost));
        let counts = pages.counts();
        assert_eq!((counts.abandoned, mapped - counts.mapped, run.base()), (300, 300, base));
        pages.check();
    }

    #[test]
    fn new_memory_of_a_moved_block_counts_beside_unused_memory() {
        const MIB: usize = (1 << 20) / PAGE;
        let mut pages = PageAllocator::for_test(&Mmap);
        let [run, one, _, two, _] = [4 * MIB, 10 * MIB, 1, 10 * MIB, 1]
            .map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        pages.free(one);
        pages.free(two);
        assert_eq!((pages.counts().dirty, pages.take_growth()), (20 * MIB, None));
        let new = pages.begin_move(run, 16 * MIB, PAGE).expect("addresses");
        assert!(!pages.end_move(run, new, Moved::Refused));
        assert_eq!(pages.take_growth(), None, "a refused move takes no memory");
        let new = pages.begin_move(run, 16 * MIB, PAGE).expect("addresses");
        let moved = move_pages(&Mmap, run, new);
        assert!(pages.end_move(run, new, moved), "{moved:?}");
        assert_eq!(pages.take_growth(), Some(8 * MIB), "12 MiB are new");
    }
}
