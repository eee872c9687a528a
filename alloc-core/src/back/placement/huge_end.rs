//! Whether a long block takes all of the huge page in which it ends.

use crate::back::map::extent::Extent;
use crate::back::runs::chunk_notes::CHUNK;
use crate::back::system::thp::HUGE;
use crate::ground::units::{LG_PAGE, PAGE, round_down, round_up};

/// Pages of its last huge page that a block must fill. To fault in that many one by one takes half
/// as long again as to clear all of the huge page.
const WORTH_A_HUGE_PAGE: usize = CHUNK / 5;

/// The pages that a long block of `pages` pages takes.
pub(in crate::back) fn backed(pages: usize) -> usize {
    if pages % CHUNK >= WORTH_A_HUGE_PAGE { pages.next_multiple_of(CHUNK) } else { pages }
}

/// Whether a request of `size` bytes fills little of the huge page in which it ends.
pub(crate) fn ends_early(size: usize) -> bool {
    let end = round_up(size, PAGE);
    (1..WORTH_A_HUGE_PAGE << LG_PAGE).contains(&(end - round_down(end, HUGE)))
}

/// The bytes of a long block under which huge pages are worth it, if its caller writes the first
/// `size`. That is all of the block. But if these bytes end early in a huge page inside it (the
/// block is as long as its size class), that is the part before that huge page.
pub(crate) fn worth_huge_pages(block: &Extent, size: usize) -> usize {
    let end = round_up(block.base() + size.min(block.bytes()), PAGE);
    let last = round_down(end, HUGE);
    let is_shared = last > block.base() && last + HUGE <= block.end();
    if ends_early(end) && is_shared { last - block.base() } else { block.bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_behind_a_request_gets_no_huge_page_for_a_few_bytes_of_it() {
        let block = Extent::new(0);
        block.set_range(8 * HUGE, 5 * CHUNK);
        let worth = |size| worth_huge_pages(&block, size);
        let hardly = (WORTH_A_HUGE_PAGE - 1) << LG_PAGE;
        assert_eq!((worth(4 * HUGE + 1), worth(4 * HUGE + hardly)), (4 * HUGE, 4 * HUGE));
        assert_eq!((worth(3 * HUGE + 1), worth(5 * HUGE - 1)), (3 * HUGE, 5 * HUGE));
        assert_eq!((worth(4 * HUGE + hardly + 1), worth(4 * HUGE)), (5 * HUGE, 5 * HUGE));
        // A block that ends in that huge page, and one that begins inside a huge page.
        block.set_range(8 * HUGE, 4 * CHUNK + 1);
        assert_eq!(worth(4 * HUGE + 1), block.bytes());
        block.set_range(8 * HUGE + PAGE, 5 * CHUNK);
        assert_eq!((worth(4 * HUGE), worth(4 * HUGE - 1)), (4 * HUGE - PAGE, 4 * HUGE - PAGE));
    }

    #[test]
    fn the_last_huge_page_is_taken_whole_where_a_fifth_of_it_is_used() {
        assert_eq!(backed(2 * CHUNK + WORTH_A_HUGE_PAGE), 3 * CHUNK);
        let hardly = 2 * CHUNK + WORTH_A_HUGE_PAGE - 1;
        assert_eq!((backed(hardly), backed(3 * CHUNK)), (hardly, 3 * CHUNK));
        assert!(ends_early(4 * HUGE + 1) && ends_early(100));
        assert!(!ends_early(4 * HUGE) && !ends_early(4 * HUGE + HUGE / 5) && !ends_early(0));
    }
}
