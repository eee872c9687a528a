//! Purging: which runs are purged, and the system calls for that, outside all locks. A run in a
//! batch is in no list.

use super::aging::page_aging::Unused;
use super::aging::page_counts::{PurgeCounts, Purges};
use super::hooked::hook_calls;
use super::hooked::hooks::Hooks;
use super::map::extent::{Extent, ExtentState};
use super::map::page_map;
use super::runs::access::{self, may_be_gap};
use super::runs::chunk_notes;
use super::runs::free_runs::FreeRuns;
use super::runs::in_hand::InHand;
use super::runs::neighbours::{left_neighbour, right_neighbour};
use super::runs::reserved;
use super::system::mapping::Mapping;
use super::system::page_provider::{PageProvider, Purged};
use super::system::thp::{self, HUGE};
use crate::ground::options;
use crate::ground::os;
use crate::ground::probes;
use crate::ground::units::{LG_PAGE, PAGE, SLAB_BYTES, round_down, round_up};
use core::ptr::NonNull;

/// The most runs in a batch.
const BATCH: usize = 32;
/// The next run to purge is chosen among this many of the oldest.
const LOOKED_AT: usize = 32;
/// No part shorter than this many pages is cut off a run to be purged.
const PURGE_UNIT: usize = SLAB_BYTES / PAGE;

/// Runs on their way back to the system, chained by their `younger` links.
pub(crate) struct Batch {
    first: Option<&'static Extent>,
    /// The state of the runs before.
    from: ExtentState,
    /// Whether the system may take the memory later.
    lazily: bool,
    /// Whether the addresses are kept.
    retain: bool,
    /// Whether addresses are given back whose memory the system does not take, as locked memory.
    gives_locked: bool,
    /// Whether its one run waits, if it is closed, before its addresses are used again.
    waits: bool,
    provider: &'static dyn PageProvider,
    hooks: Option<&'static Hooks>,
}

impl Batch {
    /// Makes the system calls, outside all locks. The runs belong to the batch alone.
    pub(crate) fn purge(&self) {
        let mut next = self.first;
        while let Some(extent) = next {
            next = extent.younger.get();
            let Some(base) = NonNull::new(extent.base_ptr()) else { continue };
            probes::purged(extent.base(), extent.bytes());
            let (state, zeroed) = self.purge_one(extent, base);
            extent.zeroed.set(zeroed);
            extent.note.set_after_purge(state);
        }
    }

    fn purge_one(&self, extent: &'static Extent, base: NonNull<u8>) -> (ExtentState, bool) {
        if let Some(hooks) = self.hooks {
            return hook_calls::give_back(hooks, extent, self.from, self.lazily);
        }
        let size = extent.bytes();
        if !self.retain && !self.lazily && self.release(extent, base) {
            return (ExtentState::Gone, false);
        }
        if self.from == ExtentState::Retained {
            return (ExtentState::Retained, extent.zeroed.get());
        }
        let renew = match extent.mapping() {
            Mapping::Ordinary => false,
            Mapping::Chunks => chunk_notes::is_whole_chunks(extent),
            _ => true,
        };
        // SAFETY: the run is free, and its contents are not needed.
        if renew && unsafe { self.provider.renew(base, size) } {
            chunk_notes::forget_chunks(extent);
            thp::advise_new(self.provider, base, size);
            access::close_again(extent);
            return (ExtentState::Retained, true);
        }
        if extent.mapping() == Mapping::Chunks {
            chunk_notes::break_up(self.provider, extent.base(), size);
        }
        // SAFETY: the run lies in one reservation and is free, and its contents are not needed.
        if self.lazily && unsafe { self.provider.purge_lazily(base, size) } {
            return (ExtentState::Muzzy, false);
        }
        // SAFETY: the run lies in one reservation and is free, and its contents are not needed.
        match unsafe { self.provider.purge(base, size) } {
            Purged::Zeroed => (ExtentState::Retained, true),
            Purged::Undefined => (ExtentState::Retained, false),
            Purged::Refused if self.gives_locked && self.release(extent, base) => {
                (ExtentState::Gone, false)
            }
            Purged::Refused => (ExtentState::Dirty, false),
        }
    }

    /// Gives back the addresses of a run too. The run and the notes on its chunks leave the page
    /// map first, because another thread may be given the addresses at once.
    fn release(&self, extent: &'static Extent, base: NonNull<u8>) -> bool {
        if !reserved::may_release(extent.base(), extent.bytes()) {
            return false;
        }
        let mapping = extent.mapping();
        page_map::clear_ends(extent);
        chunk_notes::forget_lost_chunks(extent);
        // SAFETY: the run is free, and no other code uses it.
        let released = unsafe { self.provider.release(base, extent.bytes()) };
        if !released {
            if matches!(mapping, Mapping::Chunks | Mapping::Several) {
                // SAFETY: as above. What has no note has no advice.
                unsafe { self.provider.advise_huge(base, extent.bytes(), false) };
            }
            extent.set_mapping(mapping);
            page_map::set_ends(extent);
            reserved::note(extent.base(), extent.bytes());
        }
        released
    }
}

