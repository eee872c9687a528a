//! Dense chunks: huge pages under a heap that has grown large.
//!
//! ```text
//!   retained ──a whole chunk──▶ advised ──▶ active runs, and dirty ones from the rest
//!       ▲                          │
//!       │        part of it is purged: the advice is taken back (broken), small pages from then on
//!       └──── all of it is purged: an ordinary mapping again
//! ```
//! Once all arenas together are large enough for the rest of a chunk
//! ([`backing`](super::huge_page_policy::backing)), an arena takes new memory by whole chunks. A
//! chunk is 2 MiB that the system is asked to back by one huge page before it is touched, so one
//! fault brings in what 512 would. Only runs that will be filled are taken so
//! ([`crate::back::page_allocator::Memory::Filled`]): large blocks where such blocks are filled
//! ([`super::evidence`]), slabs of a class of which a thread has filled many, and other slabs as
//! far as [`super::untouched`] allows. The chunk has
//! memory from its first touch on, so its rest counts as dirty. The rest is kept for more
//! such runs. When none was taken for a step of decay, it is open to all requests.
//!
//! A hole costs the huge page, so runs of at most a tenth of one are purged after all others.
//! Chunks may be mappings of their own, so their runs are marked ([`Mapping::Chunks`]) and not
//! moved, and runs that are merged with them get the mark too. All runs of an advised chunk have
//! the mark, but a run with the mark may lie elsewhere. A long block that is made of such addresses
//! becomes one mapping again ([`huge::back`](crate::back::runs::huge::back)). See
//! [`crate::back::runs::chunk_notes`].

use super::evidence::Evidence;
use super::huge_page_policy::Heap;
use super::memory::Request;
use super::untouched::{self, Claim};
use crate::back::aging::limit::Bounds;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::runs::chunk_notes::{self, CHUNK};
use crate::back::runs::extent_cache::Filed;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::InHand;
use crate::back::system::mapping::Mapping;
use crate::back::system::thp::HUGE;
use crate::ground::size_class::page_class_floor;
use core::sync::atomic::Ordering::Relaxed;

/// The unused rest of the chunk that an arena took last.
pub(in crate::back) struct Rest {
    run: Option<&'static Extent>,
    /// Whether the rest was used since the last step of decay.
    is_used: bool,
    /// Whether all requests may take from the rest, because none did for a step of decay.
    is_open: bool,
    /// Whether only the size of this arena counts, because the program made it and it has bounds.
    is_alone: bool,
    /// Whether runs that are expected to be filled are.
    evidence: Evidence,
}

impl Rest {
    pub(in crate::back) const NONE: Rest = Rest {
        run: None,
        is_used: false,
        is_open: false,
        is_alone: false,
        evidence: Evidence::NONE,
    };

    /// Forgets what the arena knew, for its next use.
    pub(in crate::back) fn begin_anew(&mut self) {
        self.evidence = Evidence::NONE;
    }

    fn set(&mut self, run: InHand) {
        untouched::LEFT.fetch_add(run.pages(), Relaxed);
        (self.run, self.is_used) = (Some(run.set_aside()), true);
    }

    fn take_if(&mut self, fits: impl Fn(&Extent) -> bool) -> Option<InHand> {
        let run = self.run.take_if(|run| fits(run))?;
        untouched::LEFT.fetch_sub(run.pages(), Relaxed);
        Some(InHand::hold(run, ExtentState::Dirty))
    }

    /// What the arena knows of its runs that are expected to be filled.
    pub(in crate::back) fn evidence(&mut self) -> &mut Evidence {
        &mut self.evidence
    }

    /// The pages of the rest.
    pub(in crate::back) fn pages(&self) -> usize {
        self.run.map_or(0, Extent::pages)
    }

    /// Adds the rest to the `filed` runs of a size class in a state, if it is one of them.
    pub(in crate::back) fn filed(&self, state: ExtentState, class: usize, filed: Filed) -> Filed {
        let pages = self.pages();
        if state != ExtentState::Dirty || pages == 0 || page_class_floor(pages) != class {
            return filed;
        }
        Filed { runs: filed.runs + 1, pages: filed.pages + pages }
    }

