//! Which new memory lies in huge pages. Pure functions of the request, the heap and its waste.
//!
//! | run | heap | backing |
//! |---|---|---|
//! | perhaps hardly written | any | small pages |
//! | written, up to 4 MiB | small, or much of it waits in chunks already | small pages |
//! | written, up to 4 MiB | large, and little of it waits | a part of a chunk |
//! | for samples | much larger than its chunks for samples | a part of a chunk |
//! | written, 4 MiB and more | any | huge pages, all of the last one if it fills a fifth of it |
//!
//! A run of up to 4 MiB is taken out of a chunk only if such runs were filled
//! ([`super::evidence`]).
//!
//! A fresh slab counts as written where most slabs of this process are filled, and little memory of
//! slabs in huge pages is untouched.

use super::memory::{Memory, Request};
use crate::back::map::extent::Extent;
use crate::back::runs::chunk_notes::CHUNK;
use crate::back::runs::huge;
use crate::back::system::thp::HUGE;
use crate::ground::units::{LG_PAGE, PAGE, round_down, round_up};

/// Pages in use from which on chunks are taken: four chunks.
pub(in crate::back) const LARGE_HEAP: usize = (8 << 20) / PAGE;
/// As [`LARGE_HEAP`], but where more such runs will follow, so that the rest is soon used.
const SMALL_HEAP: usize = (3 << 20) / PAGE;
/// The part of the memory in use that may wait in chunks, and that untouched pages of slabs in huge
/// pages may be.
const PART_OF_USED: usize = 8;
/// The part of the memory in use that chunks for samples may be.
const PART_FOR_SAMPLES: usize = 32;
/// Pages of its last huge page that a long block must fill. To fault in that many one by one takes
/// half as long again as to clear all of the huge page.
const WORTH_A_HUGE_PAGE: usize = CHUNK / 5;

const _: () = {
    // Where a run has huge pages of its own it needs no chunk, and a large heap holds a few chunks.
    assert!(huge::SHORTEST.is_multiple_of(HUGE) && HUGE == CHUNK << LG_PAGE);
    assert!(SMALL_HEAP < LARGE_HEAP && CHUNK < SMALL_HEAP && WORTH_A_HUGE_PAGE < CHUNK);
};

/// What backs a run of new memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::back) enum Backing {
    /// Small pages.
    Small,
    /// A part of a chunk.
    Chunk,
    /// Huge pages of its own. The run takes so many pages, and leaves what it does not need.
    Own { pages: usize },
}

/// Pages of the heap that a request belongs to: all arenas together, because that of a thread is
/// small where there are many. An arena that the program made counts alone.
#[derive(Clone, Copy)]
pub(in crate::back) struct Heap {
    /// Pages in use.
    pub(in crate::back) used: usize,
    /// Pages that wait in chunks, with what this request would leave.
    pub(in crate::back) waiting: usize,
}

/// What options and system allow.
#[derive(Clone, Copy)]
pub(in crate::back) struct Allowed {
    /// Long blocks may lie in huge pages.
    pub(in crate::back) blocks: bool,
    /// Large heaps may grow by chunks.
    pub(in crate::back) chunks: bool,
}

/// Decides what backs a run of new memory.
pub(in crate::back) fn backing(request: Request, heap: Heap, allowed: Allowed) -> Backing {
    if !request.is_written() {
        return Backing::Small;
    }
    if request.is_long() {
        let fills_its_end = request.memory == Memory::Filled;
        let pages = if fills_its_end { backed(request.pages) } else { request.pages };
        return if allowed.blocks { Backing::Own { pages } } else { Backing::Small };
    }
    let least = if request.memory == Memory::Followed { SMALL_HEAP } else { LARGE_HEAP };
    let wastes_little = heap.waiting <= CHUNK.max(heap.used / PART_OF_USED);
    if allowed.chunks && heap.used >= least && wastes_little {
        Backing::Chunk
    } else {
        Backing::Small
    }
}

/// Whether a fresh slab of `pages` pages counts as written, beside so many untouched pages of slabs
/// in small and in huge pages and so many pages in use.
pub(in crate::back) fn is_slab_filled(
    pages: usize,
    in_small: usize,
    in_huge: usize,
    used: usize,
) -> bool {
    let are_filled = in_small.saturating_add(in_huge) <= used;
    are_filled && in_huge.saturating_add(pages) <= used / PART_OF_USED
}

