//! Whether the program fills its blocks: what the pages of some runs tell.
//!
//! Large blocks, and blocks of slabs that hold two or four, are expected to be written whole. Then
//! a huge page under many of them costs one fault, not 512. But a program may touch a few pages of
//! each, as of buffers of connections and stacks of coroutines, and in huge pages the rest would
//! be memory too. Nothing shows that in huge pages. So an arena notes such runs that it made of
//! small pages, and asks the system how much of them has memory: before the first chunk, and, by
//! some runs that get small pages for this, each time that the heap has doubled. While less than
//! three quarters are touched, such runs get small pages, and it asks again as the heap grows.

use crate::back::system::page_provider::PageProvider;
use crate::ground::units::LG_PAGE;
use core::ptr::NonNull;

/// The runs that are noted, the last ones.
const NOTED: usize = 16;
/// Runs and pages that tell enough.
const ENOUGH_RUNS: usize = 4;
const ENOUGH_PAGES: usize = 128;
/// Pages of which two runs tell enough, because each page of them may cost a fault.
const MANY_PAGES: usize = 512;

/// What an arena knows of its runs that are expected to be filled.
pub(in crate::back) struct Evidence {
    /// The last runs in small pages: base and pages.
    noted: [(usize, usize); NOTED],
    /// How many were noted since the last look, and their pages.
    runs: usize,
    pages: usize,
    /// The pages of the heap from which on to look. 0: it was never asked.
    next: usize,
    /// What the last look said.
    are_filled: bool,
}

impl Evidence {
    pub(in crate::back) const NONE: Evidence =
        Evidence { noted: [(0, 0); NOTED], runs: 0, pages: 0, next: 0, are_filled: true };

    /// Notes a run in small pages that is expected to be filled.
    pub(in crate::back) fn note(&mut self, base: usize, pages: usize) {
        if let Some(place) = self.noted.get_mut(self.runs % NOTED) {
            *place = (base, pages);
        }
        self.runs += 1;
        self.pages = self.pages.saturating_add(pages);
    }

    /// Returns whether runs that are expected to be filled are filled, in a heap with `used` pages
    /// in use.
    pub(in crate::back) fn are_filled(&mut self, used: usize, provider: &dyn PageProvider) -> bool {
        if used < self.next {
            return self.are_filled;
        }
        if !self.is_enough() {
            // The first time nothing is known. Later this run gets small pages, and is noted.
            let is_first = self.next == 0;
            if is_first {
                self.next = used.saturating_mul(2);
            }
            return is_first;
        }
        self.are_filled = self.look(provider);
        let more = if self.are_filled { used } else { used / 8 };
        self.next = used.saturating_add(more.max(ENOUGH_PAGES));
        (self.runs, self.pages) = (0, 0);
        self.are_filled
    }

    /// Returns whether the runs that were noted since the last look tell enough.
    fn is_enough(&self) -> bool {
        (self.runs >= ENOUGH_RUNS && self.pages >= ENOUGH_PAGES)
            || (self.runs >= 2 && self.pages >= MANY_PAGES)
    }

