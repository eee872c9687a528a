//! Which unused memory a new run takes.

use super::dense::Rest;
use super::memory::{Memory, Request};
use crate::back::map::extent::ExtentState;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::InHand;
use crate::ground::options;

/// A run in which a block has room to grow is so many times as long as the block.
const TIMES: usize = 4;

/// Cuts a run out of the shortest unused one that has room, a dirty one first. Much longer ones
/// come last. Returns `None` if there is none.
pub(in crate::back) fn take(
    runs: &mut FreeRuns,
    rest: &mut Rest,
    Request { pages, align, .. }: Request,
) -> Option<InHand> {
    let most = pages.saturating_mul(1 << options::current().lg_extent_max_active_fit.min(40));
    runs.take(ExtentState::Dirty, pages, align, most)
        .or_else(|| runs.take(ExtentState::Muzzy, pages, align, most))
        // Cutting up a long run that has memory is better than touching new memory.
        .or_else(|| runs.take(ExtentState::Dirty, pages, align, usize::MAX))
        .or_else(|| runs.take(ExtentState::Muzzy, pages, align, usize::MAX))
        .or_else(|| rest.take_if_open(runs, pages, align))
}

/// Cuts a run off the longest dirty one, for a block that has grown and may grow again, in place.
/// Returns `None` if that run is shorter than the `used` pages in use that cannot be moved. Blocks
/// that grow in shorter ones would cut up what longer blocks need. Blocks that the system can move
/// do not need it.
pub(in crate::back) fn take_roomy(
    runs: &mut FreeRuns,
    Request { pages, align, memory }: Request,
    used: usize,
) -> Option<InHand> {
    let Memory::Roomy { movable } = memory else { return None };
    let least = pages.saturating_mul(TIMES).max(used.saturating_sub(movable));
    let longest = runs.longest_dirty().next()?;
    longest.fit(least, align)?;
    let run = runs.remove(longest);
    runs.cut(run, pages, align)
}

#[cfg(test)]
mod tests {
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::mmap::Mmap;
    use crate::ground::options;
    use crate::ground::units::PAGE;

    const ROOMY: Memory = Memory::Roomy { movable: 0 };

    #[test]
    fn a_block_that_grows_lies_at_the_beginning_of_a_long_unused_run() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let [short, _, long, wall] =
            [16, 1, 100, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        let begin = long.base();
        assert!(pages.allocate(4, PAGE, ROOMY).is_none(), "nothing is unused");
        pages.free(short);
        pages.free(long);
        assert!(pages.allocate(26, PAGE, ROOMY).is_none(), "104 pages are not unused");
        let block = pages.allocate(4, PAGE, ROOMY).unwrap();
        assert_eq!(block.base(), begin, "the shortest that fits has no room");
        assert_eq!(pages.grow(block, 100), Some(false));
        assert_eq!(block.end(), wall.base());
        pages.check();
    }

    #[test]
    fn short_unused_runs_are_kept_for_other_blocks() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let [unused, _, used] =
            [100, 1, 98].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        pages.free(unused);
        let block = pages.allocate(1, PAGE, ROOMY).expect("as many as are used");
        pages.free(block);
        assert!(pages.grow(used, 100).is_some());
        assert!(pages.allocate(1, PAGE, ROOMY).is_none(), "100 pages beside 101");
        let block = pages.allocate(1, PAGE, Memory::Roomy { movable: 1 });
        assert!(block.is_some(), "100 pages beside 100 that cannot be moved");
        pages.check();
    }

    #[test]
    fn long_muzzy_runs_are_cut_up_before_new_memory_is_touched() {
        let mut pages = PageAllocator::for_test(&Mmap);
        pages.aging().set_millis(false, 1000);
        let long = 4 << options::current().lg_extent_max_active_fit;
        let [muzzy, _, dirty, _] =
            [long, 1, long, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        let range = muzzy.base()..muzzy.end();
        pages.free(muzzy);
        let batch = pages.take_batch(0, usize::MAX).unwrap();
        batch.purge();
        assert!(pages.file_batch(batch));
        assert_eq!(pages.counts().muzzy, long);
        let first = pages.allocate(1, PAGE, Memory::Any).unwrap();
        assert!(range.contains(&first.base()));
        let range = dirty.base()..dirty.end();
        pages.free(dirty);
        let next = pages.allocate(1, PAGE, Memory::Any).unwrap();
        assert!(range.contains(&next.base()), "a dirty one comes first");
        pages.check();
    }
}