impl Batch {
    /// Takes a batch of the oldest free runs beyond as many pages as may stay. Returns `None` when
    /// all is done. With `lazily`, the system may take the memory of dirty pages later.
    pub(super) fn take(
        runs: &mut FreeRuns,
        hooks: Option<&'static Hooks>,
        keep: Unused,
        lazily: bool,
    ) -> Option<Batch> {
        let retained = if hooks.is_some() { usize::MAX } else { runs.source().kept() };
        let lists = [
            (ExtentState::Dirty, keep.dirty, lazily),
            (ExtentState::Muzzy, keep.muzzy, false),
            (ExtentState::Retained, retained, false),
        ];
        lists.into_iter().find_map(|(from, keep, lazily)| {
            let first = chain(runs, from, keep, hooks.is_some())?;
            Some(Batch::new(runs, Some(first), from, lazily, hooks))
        })
    }

    /// Makes a batch of one run, which is to be purged now.
    pub(super) fn of(runs: &mut FreeRuns, hooks: Option<&'static Hooks>, run: InHand) -> Batch {
        let run = with_gaps(runs, run);
        let run = runs.send_away(run);
        let first = Some(chained(run, None));
        Batch { waits: true, ..Batch::new(runs, first, ExtentState::Dirty, false, hooks) }
    }

    fn new(
        runs: &mut FreeRuns,
        first: Option<&'static Extent>,
        from: ExtentState,
        lazily: bool,
        hooks: Option<&'static Hooks>,
    ) -> Batch {
        let retain = options::current().retain && from != ExtentState::Retained;
        let gives_locked = hooks.is_none() && runs.source().kept() != usize::MAX;
        let provider = runs.provider();
        Batch { first, from, lazily, retain, gives_locked, waits: false, provider, hooks }
    }

    /// Files a purged batch. Returns `false` if the system refused all runs. Purging then stops.
    /// Refused runs are the youngest from now on, so those that are not tried yet come first.
    pub(super) fn file(self, runs: &mut FreeRuns, counts: &mut PurgeCounts) -> bool {
        let mut any = false;
        let mut next = self.first;
        let mut purged = Purges { passes: 1, ..Purges::default() };
        while let Some(extent) = next {
            next = extent.younger.take();
            let run = InHand::hold(extent, self.from);
            runs.note_back(&run);
            let state = run.note.after_purge();
            // The system would refuse such a run again.
            let refused = state == ExtentState::Dirty || state == self.from;
            any |= !refused;
            if !refused {
                purged.calls += 1;
                purged.pages += run.pages() as u64;
            }
            match state {
                ExtentState::Gone => runs.forget(run),
                ExtentState::Retained if self.waits => runs.wait(run),
                _ => runs.file(run, state),
            }
        }
        if let Some(counts) = counts.of(self.from) {
            counts.add(purged);
        }
        any
    }
}

fn chain(
    runs: &mut FreeRuns,
    from: ExtentState,
    keep: usize,
    is_hooked: bool,
) -> Option<&'static Extent> {
    let mut first: Option<&'static Extent> = None;
    for _ in 0..BATCH {
        let excess = runs.pages(from).saturating_sub(keep);
        if excess == 0 {
            break;
        }
        let Some(extent) = next_to_purge(runs, from) else { break };
        let run = runs.remove(extent);
        // Hooks are not asked whether it may be cut here.
        let run = if is_hooked { run } else { part_to_purge(runs, run, excess) };
        let run = runs.send_away(run);
        first = Some(chained(run, first));
    }
    first
}

/// Takes the part of a run that is purged if `excess` pages have to go. Lists the rest again.
fn part_to_purge(runs: &mut FreeRuns, run: InHand, excess: usize) -> InHand {
    let run = whole_chunks(runs, run);
    cut_excess(runs, run, excess)
}

/// The oldest run that is not worth its huge page, or the oldest run if all looked at are.
fn next_to_purge(runs: &FreeRuns, from: ExtentState) -> Option<&'static Extent> {
    let oldest = runs.oldest(from)?;
    let by_age = core::iter::successors(Some(oldest), |extent| extent.younger.get());
    let worth_less = by_age.take(LOOKED_AT).find(|extent| !chunk_notes::is_better_kept(extent));
    Some(worth_less.unwrap_or(oldest))
}

/// Takes the whole chunks, if any, of a run in chunks that is to be purged. Lists the rest again.
fn whole_chunks(runs: &mut FreeRuns, run: InHand) -> InHand {
    let (begin, end) = (round_up(run.base(), HUGE), round_down(run.end(), HUGE));
    if run.mapping() != Mapping::Chunks || begin >= end || runs.keep_records().is_none() {
        return run;
    }
    if let Some(tail) = runs.cut_off(&run, (end - run.base()) >> LG_PAGE) {
        runs.list_again(tail);
    }
    if begin > run.base()
        && let Some(inner) = runs.cut_off(&run, (begin - run.base()) >> LG_PAGE)
    {
        runs.list_again(run);
        return inner;
    }
    run
}

