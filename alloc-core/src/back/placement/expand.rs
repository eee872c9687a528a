//! Lengthening a run in place, over the free runs behind it.
//!
//! These may be several: decay gives the pages of a free run back part by part, and parts in
//! different states are runs of their own.

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::runs::access;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::{self, InHand};
use crate::back::runs::in_use::InUse;
use crate::back::runs::neighbours::right_neighbour;

/// The most free runs that are looked at. Decay cuts a long run into parts of 2 MiB or more.
const MOST: usize = 64;

fn behind(run: &Extent) -> Option<&'static Extent> {
    ExtentState::FREE.into_iter().find_map(|state| right_neighbour(run, state))
}

/// Returns how many of the `more` pages behind a run have no memory. `None`: they are not all free.
pub(in crate::back) fn new_pages(run: &Extent, more: usize) -> Option<usize> {
    let (mut last, mut left, mut new) = (behind(run)?, more, 0);
    for _ in 0..MOST {
        let taken = last.pages().min(left);
        if last.state.get() == ExtentState::Retained {
            new += taken;
        }
        left -= taken;
        if left == 0 {
            return Some(new);
        }
        last = behind(last)?;
    }
    None
}

/// Lengthens a run in use by `more` pages behind it, which are free ([`new_pages`]). The caller has
/// kept records for that. Returns whether the pages read zero. `None`: the system refuses to open
/// some of them, and the run has its old length.
pub(in crate::back) fn expand(
    runs: &mut FreeRuns,
    in_use: &mut InUse,
    run: &'static Extent,
    more: usize,
) -> Option<bool> {
    let (before, mut is_zero) = (run.pages(), true);
    let after = before + more;
    while run.pages() < after {
        let Some(next) = next_part(runs, run, after - run.pages()) else {
            take_back(runs, run, before);
            return None;
        };
        is_zero &= runs.append_to_active(run, next);
    }
    in_use.pages += more;
    Some(is_zero)
}

/// Takes the free run behind a run, at most `most` pages of it.
fn next_part(runs: &mut FreeRuns, run: &Extent, most: usize) -> Option<InHand> {
    let part = runs.remove(behind(run)?);
    if let Some(rest) = runs.cut_off(&part, most) {
        runs.list_again(rest);
    }
    debug_assert!(part.pages() <= most);
    access::opened(part, |part| runs.list_again(part))
}

/// Cuts a run to its first `pages` pages again. Each part that was taken has left a record.
fn take_back(runs: &mut FreeRuns, run: &'static Extent, pages: usize) {
    if run.pages() == pages {
        return;
    }
    let record = runs.take_record();
    debug_assert!(record.is_some());
    if let Some(record) = record {
        let was_zeroed = run.zeroed.replace(false);
        let tail = in_hand::split(run, pages, record, ExtentState::Dirty);
        run.zeroed.set(was_zeroed);
        runs.file(tail, ExtentState::Dirty);
    }
}

#[cfg(test)]
mod tests {
    use crate::back::map::extent::ExtentState;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::mmap::Mmap;
    use crate::ground::units::PAGE;

    /// Purges all but `dirty` pages.
    fn purge(pages: &mut PageAllocator, dirty: usize) {
        while let Some(batch) = pages.take_batch(dirty, 0) {
            batch.purge();
            assert!(pages.file_batch(batch));
        }
    }

    #[test]
    fn a_run_grows_over_free_runs_in_several_states() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let [run, one, two, three] =
            [4, 10, 20, 30].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        assert!(one.base() == run.end() && two.base() == one.end() && three.base() == two.end());
        let last = three.end();
        let [wall, unused, end] =
            [1, 300, 1].map(|length| pages.allocate(length, PAGE, Memory::Any).unwrap());
        assert_eq!(wall.base(), last);
        // Behind the run: 10 pages without memory, 20 dirty ones, 30 without memory.
        pages.free(one);
        pages.free(three);
        purge(&mut pages, 0);
        pages.free(two);
        pages.free(unused);
        assert_eq!((pages.counts().dirty, pages.take_growth()), (320, None));
        assert_eq!(pages.grow(run, 65), None, "the pages up to the wall are 64");
        assert_eq!(run.pages(), 4);
        assert_eq!(pages.grow(run, 40), Some(false), "some pages do not read zero");
        assert_eq!((run.pages(), pages.counts().dirty), (40, 300));
        assert_eq!(pages.take_growth(), Some(284), "16 pages are new, beside unused ones");
        assert_eq!(pages.grow(run, 64), Some(true));
        assert_eq!((run.end(), pages.counts().active), (last, 66));
        pages.check();
        pages.free(run);
        pages.free(wall);
        pages.free(end);
        purge(&mut pages, 0);
        let whole = pages.oldest(ExtentState::Retained).unwrap();
        assert!(whole.pages() >= 65, "they are one run again");
        pages.check();
    }
}