    /// Lets the arena take chunks by its own size alone from now on.
    pub(in crate::back) fn set_alone(&mut self) {
        self.is_alone = true;
    }

    /// The heap whose size counts for a request of this arena with `active` pages in use, and the
    /// claim on what a chunk for it would leave.
    pub(in crate::back) fn heap(&self, active: usize, request: Request) -> (Option<Claim>, Heap) {
        if self.is_alone {
            return (None, Heap { used: active, waiting: 0 });
        }
        let leaves = request.pages.next_multiple_of(CHUNK) - request.pages;
        let (claim, heap) = Claim::new(leaves);
        (Some(claim), heap)
    }

    /// Takes a run out of a new chunk. Returns `None` if the system or the bounds refuse it.
    pub(in crate::back) fn take_chunk(
        &mut self,
        runs: &mut FreeRuns,
        bounds: &Bounds,
        request: Request,
    ) -> Option<InHand> {
        let Request { pages, align, .. } = request;
        // Addresses in broken chunks are used up first.
        let is_dense = |run: &Extent| run.mapping() == Mapping::Chunks;
        if let Some(between) = runs.fit_retained(pages, align, CHUNK - 1, is_dense) {
            let between = runs.remove(between);
            return runs.cut(between, pages, align);
        }
        if !chunk_notes::may_advise_more() {
            return None;
        }
        let whole = pages.next_multiple_of(CHUNK);
        // The bounds have admitted the pages of the request.
        if !bounds.has_room_for(runs.held() + pages, whole - pages) {
            return None;
        }
        let chunk = runs.take_addresses(whole, align.max(HUGE))?;
        if !chunk_notes::advise(runs.provider(), &chunk) {
            runs.file(chunk, ExtentState::Retained);
            return None;
        }
        self.file(runs);
        self.is_open = false;
        self.cut(runs, chunk, pages, align)
    }

    /// Takes a run out of the rest of the last chunk, whether or not the rest is open to all.
    pub(in crate::back) fn take(
        &mut self,
        runs: &mut FreeRuns,
        pages: usize,
        align: usize,
    ) -> Option<InHand> {
        let rest = self.take_if(|rest| rest.fit(pages, align).is_some())?;
        self.cut(runs, rest, pages, align)
    }

    /// Takes a run out of the rest of the last chunk, if the rest is open to all.
    pub(in crate::back) fn take_if_open(
        &mut self,
        runs: &mut FreeRuns,
        pages: usize,
        align: usize,
    ) -> Option<InHand> {
        if self.is_open { self.take(runs, pages, align) } else { None }
    }

    /// Cuts a run off the front of what is to be the rest. If it does not fit or there are no
    /// records, files all of it and returns `None`.
    fn cut(
        &mut self,
        runs: &mut FreeRuns,
        rest: InHand,
        pages: usize,
        align: usize,
    ) -> Option<InHand> {
        let (run, behind) = runs.cut_front(rest, pages, align)?;
        if let Some(behind) = behind {
            self.set(behind);
        }
        Some(run)
    }

    /// Files the rest of the last chunk as an unused run.
    pub(in crate::back) fn file(&mut self, runs: &mut FreeRuns) {
        if let Some(rest) = self.take_if(|_| true) {
            runs.file(rest, ExtentState::Dirty);
        }
    }