/// Cuts off the end of a run that is much longer than what has to go. The rest is listed again.
fn cut_excess(runs: &mut FreeRuns, run: InHand, excess: usize) -> InHand {
    let part = excess.next_multiple_of(PURGE_UNIT);
    // No page of the system is cut in two, and no huge page.
    let unit = if run.mapping() == Mapping::Ordinary { os::system_page() } else { HUGE };
    let cut = round_down(run.end().saturating_sub(part << LG_PAGE), unit);
    let part = run.end().saturating_sub(cut.max(run.base())) >> LG_PAGE;
    if part + PURGE_UNIT > run.pages() || runs.keep_records().is_none() {
        return run;
    }
    let Some(tail) = runs.cut_off(&run, run.pages() - part) else { return run };
    runs.list_again(run);
    tail
}

/// Adds the pages that a closed run had left free beside it, so that its addresses serve another
/// block of that length.
fn with_gaps(runs: &mut FreeRuns, run: InHand) -> InHand {
    let mut run = run;
    if !run.marks.is_closed() {
        return run;
    }
    if let Some(gap) = left_neighbour(&run, ExtentState::Dirty).filter(|gap| may_be_gap(gap)) {
        let gap = runs.remove(gap);
        runs.append(&gap, run);
        run = gap;
    }
    if let Some(gap) = right_neighbour(&run, ExtentState::Dirty).filter(|gap| may_be_gap(gap)) {
        let gap = runs.remove(gap);
        runs.append(&run, gap);
    }
    run
}

/// Puts a run at the front of a batch.
fn chained(run: InHand, next: Option<&'static Extent>) -> &'static Extent {
    let extent = run.set_aside();
    extent.younger.set(next);
    extent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::fixed::{Fixed, keep};
    use crate::back::system::provider::mmap::Mmap;

    /// The lengths of the runs of the first batch, where a run begins within a chunk and ends
    /// behind it.
    fn runs_of_a_batch(is_hooked: bool) -> Vec<usize> {
        let mut pages = PageAllocator::for_test(Fixed::leak(8 << 20));
        let run = pages.allocate(HUGE / PAGE + 32, HUGE, Memory::Any).unwrap();
        run.set_mapping(Mapping::Chunks);
        pages.free(run);
        if is_hooked {
            pages.hook(keep(Box::new(Hooks::new(0))));
        }
        let batch = pages.take_batch(0, 0).unwrap();
        core::iter::successors(batch.first, |run| run.younger.get()).map(Extent::pages).collect()
    }

    /// A hook may write to what it purges.
    #[test]
    fn what_a_hook_purged_is_not_known_to_be_zero() {
        let mut pages = PageAllocator::for_test(Fixed::leak(4 << 20));
        let run = pages.allocate(8, PAGE, Memory::Any).unwrap();
        run.note_wiped();
        pages.free(run);
        pages.hook(keep(Box::new(Hooks::new(0))));
        pages.aging().set_millis(false, 1000);
        let batch = pages.take_batch(0, usize::MAX).unwrap();
        let first = batch.first.unwrap();
        assert!(batch.lazily && first.marks.is_wiped());
        batch.purge();
        assert!(!first.marks.is_wiped());
        pages.file_batch(batch);
    }

    #[test]
    fn pages_whose_addresses_go_back_later_are_counted_once() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let run = pages.allocate(64, PAGE, Memory::Any).unwrap();
        pages.free(run);
        let mut purge = |kept| {
            pages.source().set_kept_for_now(kept);
            while let Some(batch) = pages.take_batch(0, 0) {
                batch.purge();
                assert!(pages.file_batch(batch));
            }
            let counts = pages.counts();
            (counts.purges.dirty.calls, counts.purges.dirty.pages, counts.mapped)
        };
        let (calls, purged, mapped) = purge(usize::MAX);
        assert!(calls == 1 && purged == 64 && mapped > 64);
        assert_eq!(purge(0), (1, 64, 0));
    }

    /// Hooks may read and write free runs, also those that were away when the arena got them.
    #[test]
    fn a_run_that_comes_back_to_an_arena_with_hooks_is_open() {
        for is_hooked in [false, true] {
            let mut pages = PageAllocator::for_test(Fixed::leak(4 << 20));
            let run = pages.allocate(8, PAGE, Memory::Any).unwrap();
            pages.free(run);
            let batch = pages.take_batch(0, 0).unwrap();
            let first = batch.first.unwrap();
            first.marks.set_closed(true);
            if is_hooked {
                pages.hook(keep(Box::new(Hooks::new(0))));
            }
            pages.file_batch(batch);
            assert_eq!(first.marks.is_closed(), !is_hooked);
        }
    }

    #[test]
    fn a_run_is_cut_at_its_chunks_but_not_where_hooks_would_have_to_allow_it() {
        let whole = HUGE / PAGE + 32;
        assert_eq!(runs_of_a_batch(false), [32, whole - 32]);
        assert_eq!(runs_of_a_batch(true), [whole]);
    }
}
