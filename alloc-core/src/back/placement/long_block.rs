//! A long block in huge pages of its own, and its end if that does not fill the last of them.
//!
//! ```text
//!   │ huge page │ huge page │ huge page           │
//!   │ block                      │ rest: unused,  │
//!   │                            │ but has memory │
//! ```
//! The block begins at a huge page, because the ends that lie in no whole huge page are faulted in
//! page by page. A huge page is brought in only where the whole of it is advised. So a block whose
//! end fills enough of its last huge page takes all of that page, and the next request gets the
//! rest. Once the end is written, the rest has memory, so it counts as dirty from the start.

use super::memory::Request;
use crate::back::map::extent::ExtentState;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::huge;
use crate::back::runs::in_hand::InHand;
use crate::back::system::thp::HUGE;

/// Takes a run without memory for a long block, in which it takes `whole` pages. Returns `None` if
/// there are no addresses.
pub(in crate::back) fn take(runs: &mut FreeRuns, request: Request, whole: usize) -> Option<InHand> {
    let run = runs.take_addresses(whole, request.align.max(HUGE))?;
    if whole > request.pages {
        huge::back(runs.provider(), run.run(), run.bytes());
        leave_end(runs, &run, request.pages);
    }
    Some(run)
}

/// Cuts a run down to its first `pages` pages and files the rest.
pub(in crate::back) fn leave_end(runs: &mut FreeRuns, run: &InHand, pages: usize) {
    if let Some(rest) = runs.cut_off(run, pages) {
        let is_backed = rest.mapping().is_own();
        runs.file(rest, if is_backed { ExtentState::Dirty } else { ExtentState::Retained });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::placement::assembly::take_from_unused;
    use crate::back::runs::chunk_notes::CHUNK;
    use crate::back::system::mapping::Mapping;
    use crate::back::system::provider::mmap::Mmap;
    use crate::back::system::thp;
    use crate::back::system::thp::tests::has_huge_pages;
    use crate::ground::units::PAGE;

    #[test]
    fn a_long_block_that_fills_much_of_its_last_huge_page_takes_it_whole() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let long = 3 * CHUNK + CHUNK / 2;
        let block = pages.allocate(long, PAGE, Memory::Filled).unwrap();
        assert_eq!(block.pages(), long);
        let rest = if thp::backs_blocks() { CHUNK / 2 } else { 0 };
        assert_eq!(pages.counts().dirty, rest);
        pages.check();
        if !has_huge_pages() {
            return;
        }
        // The next request gets the rest, which reads zero.
        let next = pages.allocate(16, PAGE, Memory::Any).unwrap();
        assert_eq!((next.base(), next.zeroed.get()), (block.end(), true));
        pages.free(next);
        pages.free(block);
        assert_eq!(pages.oldest(ExtentState::Dirty).unwrap().pages(), 4 * CHUNK, "one run again");
        pages.check();
    }

    #[test]
    fn a_long_block_takes_no_more_than_the_bound_of_its_arena() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let long = 3 * CHUNK + CHUNK / 2;
        pages.bounds().set_own(long * PAGE);
        let block = pages.allocate(long, PAGE, Memory::Filled).unwrap();
        assert_eq!((block.pages(), pages.held()), (long, long));
        pages.check();
    }

    #[test]
    fn a_long_block_whose_request_ends_early_takes_small_pages_there() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let long = 2 * CHUNK + CHUNK / 2;
        let block = pages.allocate(long, PAGE, Memory::Begun).unwrap();
        assert_eq!((block.pages(), pages.counts().dirty), (long, 0));
        assert_eq!(block.mapping(), Mapping::Ordinary, "its caller asks for huge pages");
        assert!(block.base().is_multiple_of(HUGE) || !thp::backs_blocks());
        // A block made of an unused run leaves nothing behind either.
        let _behind = pages.allocate(1, PAGE, Memory::Any);
        huge::back(&Mmap, block, block.bytes());
        pages.free(block);
        let pages_wanted = 4 * CHUNK + CHUNK / 2;
        let request = Request { pages: pages_wanted, align: PAGE, memory: Memory::Begun };
        let (made, _) = take_from_unused(pages.runs(), request, pages_wanted).expect("a block");
        assert_eq!(made.set_aside().end() % HUGE, HUGE / 2);
    }

    #[test]
    fn others_take_what_they_need_and_no_more() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let others = [
            (CHUNK + CHUNK / 2, Memory::Filled),
            (2 * CHUNK + 1, Memory::Filled),
            (3 * CHUNK + 200, Memory::Any),
        ];
        for (long, memory) in others {
            let block = pages.allocate(long, PAGE, memory).unwrap();
            assert_eq!((block.pages(), pages.counts().dirty), (long, 0));
        }
    }
}
