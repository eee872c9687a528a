//! The free runs of one arena at low addresses: see [`crate::ground::low`].
//!
//! They are made when the arena gets its first sample. Beside a large heap they are parts of
//! chunks, so that a sampled block is written to as fast as others are. A run that is freed keeps
//! its memory until the arena's decay, as others do: a program that frees and allocates in turns
//! needs it again. It is purged under the arena's lock. An arena that is destroyed keeps its low
//! addresses for its next life.

use super::chunk_notes::{CHUNK, LowChunk, is_broken};
use super::contents;
use super::free_runs::FreeRuns;
use super::in_hand::InHand;
use crate::back::map::extent::ExtentState;
use crate::back::metadata;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::Purged;
use crate::back::system::provider::low_pages::LOW_PAGES;
use crate::back::system::thp::HUGE;
use crate::ground::in_place::Place;

/// The free runs at low addresses, if the arena has any.
pub(in crate::back) struct LowRuns {
    arena: u32,
    runs: Option<&'static mut FreeRuns>,
}

impl LowRuns {
    /// Creates the low runs of an arena, of which there are none yet.
    pub(in crate::back) const fn new(arena: u32) -> LowRuns {
        LowRuns { arena, runs: None }
    }

    /// The free runs, made now if the arena has none. `None`: there is no memory.
    fn made(&mut self) -> Option<&mut FreeRuns> {
        if self.runs.is_none() {
            self.runs = make(self.arena);
        }
        self.runs.as_deref_mut()
    }

    /// Takes a run of `pages` pages at a multiple of `align`. If all arenas have less than
    /// `most_chunks` chunks at low addresses, it may be a part of a new one.
    pub(in crate::back) fn take(
        &mut self,
        pages: usize,
        align: usize,
        most_chunks: usize,
    ) -> Option<InHand> {
        let runs = self.made()?;
        runs.keep_records()?;
        let run = runs
            .take(ExtentState::Dirty, pages, align, usize::MAX)
            .or_else(|| take_of_chunk(runs, pages, align, most_chunks))
            .or_else(|| runs.take_addresses(pages, align))?;
        run.set_mapping(Mapping::Low);
        Some(run)
    }

    /// Files a run that is not used any more.
    pub(in crate::back) fn put(&mut self, run: InHand) {
        let Some(runs) = self.runs.as_deref_mut() else {
            debug_assert!(false, "a low run of an arena without low runs");
            let _lost = run.set_aside();
            return;
        };
        // As the free runs beside it, with which it is merged.
        run.set_mapping(Mapping::Ordinary);
        runs.file(run, ExtentState::Dirty);
    }

    /// Gives the memory of unused runs back, the oldest first, until at most `most` unused pages
    /// have some, with the `others` of the arena. Returns how many of the others may stay.
    pub(in crate::back) fn purge(&mut self, others: usize, most: usize) -> usize {
        while self.dirty() > 0 && others + self.dirty() > most && self.purge_oldest() {}
        most.saturating_sub(self.dirty())
    }

    /// Gives the memory of the oldest unused run back. Returns `false` if the system refuses.
    fn purge_oldest(&mut self) -> bool {
        let Some(runs) = self.runs.as_deref_mut() else { return false };
        let Some(oldest) = runs.oldest(ExtentState::Dirty) else { return false };
        let run = runs.remove(oldest);
        run.set_mapping(Mapping::Low);
        let purged = contents::purge(&LOW_PAGES, run.run());
        run.set_mapping(Mapping::Ordinary);
        run.zeroed.set(purged == Purged::Zeroed);
        let is_refused = purged == Purged::Refused;
        runs.file(run, if is_refused { ExtentState::Dirty } else { ExtentState::Retained });
        !is_refused
    }

    /// The number of unused pages that have memory.
    pub(in crate::back) fn dirty(&self) -> usize {
        self.runs().map_or(0, |runs| runs.pages(ExtentState::Dirty))
    }

