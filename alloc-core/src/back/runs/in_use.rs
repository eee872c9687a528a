//! The runs of one arena that are in use.

use super::access;
use super::in_hand::InHand;
use crate::back::map::active_list::ActiveList;
use crate::back::map::extent::{Extent, ExtentState};
#[cfg(any(test, feature = "checks"))]
use crate::ground::holds::holds;

/// The number of pages of one arena in use, and the list of its runs in use if that is kept.
pub(in crate::back) struct InUse {
    /// Pages in use.
    pub(in crate::back) pages: usize,
    /// Runs that were handed out, and the second parts of those that were cut in two.
    pub(in crate::back) taken: u64,
    /// Runs that came back.
    pub(in crate::back) given: u64,
    /// Pages that are counted twice, as their memory is being moved elsewhere.
    moving: usize,
    list: Option<ActiveList>,
}

impl InUse {
    /// Creates a count of 0, without a list.
    pub(in crate::back) const fn new() -> InUse {
        InUse { pages: 0, taken: 0, given: 0, moving: 0, list: None }
    }

    /// Keeps a list of the runs in use from now on. No run is in use yet.
    pub(in crate::back) fn keep_list(&mut self) {
        self.list = Some(ActiveList::new());
    }

    /// The first run of the list, if a list is kept.
    pub(in crate::back) fn first(&self) -> Option<&'static Extent> {
        self.list.as_ref().and_then(ActiveList::first)
    }

    /// Counts a run as in use.
    pub(in crate::back) fn add(&mut self, run: InHand) -> &'static Extent {
        let extent = run.release(ExtentState::Active);
        extent.marks.begin_use();
        self.pages += extent.pages();
        self.taken += 1;
        access::note_taken();
        if let Some(list) = &mut self.list {
            list.push(extent);
        }
        extent
    }

    /// Counts the addresses to which the memory of a run of `pages` pages is to be moved.
    pub(in crate::back) fn begin_move(&mut self, pages: usize, new: &Extent) {
        self.pages += new.pages();
        self.moving += pages;
    }

    /// Ends what [`InUse::begin_move`] began. `left` is the run that is not in use any more.
    pub(in crate::back) fn end_move(&mut self, pages: usize, left: &Extent) {
        self.pages -= left.pages();
        self.moving -= pages;
    }

    /// Pages that are counted as in use twice.
    pub(in crate::back) fn moving(&self) -> usize {
        self.moving
    }

    /// Counts the second part of a run in use that was cut in two as a run. Its pages are counted.
    pub(in crate::back) fn add_part(&mut self, run: InHand) -> &'static Extent {
        let extent = run.release(ExtentState::Active);
        self.taken += 1;
        access::note_taken();
        if let Some(list) = &mut self.list {
            list.push(extent);
        }
        extent
    }

    /// Checks that the runs of the list are in use and have as many pages as are counted. Does
    /// nothing if no list is kept.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn check(&self) {
        let Some(list) = &self.list else { return };
        let mut pages = 0;
        for run in list.iter() {
            holds(matches!(run.state.get(), ExtentState::Active | ExtentState::Kept));
            pages += run.pages();
        }
        holds(pages == self.pages);
    }

    /// Takes out a run that is not used any more.
    pub(in crate::back) fn remove(&mut self, extent: &'static Extent) -> InHand {
        debug_assert!(matches!(extent.state.get(), ExtentState::Active | ExtentState::Kept));
        if let Some(list) = &mut self.list {
            list.remove(extent);
        }
        self.pages -= extent.pages();
        self.given += 1;
        access::note_given();
        extent.zeroed.set(false);
        InHand::hold(extent, ExtentState::Dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;
    use crate::ground::units::PAGE;

    fn in_hand(pages: usize) -> InHand {
        let record: &'static Extent = keep(Box::new(Extent::new(0)));
        record.set_range(PAGE, pages);
        InHand::hold(record, ExtentState::Dirty)
    }

    #[test]
    fn pages_and_runs_are_counted() {
        let mut in_use = InUse::new();
        let run = in_use.add(in_hand(3));
        assert_eq!((in_use.pages, in_use.taken, in_use.given), (3, 1, 0));
        assert!(run.state.get() == ExtentState::Active && in_use.first().is_none());
        run.zeroed.set(true);
        let back = in_use.remove(run);
        assert_eq!((in_use.pages, in_use.taken, in_use.given), (0, 1, 1));
        assert!(!back.zeroed.get(), "its last user may have written to it");
        back.release(ExtentState::Spare);
    }

    #[test]
    fn runs_are_listed_where_they_are_to_be_found() {
        let mut in_use = InUse::new();
        in_use.keep_list();
        let run = in_use.add(in_hand(3));
        let part = in_use.add_part(in_hand(1));
        assert_eq!((in_use.pages, in_use.taken), (3, 2), "its pages were counted with the whole");
        assert!(in_use.first().is_some_and(|first| first.is(part)));
        in_use.remove(part).release(ExtentState::Spare);
        assert!(in_use.first().is_some_and(|first| first.is(run)));
    }
}
