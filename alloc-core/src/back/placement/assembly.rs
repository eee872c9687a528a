//! Long blocks made of the memory of unused runs, which is moved and not faulted in again.
//!
//! ```text
//!   unused   ┌─ 12 MiB ─┐ in use ┌─── 8 MiB ───┐           (no run of 20 MiB)
//!                   │                   │      page tables move, memory stays
//!   block           └────────┬──────────┘
//!            ┌───────── 20 MiB ─────────┐
//! ```
//! Programs with long blocks of changing lengths leave unused runs of which none is long enough. To
//! purge them while new memory is taken costs a zeroed huge page for every 2 MiB. To move the
//! memory costs a fiftieth of that. So a new long block first gets addresses, and then the whole
//! huge pages of unused runs. The rest is new memory. The unused runs keep their addresses.
//!
//! Moved memory lies in mappings of its own, so such a block is marked ([`Mapping::Several`]). When
//! it is purged, it becomes one ordinary mapping. Memory is moved by single huge pages, because
//! older systems do not move what lies in several mappings. The calls run under the arena's lock,
//! for which threads that can use another arena do not wait.

use super::long_block::leave_end;
use super::memory::Request;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::runs::access;
use crate::back::runs::chunk_notes::{self, CHUNK};
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::huge;
use crate::back::runs::in_hand::InHand;
use crate::back::system::mapping::{self, Mapping};
use crate::back::system::page_provider::{Moved, PageProvider};
use crate::back::system::thp::{self, HUGE};
use crate::ground::units::LG_PAGE;
use core::ptr::NonNull;

/// How many unused runs, the longest first, are searched for one with a whole huge page.
const LOOKED_AT: usize = 16;
/// The most huge pages that are moved for one block. Each holds the lock for some microseconds.
const MOST_MOVED: usize = 64;
/// The number of mappings for which such a block counts.
const MAPPINGS: usize = 8;

/// How far a block was filled with moved memory.
enum Filled {
    /// The block was filled up to this page.
    To(usize),
    /// The huge page at this page does not belong to the allocator any more.
    LostAt(usize),
}

/// Makes a long block that takes `whole` pages by moving the memory of unused runs, as far as they
/// suffice. Returns it and how many of its pages are new, or `None` if there is no such memory.
pub(in crate::back) fn take_from_unused(
    runs: &mut FreeRuns,
    request: Request,
    whole: usize,
) -> Option<(InHand, usize)> {
    let pages = request.pages;
    if !mapping::has_room_for_parts(MAPPINGS) || find_part(runs).is_none() {
        return None;
    }
    let run = runs.take_addresses(whole, request.align.max(HUGE))?;
    huge::back(runs.provider(), run.run(), run.bytes());
    let most = (whole / CHUNK).min(MOST_MOVED) * CHUNK;
    match fill(runs, &run, most) {
        Filled::To(filled) => {
            if filled > 0 {
                note_moved(&run);
            }
            leave_end(runs, &run, pages);
            Some((run, pages.saturating_sub(filled)))
        }
        Filled::LostAt(at) => {
            abandon(runs, run, at);
            None
        }
    }
}

/// Moves the memory of unused runs under the first `most` pages of a run.
fn fill(runs: &mut FreeRuns, run: &InHand, most: usize) -> Filled {
    let mut filled = 0;
    while filled < most {
        let Some(part) = take_part(runs, most - filled) else { break };
        let (done, end) = shift(runs.provider(), &part, run.base() + (filled << LG_PAGE));
        filled += done;
        let is_moved = done == part.pages();
        file_part(runs, part, done);
        if end == Moved::Lost {
            return Filled::LostAt(filled);
        }
        if !is_moved {
            break;
        }
    }
    Filled::To(filled)
}

/// An unused run that contains a whole huge page. It stays in its list.
fn find_part(runs: &FreeRuns) -> Option<&'static Extent> {
    let longest = runs.longest_dirty().take(LOOKED_AT);
    longest.into_iter().find(|run| run.fit(CHUNK, HUGE).is_some())
}

/// Takes whole huge pages, at most `most` pages, out of an unused run. They are in no list.
fn take_part(runs: &mut FreeRuns, most: usize) -> Option<InHand> {
    runs.keep_records()?;
    let run = find_part(runs)?;
    let begin = run.fit(CHUNK, HUGE)?;
    let whole = ((run.end() - begin) >> LG_PAGE) / CHUNK * CHUNK;
    let run = runs.remove(run);
    runs.cut(run, whole.min(most), HUGE)
}