    /// The free runs, if there are any.
    pub(in crate::back) fn runs(&self) -> Option<&FreeRuns> {
        self.runs.as_deref()
    }

    /// The number of pages of the arena at low addresses.
    pub(in crate::back) fn mapped(&self) -> usize {
        self.runs().map_or(0, FreeRuns::mapped)
    }

    /// The number of pages that have memory.
    pub(in crate::back) fn held(&self) -> usize {
        self.runs().map_or(0, FreeRuns::held)
    }
}

/// Takes a run out of a new chunk, whose rest then is unused memory.
fn take_of_chunk(
    runs: &mut FreeRuns,
    pages: usize,
    align: usize,
    most_chunks: usize,
) -> Option<InHand> {
    // Addresses in broken chunks are used up first, but not those beside which none was made.
    if let Some(between) = runs.take(ExtentState::Retained, pages, align, CHUNK - 1) {
        if is_broken(between.base()) {
            return Some(between);
        }
        runs.file(between, ExtentState::Retained);
    }
    let one = LowChunk::one_of(most_chunks)?;
    let chunk = runs.take_addresses(CHUNK, HUGE)?;
    let is_advised = one.advise(runs.provider(), &chunk);
    chunk.set_mapping(Mapping::Ordinary);
    if !is_advised {
        runs.file(chunk, ExtentState::Retained);
        return None;
    }
    let (run, rest) = runs.cut_front(chunk, pages, align)?;
    rest.into_iter().for_each(|rest| runs.file(rest, ExtentState::Dirty));
    Some(run)
}

