//! The end of a long block that lies in no whole huge page of its own.
//!
//! ```text
//!   │ huge page │ huge page │ huge page           │
//!   │ block                      │ rest: unused,  │
//!   │                            │ but has memory │
//! ```
//! A huge page is brought in only where the whole of it is advised. So a block whose end fills more
//! of its last one than a [`WORTH_A_HUGE_PAGE`] takes all of that page, and what it does not need
//! of it goes to whoever asks next: once the end is written the rest has memory, so it counts as
//! dirty from the start.

use super::chunk_notes::CHUNK;
use super::extent::{Extent, ExtentState};
use super::huge;
use super::in_hand::InHand;
use super::page_allocator::PageAllocator;
use super::thp::{self, HUGE};
use crate::ground::units::{LG_PAGE, PAGE, round_down, round_up};

/// Pages of the last huge page that a block must fill: to fault in that many one by one takes
/// longer than to clear all of it, by half.
const WORTH_A_HUGE_PAGE: usize = CHUNK / 5;

/// The pages that a long block of so many takes.
pub(super) fn backed(pages: usize) -> usize {
    if pages % CHUNK >= WORTH_A_HUGE_PAGE { pages.next_multiple_of(CHUNK) } else { pages }
}

/// Whether a request of `size` bytes fills little of the huge page in which it ends.
pub(crate) fn ends_early(size: usize) -> bool {
    let end = round_up(size, PAGE);
    (1..WORTH_A_HUGE_PAGE << LG_PAGE).contains(&(end - round_down(end, HUGE)))
}

/// The bytes of a long block that huge pages are worth, its caller writing the first `size`: all of
/// it, but where these end with little of a huge page (the block is as long as its size class),
/// what is before that.
pub(crate) fn worth_huge_pages(block: &Extent, size: usize) -> usize {
    let end = round_up(block.base() + size.min(block.bytes()), PAGE);
    let last = round_down(end, HUGE);
    let is_shared = last > block.base() && last + HUGE <= block.end();
    if ends_early(end) && is_shared { last - block.base() } else { block.bytes() }
}

impl PageAllocator {
    /// A run without memory for a long block that takes all of its last huge page; huge pages are
    /// asked for. `None`: it is not such a block, or there are no addresses.
    pub(super) fn take_whole_huge(
        &mut self,
        pages: usize,
        align: usize,
        whole: usize,
    ) -> Option<InHand> {
        if pages << LG_PAGE < huge::SHORTEST || whole == pages || !thp::backs_blocks() {
            return None;
        }
        let run = self.take_addresses(whole, align.max(HUGE))?;
        huge::back(self.provider, run.run(), run.bytes());
        self.leave_end(&run, pages);
        Some(run)
    }

    /// Cuts a run down to its first `pages` pages and files the rest.
    pub(super) fn leave_end(&mut self, run: &InHand, pages: usize) {
        if run.pages() > pages
            && let Some(record) = self.spares.take()
        {
            let rest = run.split_off(pages, record);
            let is_backed = rest.mapping().is_own();
            let state = if is_backed { ExtentState::Dirty } else { ExtentState::Retained };
            self.file(rest, state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::mapping::Mapping;
    use crate::back::page_allocator::Memory;
    use crate::back::provider::mmap::Mmap;

    #[test]
    fn a_long_block_that_fills_much_of_its_last_huge_page_takes_it_whole() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let long = 3 * CHUNK + CHUNK / 2;
        let block = pages.allocate(long, PAGE, Memory::Filled).unwrap();
        assert_eq!(block.pages(), long);
        let rest = if thp::backs_blocks() { CHUNK / 2 } else { 0 };
        assert_eq!(pages.counts().dirty, rest);
        pages.check();
        if rest == 0 {
            return;
        }
        // Who asks next gets the rest, and it reads zero.
        let next = pages.allocate(16, PAGE, Memory::Any).unwrap();
        assert_eq!((next.base(), next.zeroed.get()), (block.end(), true));
        pages.free(next);
        pages.free(block);
        assert_eq!(pages.dirty.oldest().unwrap().pages(), 4 * CHUNK, "one run again");
        pages.check();
    }

    #[test]
    fn a_long_block_whose_request_ends_early_takes_small_pages_there() {
        assert!(ends_early(4 * HUGE + 1) && ends_early(100));
        assert!(!ends_early(4 * HUGE) && !ends_early(4 * HUGE + HUGE / 5) && !ends_early(0));
        let mut pages = PageAllocator::for_test(&Mmap);
        let long = 2 * CHUNK + CHUNK / 2;
        let block = pages.allocate(long, PAGE, Memory::Begun).unwrap();
        assert_eq!((block.pages(), pages.counts().dirty), (long, 0));
        assert_eq!(block.mapping(), Mapping::Ordinary, "its caller asks for huge pages");
        assert!(block.base().is_multiple_of(HUGE) || !thp::backs_blocks());
        // Made of an unused run, it leaves nothing behind either.
        let Some((made, _)) = ({
            let _behind = pages.allocate(1, PAGE, Memory::Any);
            huge::back(&Mmap, block, block.bytes());
            pages.free(block);
            pages.take_from_unused(4 * CHUNK + CHUNK / 2, PAGE, 4 * CHUNK + CHUNK / 2)
        }) else {
            return;
        };
        assert_eq!(made.set_aside().end() % HUGE, HUGE / 2);
    }

    #[test]
    fn the_room_behind_a_request_gets_no_huge_page_for_a_few_bytes_of_it() {
        let block = Extent::new(0);
        block.set_range(8 * HUGE, 5 * CHUNK);
        let worth = |size| worth_huge_pages(&block, size);
        let hardly = (WORTH_A_HUGE_PAGE - 1) << LG_PAGE;
        assert_eq!((worth(4 * HUGE + 1), worth(4 * HUGE + hardly)), (4 * HUGE, 4 * HUGE));
        assert_eq!((worth(3 * HUGE + 1), worth(5 * HUGE - 1)), (3 * HUGE, 5 * HUGE));
        assert_eq!((worth(4 * HUGE + hardly + 1), worth(4 * HUGE)), (5 * HUGE, 5 * HUGE));
        // One that ends there itself, and one that begins elsewhere.
        block.set_range(8 * HUGE, 4 * CHUNK + 1);
        assert_eq!(worth(4 * HUGE + 1), block.bytes());
        block.set_range(8 * HUGE + PAGE, 5 * CHUNK);
        assert_eq!((worth(4 * HUGE), worth(4 * HUGE - 1)), (4 * HUGE - PAGE, 4 * HUGE - PAGE));
    }

    #[test]
    fn others_take_what_they_need_and_no_more() {
        assert_eq!(backed(2 * CHUNK + WORTH_A_HUGE_PAGE), 3 * CHUNK);
        let hardly = 2 * CHUNK + WORTH_A_HUGE_PAGE - 1;
        assert_eq!((backed(hardly), backed(3 * CHUNK)), (hardly, 3 * CHUNK));
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