/// Files a run of which the first `moved` pages have given their memory away.
fn file_part(runs: &mut FreeRuns, part: InHand, moved: usize) {
    if moved < part.pages() {
        let rest = if moved > 0 { runs.cut_off(&part, moved) } else { None };
        let Some(rest) = rest else { return runs.file(part, ExtentState::Dirty) };
        runs.file(rest, ExtentState::Dirty);
    }
    make_ordinary(runs.provider(), &part);
    part.zeroed.set(true);
    runs.file(part, ExtentState::Retained);
}

/// Makes one ordinary mapping of addresses without memory.
fn make_ordinary(provider: &dyn PageProvider, part: &InHand) {
    let Some(base) = NonNull::new(part.base_ptr()) else { return };
    // SAFETY: the run is in hand, and has no contents.
    if !unsafe { provider.renew(base, part.bytes()) } {
        return;
    }
    chunk_notes::forget_chunks(part);
    thp::advise_new(provider, base, part.bytes());
    access::close_again(part);
}

/// Notes that a run has moved memory. What was closed where it came from is closed here too.
fn note_moved(run: &InHand) {
    run.set_mapping(Mapping::Several);
    run.zeroed.set(false);
    run.marks.set_wiped(false);
    run.marks.set_closed(access::are_some_closed());
}

/// Files the rest of a run that lost the huge page at page `at`.
fn abandon(runs: &mut FreeRuns, run: InHand, at: usize) {
    // Without records for the parts, the whole run is given up.
    let mut lost = run;
    if at > 0
        && let Some(behind) = runs.cut_off(&lost, at)
    {
        note_moved(&lost);
        runs.file(lost, ExtentState::Dirty);
        lost = behind;
    }
    if let Some(behind) = runs.cut_off(&lost, CHUNK) {
        behind.marks.set_head(true);
        runs.file(behind, ExtentState::Dirty);
    }
    page_map::clear_ends(&lost);
    runs.source().abandon(lost.pages());
    runs.forget(lost);
}