    /// Asks how much of the noted runs has memory. The last quarter may not be written yet.
    fn look(&self, provider: &dyn PageProvider) -> bool {
        let noted = self.runs.min(NOTED);
        let skipped = noted.div_ceil(4);
        let (mut all, mut resident) = (0_usize, 0_usize);
        for back in skipped..noted {
            let at = (self.runs - 1 - back) % NOTED;
            let (base, pages) = self.noted.get(at).copied().unwrap_or_default();
            let start = NonNull::new(core::ptr::with_exposed_provenance_mut(base));
            let seen = start.and_then(|start| provider.resident(start, pages << LG_PAGE));
            if let Some(seen) = seen {
                all += pages;
                resident += seen.pages.min(pages);
            }
        }
        resident >= all - all / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::map::extent::Extent;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::placement::dense::Rest;
    use crate::back::placement::huge_page_policy::LARGE_HEAP;
    use crate::back::system::mapping::Mapping;
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp;
    use crate::ground::units::PAGE;

    const RUN: usize = 32;

    /// An arena with `runs` that are expected to be filled, in a heap that is nearly large. Of each
    /// page in `written` a byte is written.
    fn arena(runs: usize, written: usize) -> PageAllocator {
        let mut pages = PageAllocator::for_test(&Mmap);
        pages.allocate(LARGE_HEAP - runs * RUN, PAGE, Memory::Any).unwrap();
        for _ in 0..runs {
            let run = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
            assert_eq!(run.mapping(), Mapping::Ordinary);
            write(run, written);
        }
        pages
    }

    #[allow(unsafe_code, reason = "memory is written")]
    fn write(run: &Extent, pages: usize) {
        for page in 0..pages {
            // SAFETY: a page of the run, which belongs to the test.
            unsafe { run.base_ptr().wrapping_add(page * PAGE).write(1) };
        }
    }

    fn is_in_chunk(pages: &mut PageAllocator, written: usize) -> bool {
        let run = pages.allocate(RUN, PAGE, Memory::Filled).unwrap();
        write(run, written);
        run.mapping() == Mapping::Chunks
    }

    #[test]
    fn where_runs_are_filled_the_next_ones_lie_in_chunks() {
        for written in [RUN, RUN - RUN / 4] {
            assert_eq!(is_in_chunk(&mut arena(8, written), 0), thp::backs_chunks());
        }
    }

    #[test]
    fn where_runs_are_hardly_touched_they_get_small_pages_until_they_are_filled() {
        for written in [0, 1, RUN / 2] {
            let mut pages = arena(8, written);
            for _ in 0..LARGE_HEAP / RUN {
                assert!(!is_in_chunk(&mut pages, written), "{written}");
            }
            // Now they are filled.
            let chunks = (0..LARGE_HEAP / RUN).filter(|_| is_in_chunk(&mut pages, RUN)).count();
            assert_eq!(chunks > 0, thp::backs_chunks(), "{written}");
            pages.check();
        }
    }

    #[test]
    fn runs_that_are_hardly_touched_later_are_noticed_when_the_heap_has_doubled() {
        if !thp::backs_chunks() {
            return;
        }
        let mut pages = arena(8, RUN);
        let in_chunks = (0..4 * LARGE_HEAP / RUN).filter(|_| is_in_chunk(&mut pages, 1)).count();
        // Those up to the doubled heap, and the rest of the last chunk.
        assert!(in_chunks >= LARGE_HEAP / RUN - 8, "{in_chunks}");
        assert!(in_chunks <= LARGE_HEAP / RUN + 16, "{in_chunks}");
        pages.check();
    }

    #[test]
    fn runs_that_will_be_filled_for_another_reason_lie_in_chunks() {
        let mut pages = arena(8, 0);
        for memory in [Memory::Counted, Memory::Followed] {
            let run = pages.allocate(RUN, PAGE, memory).unwrap();
            assert_eq!(run.mapping() == Mapping::Chunks, thp::backs_chunks());
        }
    }

    #[test]
    fn without_evidence_runs_count_as_filled_until_the_heap_has_doubled() {
        let mut evidence = Evidence::NONE;
        assert!(evidence.are_filled(100, &Mmap) && evidence.are_filled(199, &Mmap));
        assert!(!evidence.are_filled(200, &Mmap), "these are looked at");
        // The system knows nothing of such addresses.
        (0..ENOUGH_RUNS).for_each(|at| evidence.note(at * PAGE, ENOUGH_PAGES));
        assert!(evidence.are_filled(200, &Mmap) && evidence.are_filled(399, &Mmap));
        assert!(!evidence.are_filled(400, &Mmap));
    }

    #[test]
    fn two_runs_are_enough_where_they_are_long() {
        for (noted, is_enough) in [(MANY_PAGES / 2, true), (MANY_PAGES / 2 - 1, false)] {
            let mut evidence = Evidence::NONE;
            assert!(evidence.are_filled(100, &Mmap));
            evidence.note(0, noted);
            assert!(!evidence.are_filled(200, &Mmap), "{noted}: one is not enough");
            evidence.note(PAGE, noted);
            assert_eq!(evidence.are_filled(200, &Mmap), is_enough, "{noted}");
        }
    }

    #[test]
    fn the_next_use_of_an_arena_begins_without_evidence() {
        let mut rest = Rest::NONE;
        assert!(rest.evidence().are_filled(100, &Mmap));
        assert!(!rest.evidence().are_filled(200, &Mmap), "these are looked at");
        rest.begin_anew();
        assert!(rest.evidence().are_filled(200, &Mmap), "nothing is known again");
    }
}