/// The most chunks for samples beside a heap. By default, samples of blocks of 16 KiB are one in 32
/// bytes of all such blocks, and those of smaller blocks are fewer.
pub(in crate::back) fn most_low_chunks(heap: Heap) -> usize {
    heap.used / (CHUNK * PART_FOR_SAMPLES)
}

/// The pages that a long block of `pages` pages takes.
fn backed(pages: usize) -> usize {
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

    const ALL: Allowed = Allowed { blocks: true, chunks: true };

    fn decided(pages: usize, memory: Memory, heap: [usize; 2]) -> Backing {
        let [used, waiting] = heap;
        backing(Request { pages, align: PAGE, memory }, Heap { used, waiting }, ALL)
    }

    #[test]
    fn short_runs_lie_in_chunks_of_heaps_that_waste_little() {
        use Backing::{Chunk, Small};
        let huge_heap = 100 * LARGE_HEAP;
        for memory in [Memory::Resident, Memory::Any] {
            assert_eq!(decided(16, memory, [huge_heap, 0]), Small, "it may be hardly written");
        }
        assert_eq!(decided(16, Memory::Filled, [LARGE_HEAP - 1, 0]), Small);
        assert_eq!(decided(16, Memory::Filled, [LARGE_HEAP, 0]), Chunk);
        assert_eq!(decided(16, Memory::Followed, [SMALL_HEAP, 0]), Chunk);
        assert_eq!(decided(16, Memory::Followed, [SMALL_HEAP - 1, 0]), Small);
        // A chunk may always wait, and in a larger heap an eighth of it.
        assert_eq!(decided(16, Memory::Filled, [LARGE_HEAP, CHUNK]), Chunk);
        assert_eq!(decided(16, Memory::Filled, [LARGE_HEAP, CHUNK + 1]), Small);
        assert_eq!(decided(16, Memory::Filled, [huge_heap, huge_heap / 8]), Chunk);
        assert_eq!(decided(16, Memory::Filled, [huge_heap, huge_heap / 8 + 1]), Small);
    }

    #[test]
    fn long_blocks_have_huge_pages_of_their_own_in_any_heap() {
        let long = huge::SHORTEST / PAGE;
        assert_eq!(decided(long - 1, Memory::Filled, [0, 0]), Backing::Small);
        assert_eq!(decided(long, Memory::Filled, [0, 0]), Backing::Own { pages: long });
        let fifth = long + WORTH_A_HUGE_PAGE;
        assert_eq!(decided(fifth, Memory::Filled, [0, 0]), Backing::Own { pages: 3 * CHUNK });
        assert_eq!(decided(fifth - 1, Memory::Filled, [0, 0]), Backing::Own { pages: fifth - 1 });
        assert_eq!(decided(fifth, Memory::Begun, [0, 0]), Backing::Own { pages: fifth });
        assert_eq!(decided(fifth, Memory::Any, [0, 0]), Backing::Small);
    }

    #[test]
    fn what_is_not_allowed_is_not_done() {
        let heap = Heap { used: 100 * LARGE_HEAP, waiting: 0 };
        for pages in [16, 10 * CHUNK] {
            let request = Request { pages, align: PAGE, memory: Memory::Filled };
            let none = Allowed { blocks: false, chunks: false };
            assert_eq!(backing(request, heap, none), Backing::Small);
        }
    }

    #[test]
    fn a_slab_counts_as_filled_where_little_is_wasted_and_slabs_are_filled() {
        let used = 100 * PART_OF_USED;
        assert!(is_slab_filled(16, 0, 84, used));
        assert!(!is_slab_filled(16, 0, 85, used), "too much is wasted already");
        assert!(is_slab_filled(16, used - 84, 84, used));
        assert!(!is_slab_filled(16, used - 83, 84, used), "slabs are hardly touched here");
        assert!(!is_slab_filled(16, 0, 0, 0), "nothing is in use");
        assert!(!is_slab_filled(16, usize::MAX, 1, used));
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