/// Moves the memory of `part` to `to`, as far as the system does. Returns how many pages were
/// moved, and the result of the last call.
fn shift(provider: &dyn PageProvider, part: &InHand, to: usize) -> (usize, Moved) {
    let mut done = 0;
    while done < part.bytes() {
        let from = NonNull::new(part.base_ptr().wrapping_add(done));
        let to = NonNull::new(core::ptr::with_exposed_provenance_mut(to + done));
        let (Some(from), Some(to)) = (from, to) else { break };
        // SAFETY: both huge pages lie in runs that are in hand, and the one at `to` has no memory.
        let moved = unsafe { provider.shift_pages(from, HUGE, to) };
        if moved != Moved::Here {
            return (done >> LG_PAGE, moved);
        }
        done += HUGE;
    }
    (done >> LG_PAGE, Moved::Here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::failing::{Failing, Refused};
    use crate::back::system::provider::fixed::keep;
    use crate::back::system::provider::mmap::{Mmap, can_shift};
    use crate::back::system::thp::tests::has_huge_pages;
    use crate::ground::units::PAGE;
    use crate::not_tried::not_tried;

    const BYTE: u8 = 7;

    fn first_byte(run: &Extent, chunk: usize) -> u8 {
        // SAFETY: mapped, and no thread writes to it.
        unsafe { run.base_ptr().wrapping_add(chunk * HUGE).read() }
    }

    /// A heap with two unused runs of so many chunks, written to, and a run in use behind each.
    /// `None` where the system knows no huge pages.
    fn heap(
        provider: &'static dyn PageProvider,
        chunks: [usize; 2],
    ) -> Option<(PageAllocator, [&'static Extent; 2])> {
        let mut pages = PageAllocator::for_test(provider);
        let region = pages.allocate(24 * CHUNK, HUGE, Memory::Any)?;
        pages.free(region);
        while let Some(batch) = pages.take_batch(0, 0) {
            batch.purge();
            pages.file_batch(batch);
        }
        let runs = chunks.map(|n| {
            let run = pages.allocate(n * CHUNK, HUGE, Memory::Filled).unwrap();
            huge::back(provider, run, run.bytes());
            // SAFETY: the test owns the run.
            unsafe { run.base_ptr().write_bytes(BYTE, run.bytes()) };
            pages.allocate(CHUNK, HUGE, Memory::Any).unwrap();
            run
        });
        runs.iter().for_each(|run| pages.free(run));
        pages.check();
        has_huge_pages().then_some((pages, runs))
    }

    /// Whether the memory of a block was moved there. Without huge pages, or before Linux 5.7, it
    /// is not.
    fn is_moved(block: &Extent) -> bool {
        let is_moved = block.mapping() == Mapping::Several;
        assert_eq!(is_moved, can_shift());
        if !is_moved {
            not_tried("long blocks of moved memory", "this system does not move it so");
        }
        is_moved
    }

    #[test]
    fn a_long_block_is_made_of_the_memory_of_unused_runs() {
        let Some((mut pages, [a, b])) = heap(&Mmap, [3, 2]) else { return };
        let (a, b) = ((a.base(), a.end()), (b.base(), b.end()));
        let taken = pages.counts().taken;
        let block = pages.allocate(5 * CHUNK, PAGE, Memory::Filled).unwrap();
        if !is_moved(block) {
            return;
        }
        assert!((0..5).all(|chunk| first_byte(block, chunk) == BYTE));
        assert!(!block.zeroed.get() && block.base() != a.0);
        let counts = pages.counts();
        assert_eq!((counts.dirty, counts.taken), (0, taken + 1), "nothing is new");
        pages.check();
        // The unused runs keep their addresses, and a run there is new and ordinary memory.
        let again = pages.allocate(3 * CHUNK, PAGE, Memory::Any).unwrap();
        assert!((a.0..a.1).contains(&again.base()) || (b.0..b.1).contains(&again.base()));
        assert!(
            again.zeroed.get() && first_byte(again, 0) == 0 && again.mapping() == Mapping::Ordinary
        );
        // Once purged, the block is an ordinary mapping.
        pages.free(block);
        while let Some(batch) = pages.take_batch(0, 0) {
            batch.purge();
            assert!(pages.file_batch(batch));
        }
        assert!(
            pages
                .oldest(ExtentState::Retained)
                .is_some_and(|run| run.mapping() == Mapping::Ordinary)
        );
        pages.check();
    }

    #[test]
    fn what_unused_runs_do_not_reach_is_new() {
        let Some((mut pages, _)) = heap(&Mmap, [2, 2]) else { return };
        let block = pages.allocate(5 * CHUNK + CHUNK / 2, PAGE, Memory::Filled).unwrap();
        if !is_moved(block) {
            return;
        }
        let filled = (0..5).filter(|chunk| first_byte(block, *chunk) == BYTE).count();
        assert_eq!((block.pages(), filled), (5 * CHUNK + CHUNK / 2, 4));
        assert_eq!(pages.counts().dirty, CHUNK / 2, "the rest of the last huge page");
        pages.check();
        // Short blocks, zeroed ones and those for which one run is long enough are not made so.
        pages.free(block);
        let short = pages.allocate(CHUNK + 1, PAGE, Memory::Filled).unwrap();
        assert_eq!(short.base(), block.base());
    }

    #[test]
    fn a_system_that_refuses_changes_nothing_but_where_the_memory_comes_from() {
        for period in 1..6 {
            let failing = keep(Box::new(Failing::new(Mmap)));
            let Some((mut pages, _)) = heap(failing, [3, 2]) else { return };
            failing.fail_every(period, Refused::All);
            let block = pages.allocate(5 * CHUNK, PAGE, Memory::Filled);
            failing.fail_every(0, Refused::All);
            pages.check();
            if let Some(block) = block {
                assert_eq!(block.pages(), 5 * CHUNK);
                // SAFETY: the test owns the run.
                unsafe { block.base_ptr().write_bytes(1, block.bytes()) };
                pages.free(block);
            }
            pages.check();
        }
    }

    #[test]
    fn addresses_that_somebody_else_took_are_struck_off() {
        let failing = keep(Box::new(Failing::new(Mmap)));
        let Some((mut pages, _)) = heap(failing, [3, 2]) else { return };
        let mapped = pages.counts().mapped;
        failing.lose_next();
        // One huge page was lost, so the block is new memory. The pages behind the lost one are
        // used by the next block.
        let block = pages.allocate(5 * CHUNK, PAGE, Memory::Filled).unwrap();
        assert_eq!((block.pages(), block.mapping()), (5 * CHUNK, Mapping::Ordinary));
        assert_eq!((pages.counts().mapped, pages.counts().abandoned), (mapped - CHUNK, CHUNK));
        pages.check();
        let next = pages.allocate(4 * CHUNK, PAGE, Memory::Filled).unwrap();
        assert_eq!((next.pages(), next.mapping()), (4 * CHUNK, Mapping::Huge));
        pages.check();
    }
}