    /// Opens the rest to all requests if nothing was taken of it since the last call.
    pub(in crate::back) fn age(&mut self) {
        self.is_open |= !core::mem::take(&mut self.is_used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::aging::refusals;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::placement::huge_page_policy::LARGE_HEAP;
    use crate::back::runs::chunk_notes::{is_advised, is_in_huge_pages, is_whole_chunks};
    use crate::back::runs::huge;
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp;
    use crate::back::system::thp::tests::has_huge_pages;
    use crate::ground::units::{LG_PAGE, PAGE};

    const RUN: usize = 16;

    /// A large heap, and a run in its first chunk. `None` where the system knows no huge
    /// pages.
    fn large_heap() -> Option<(PageAllocator, &'static Extent)> {
        let mut pages = PageAllocator::for_test(&Mmap);
        pages.allocate(LARGE_HEAP, PAGE, Memory::Any).unwrap();
        let run = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert_eq!(run.mapping() == Mapping::Chunks, thp::backs_chunks());
        has_huge_pages().then_some((pages, run))
    }

    fn purge(pages: &mut PageAllocator, keep: usize) {
        while let Some(batch) = pages.take_batch(keep, 0) {
            batch.purge();
            assert!(pages.file_batch(batch));
        }
        pages.check();
    }

    #[test]
    fn a_small_arena_beside_large_ones_takes_chunks_unless_it_is_a_program_s_own() {
        let mut large = PageAllocator::for_test(&Mmap);
        large.allocate(100 * LARGE_HEAP, PAGE, Memory::Any).unwrap();
        let mut small = PageAllocator::for_test(&Mmap);
        assert_eq!(
            small.allocate(CHUNK - RUN, PAGE, Memory::Filled).unwrap().mapping(),
            Mapping::Ordinary
        );
        let mut small = PageAllocator::beside_others(&Mmap);
        let run = small.allocate(CHUNK - RUN, PAGE, Memory::Filled).unwrap();
        assert_eq!(run.mapping() == Mapping::Chunks, thp::backs_chunks());
        small.check();
    }

    #[test]
    fn only_large_heaps_grow_by_chunks_and_only_for_what_is_filled() {
        let mut pages = PageAllocator::for_test(&Mmap);
        assert_eq!(pages.allocate(RUN, PAGE, Memory::Filled).unwrap().mapping(), Mapping::Ordinary);
        let Some((mut pages, run)) = large_heap() else { return };
        assert!(is_in_huge_pages(run) && run.base().is_multiple_of(HUGE) && run.zeroed.get());
        // The rest counts as unused memory, and the next run that will be filled comes from it.
        assert_eq!(pages.counts().dirty, CHUNK - RUN);
        assert_eq!(pages.allocate(RUN, PAGE, Memory::Any).unwrap().mapping(), Mapping::Ordinary);
        assert_eq!(pages.allocate(RUN, PAGE, Memory::Resident).map(Extent::base), None);
        let next = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert_eq!(next.base(), run.end());
        // This run is too long for the rest, which becomes an unused run.
        let long = pages.allocate(CHUNK, PAGE, Memory::Filled).unwrap();
        assert!(is_in_huge_pages(long) && is_whole_chunks(long));
        assert_eq!(pages.allocate(RUN, PAGE, Memory::Any).unwrap().base(), next.end());
        pages.check();
    }

    #[test]
    fn a_bound_that_a_chunk_would_go_beyond_leaves_small_pages() {
        let Some((mut pages, first)) = large_heap() else { return };
        let rest = pages.rest_pages();
        let held = pages.held();
        pages.bounds().set_own((held + CHUNK - 1) << LG_PAGE);
        // The rest is within the bound. One more chunk is not, but one more run is.
        let _rest = pages.allocate(rest, PAGE, Memory::Filled).unwrap();
        let refused = refusals::count();
        assert_eq!(pages.allocate(RUN, PAGE, Memory::Filled).unwrap().mapping(), Mapping::Ordinary);
        assert_eq!(refusals::take_since(refused), None, "nothing was refused");
        pages.bounds().set_own(0);
        let next = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert!(is_in_huge_pages(next) && next.base() != first.end());
        pages.check();
    }

    #[test]
    fn what_lies_in_broken_chunks_is_used_up_before_new_ones_and_nothing_else() {
        let Some((mut pages, first)) = large_heap() else { return };
        // An ordinary run, with addresses without memory behind it.
        let small = pages.allocate(RUN, PAGE, Memory::Any).unwrap();
        let (base, rest) = (first.base(), pages.rest_pages());
        let _rest = pages.allocate(rest, PAGE, Memory::Filled).unwrap();
        let chunk = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert!(is_in_huge_pages(chunk) && chunk.base() != small.end());
        let rest = pages.rest_pages();
        let _rest = pages.allocate(rest, PAGE, Memory::Filled).unwrap();
        pages.free(first);
        purge(&mut pages, 0);
        let again = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert!(again.base() == base && !is_in_huge_pages(again));
    }

    #[test]
    fn a_rest_that_nobody_takes_from_is_anybodys_and_ages() {
        let Some((mut pages, run)) = large_heap() else { return };
        pages.age_rest();
        let resident = |pages: &mut PageAllocator| pages.allocate(RUN, PAGE, Memory::Resident);
        assert_eq!(resident(&mut pages).map(Extent::base), None, "it was used since");
        pages.age_rest();
        let next = resident(&mut pages).unwrap();
        assert!(next.base() == run.end() && next.zeroed.get());
        assert_eq!(pages.rest_pages(), CHUNK - 2 * RUN, "it still counts as left");
        assert_eq!(pages.counts().dirty, CHUNK - 2 * RUN);
        // The rest of the next chunk is not open.
        let long = pages.allocate(CHUNK - 2 * RUN, PAGE, Memory::Filled).unwrap();
        let _long = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        assert_eq!(resident(&mut pages).map(Extent::base), None);
        pages.free(long);
        purge(&mut pages, 0);
        assert_eq!(pages.counts().dirty, 0);
        assert!(run.mapping() == Mapping::Chunks && !is_in_huge_pages(run), "broken");
    }

    #[test]
    fn chunks_and_what_lies_beside_them_are_one_when_all_is_purged() {
        let Some((mut pages, _run)) = large_heap() else { return };
        let region = pages.allocate(8 * CHUNK, HUGE, Memory::Any).unwrap();
        let range = region.base()..region.end();
        pages.free(region);
        purge(&mut pages, 0);
        // Breaks a chunk in the range, by purging one half of it before the other.
        let half = loop {
            let half = pages.allocate(CHUNK / 2, PAGE, Memory::Filled).unwrap();
            if range.contains(&half.base()) {
                break half;
            }
        };
        let other = pages.allocate(CHUNK / 2, PAGE, Memory::Filled).unwrap();
        assert_eq!((half.mapping(), other.base()), (Mapping::Chunks, half.end()));
        for run in [half, other] {
            pages.free(run);
            purge(&mut pages, 0);
        }
        let long = pages.allocate(8 * CHUNK, HUGE, Memory::Filled).unwrap();
        assert!(
            long.base() == range.start && long.mapping() == Mapping::Chunks && long.zeroed.get()
        );
        // Makes one mapping of it, so that it may be moved again.
        huge::back(&Mmap, long, long.bytes());
        assert!(long.mapping().is_own() && long.mapping() != Mapping::Several);
        assert!(pages.begin_move(long, 9 * CHUNK, PAGE).is_some());
    }

    #[test]
    fn an_arena_that_ends_takes_its_chunks_along() {
        let Some((mut pages, run)) = large_heap() else { return };
        let base = run.base();
        pages.free(run);
        let mut taken = 0;
        while let Some(run) = pages.take_unused() {
            taken += run.pages();
            assert!(crate::back::release::release(&Mmap, run.run()));
            pages.hooks().strike_off(run);
        }
        assert!(taken >= CHUNK && !is_advised(base));
        pages.check();
    }

    #[test]
    fn what_is_purged_whole_is_ordinary_memory_and_may_be_advised_again() {
        let Some((mut pages, run)) = large_heap() else { return };
        let base = run.base();
        pages.free(run);
        purge(&mut pages, 0);
        assert!(!is_advised(base));
        let again = pages.allocate(CHUNK, PAGE, Memory::Filled).unwrap();
        assert!(again.base() == base && again.zeroed.get() && is_in_huge_pages(again));
    }

    #[test]
    fn a_part_of_a_chunk_is_purged_after_what_costs_no_huge_page() {
        let Some((mut pages, first)) = large_heap() else { return };
        let _between = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        let plain = pages.allocate(RUN, PAGE, Memory::Any).unwrap();
        let _after = pages.allocate(RUN, PAGE, Memory::Any).unwrap();
        pages.free(first);
        pages.free(plain);
        let rest = pages.rest_pages();
        purge(&mut pages, rest + RUN);
        assert!(first.state.get() == ExtentState::Dirty && is_in_huge_pages(first));
        purge(&mut pages, 0);
        assert!(first.state.get() == ExtentState::Retained && !is_in_huge_pages(first));
    }
}