#[cold]
#[inline(never)]
fn make(arena: u32) -> Option<&'static mut FreeRuns> {
    let mut memory =
        metadata::allocate(size_of::<FreeRuns>(), align_of::<FreeRuns>())?.cast::<FreeRuns>();
    // SAFETY: fresh memory of the right size and alignment.
    FreeRuns::begin_at(unsafe { Place::new(memory) }, arena, &LOW_PAGES);
    // SAFETY: just written, never unmapped, and reached through the result alone.
    Some(unsafe { memory.as_mut() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::runs::chunk_notes::is_in_huge_pages;
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp;
    use crate::ground::low;
    use crate::ground::units::{LG_PAGE, PAGE};

    #[test]
    fn low_runs_are_cut_from_one_reservation_and_read_zero_again() {
        let zone = low::tests::open();
        let mut low = LowRuns::new(0);
        assert!(low.runs().is_none() && low.held() == 0);
        let [one, two] = [(); 2].map(|()| low.take(16, PAGE, 0).expect("low addresses"));
        let runs = [one, two].map(|run| run.release(ExtentState::Active));
        for run in runs {
            assert!(run.is_low() && zone.contains(&run.base()) && run.end() <= zone.end);
            // SAFETY: a run in use, of this test.
            unsafe { run.base_ptr().write_bytes(1, run.bytes()) };
        }
        let mapped = low.runs().expect("runs").mapped();
        assert_eq!(low.held(), 32);
        for run in runs {
            low.put(InHand::hold(run, ExtentState::Retained));
        }
        assert_eq!((low.dirty(), low.held()), (32, 32), "they keep their memory");
        assert_eq!((low.purge(8, 50), low.dirty()), (18, 32));
        assert_eq!((low.purge(8, 39), low.dirty()), (39, 0));
        let retained = low.runs().expect("runs").pages(ExtentState::Retained);
        assert_eq!((retained, low.held()), (mapped, 0), "merged and purged");
        let again = low.take(16, PAGE, 0).expect("low addresses").release(ExtentState::Active);
        assert_eq!(low.runs().expect("runs").mapped(), mapped);
        // SAFETY: a run in use, of this test.
        assert_eq!(unsafe { again.base_ptr().read() }, 0);
        low.put(InHand::hold(again, ExtentState::Retained));
    }

    #[test]
    fn unused_pages_at_low_addresses_have_memory_until_pages_have_to_go() {
        low::tests::open();
        let mut pages = PageAllocator::for_test(&Mmap);
        let unused = |pages: &PageAllocator| (pages.counts().dirty, pages.held());
        for _ in 0..2 {
            let runs =
                [1, 16].map(|n| pages.allocate(n, PAGE, Memory::Low).expect("low addresses"));
            assert_eq!(unused(&pages), (0, 17));
            runs.into_iter().for_each(|run| pages.free(run));
            purge(&mut pages, 17);
            assert_eq!(unused(&pages), (17, 17));
        }
        let may_stay = [1 << 20, 1 << 30].map(|now| pages.advance(now).0);
        assert_eq!(may_stay[1], 0, "they age: {may_stay:?}");
        let other = pages.allocate(8, PAGE, Memory::Any).expect("memory");
        pages.free(other);
        let ordinary = unused(&pages).0 - 17;
        purge(&mut pages, ordinary);
        assert_eq!(unused(&pages), (ordinary, ordinary), "the low ones went first");
        pages.check();
    }

    #[test]
    fn beside_a_large_heap_samples_lie_in_chunks_until_their_memory_goes_back() {
        const RUN: usize = 8;
        low::tests::open();
        let mut pages = PageAllocator::for_test(&Mmap);
        let _heap = pages.allocate(100 * 32 * CHUNK, PAGE, Memory::Any).expect("addresses");
        let first = pages.allocate(RUN, PAGE, Memory::Low).expect("low addresses");
        assert_eq!(is_in_huge_pages(first), thp::backs_chunks());
        if !thp::backs_chunks() {
            return;
        }
        assert!(first.is_low() && first.base().is_multiple_of(HUGE));
        assert_eq!(pages.counts().dirty, CHUNK - RUN, "the rest is unused memory");
        let next = pages.allocate(RUN, PAGE, Memory::Low).expect("low addresses");
        assert!(next.base() == first.end() && is_in_huge_pages(next) && next.zeroed.get());
        purge(&mut pages, 0);
        assert!(!is_in_huge_pages(first) && pages.counts().dirty == 0, "broken");
        let between = pages.allocate(RUN, PAGE, Memory::Low).expect("low addresses");
        assert!(between.base() == next.end() && !is_in_huge_pages(between));
        [first, next, between].into_iter().for_each(|run| pages.free(run));
        purge(&mut pages, 0);
        let again = pages.allocate(RUN, PAGE, Memory::Low).expect("low addresses");
        assert!(again.base() == first.base() && is_in_huge_pages(again));
        // What the bounds of the arena leave is less than a chunk.
        pages.free(again);
        purge(&mut pages, 0);
        let held = pages.held();
        pages.bounds().set_own((held + CHUNK - 1) << LG_PAGE);
        let small = pages.allocate(RUN, PAGE, Memory::Low).expect("low addresses");
        assert!(!is_in_huge_pages(small) && pages.counts().dirty == 0);
        pages.check();
    }

    #[test]
    fn addresses_that_were_no_chunk_keep_no_sample_from_huge_pages() {
        low::tests::open();
        let mut pages = PageAllocator::for_test(&Mmap);
        let low = |pages: &mut PageAllocator| pages.allocate(8, PAGE, Memory::Low).expect("low");
        let first = low(&mut pages);
        assert!(!is_in_huge_pages(first), "the heap is small");
        let _heap = pages.allocate(100 * 32 * CHUNK, PAGE, Memory::Any).expect("addresses");
        let next = low(&mut pages);
        assert_eq!(is_in_huge_pages(next), thp::backs_chunks());
        assert_eq!(next.base() == first.end(), !thp::backs_chunks());
        pages.check();
    }

    fn purge(pages: &mut PageAllocator, dirty: usize) {
        while let Some(batch) = pages.take_batch(dirty, 0) {
            batch.purge();
            assert!(pages.file_batch(batch));
        }
    }
}
