//! A run in hand: a run of pages that is in no list, and that only the holder of the value uses.
//!
//! A free run is merged with its neighbours, and their records tell whether they are free. So a run
//! that is being cut, moved or advised must not look free while another part of it is filed. The
//! type ensures this: [`ExtentCache::remove`] returns a run in hand, only [`ExtentCache::insert`]
//! gives a run the state of a list, and it consumes the run in hand.
//!
//! [`InHand`] is neither `Copy` nor `Clone`. A build with debug assertions stops where one is
//! dropped, because the pages of the run would be lost.
//!
//! [`ExtentCache::remove`]: super::extent_cache::ExtentCache::remove
//! [`ExtentCache::insert`]: super::extent_cache::ExtentCache::insert

use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::system::mapping::Mapping;
use crate::ground::units::LG_PAGE;
use core::ops::Deref;

/// A run of pages that is in no list. Its state is [`ExtentState::InHand`].
#[must_use = "the pages of a run in hand that is dropped are lost"]
pub(crate) struct InHand {
    run: &'static Extent,
    from: ExtentState,
}

impl InHand {
    /// Takes hold of a run that is in no list and that no other code uses. `from` is the list that
    /// the parts which are not needed go back to.
    pub(in crate::back) fn hold(run: &'static Extent, from: ExtentState) -> InHand {
        run.state.set(ExtentState::InHand);
        InHand { run, from }
    }

    /// The record of the run.
    #[inline]
    pub(crate) fn run(&self) -> &'static Extent {
        debug_assert_eq!(self.run.state.get(), ExtentState::InHand, "other code uses the run");
        self.run
    }

    /// The list that the run was taken from.
    #[inline]
    pub(in crate::back) fn from(&self) -> ExtentState {
        self.from
    }

    /// Cuts the run after its first `pages` pages and returns the rest, which is in hand too.
    /// `record` becomes the record of the rest.
    pub(in crate::back) fn split_off(&self, pages: usize, record: &'static Extent) -> InHand {
        split(self.run(), pages, record, self.from)
    }

    /// Makes `right`, which begins where this run ends, a part of this run. Returns the record of
    /// `right`, which is free.
    pub(in crate::back) fn append(&self, right: InHand) -> &'static Extent {
        merge(self.run(), right)
    }

    /// Gives the run a state. The run is in hand no more.
    pub(in crate::back) fn release(self, state: ExtentState) -> &'static Extent {
        let run = self.run();
        run.state.set(state);
        core::mem::forget(self);
        run
    }

    /// Stores the run in a place other than a list, such as a batch. [`InHand::hold`] gets it back.
    pub(in crate::back) fn set_aside(self) -> &'static Extent {
        self.release(ExtentState::InHand)
    }
}

impl Deref for InHand {
    type Target = Extent;

    #[inline]
    fn deref(&self) -> &Extent {
        self.run
    }
}

#[cfg(debug_assertions)]
impl Drop for InHand {
    fn drop(&mut self) {
        debug_assert!(false, "the run at {:#x} was dropped: its pages are lost", self.run.base());
    }
}

/// Cuts `extent` after its first `pages` pages and returns the rest, of which `tail` becomes the
/// record. `extent` is in no list. `from` is the list that parts of the rest go back to.
pub(in crate::back) fn split(
    extent: &'static Extent,
    pages: usize,
    tail: &'static Extent,
    from: ExtentState,
) -> InHand {
    debug_assert!(pages > 0 && pages < extent.pages());
    tail.set_range(extent.base() + (pages << LG_PAGE), extent.pages() - pages);
    tail.zeroed.set(extent.zeroed.get());
    tail.marks.set_closed(extent.marks.is_closed());
    tail.marks.set_wiped(extent.marks.is_wiped());
    tail.marks.set_head(false);
    tail.set_mapping(extent.mapping());
    extent.set_range(extent.base(), pages);
    let rest = InHand::hold(tail, from);
    page_map::set_ends(extent);
    page_map::set_ends(tail);
    rest
}

/// Makes `right`, which begins where `left` ends, a part of `left`. `left` is in no list. Returns
/// the record of `right`, which is free.
pub(in crate::back) fn merge(left: &'static Extent, right: InHand) -> &'static Extent {
    debug_assert_eq!(left.end(), right.base());
    let right = right.set_aside();
    page_map::clear_ends(left);
    page_map::clear_ends(right);
    if let Some(mapping) = Mapping::merged(left.mapping(), right.mapping()) {
        left.set_mapping(mapping);
    }
    right.set_mapping(Mapping::Ordinary);
    left.marks.set_wiped(left.was_left_zero() && right.was_left_zero());
    left.zeroed.set(left.zeroed.get() && right.zeroed.get());
    left.marks.set_closed(left.marks.is_closed() || right.marks.is_closed());
    left.set_range(left.base(), left.pages() + right.pages());
    page_map::set_ends(left);
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::runs::extent_cache::ExtentCache;
    use crate::back::runs::neighbours::{left_neighbour, right_neighbour};
    use crate::back::system::provider::fixed::{Fixed, keep};
    use crate::ground::units::PAGE;

    fn record() -> &'static Extent {
        keep(Box::new(Extent::new(0)))
    }

    #[test]
    fn a_run_in_hand_is_no_free_neighbour_whichever_list_it_is_from() {
        // The allocator is needed only for its page map.
        let mut pages = PageAllocator::for_test(Fixed::leak(4 << 20));
        let active = pages.allocate(16, PAGE, Memory::Any).unwrap();
        for state in ExtentState::FREE {
            let mut cache = ExtentCache::new(state);
            cache.insert(InHand::hold(active, state));
            let held = cache.remove(active);
            let tail = held.split_off(8, record_of(active));
            for wanted in ExtentState::FREE {
                assert!(left_neighbour(&tail, wanted).is_none(), "{state:?} {wanted:?}");
                assert!(right_neighbour(&held, wanted).is_none(), "{state:?} {wanted:?}");
            }
            held.append(tail);
            held.release(ExtentState::Active);
        }
        assert_eq!((active.pages(), active.state.get()), (16, ExtentState::Active));
    }

    #[test]
    fn a_run_is_left_zero_if_both_of_its_parts_were() {
        let mut pages = PageAllocator::for_test(Fixed::leak(4 << 20));
        let active = pages.allocate(16, PAGE, Memory::Any).unwrap();
        let cases = [(true, true, true), (true, false, true), (false, true, true)];
        let both = cases.into_iter().chain([(false, false, false)]);
        for (is_wiped, is_zeroed, is_zero) in both {
            active.zeroed.set(false);
            let left = InHand::hold(active, ExtentState::Dirty);
            left.note_wiped();
            let right = left.split_off(8, record_of(active));
            assert!(right.marks.is_wiped(), "a part is wiped as the whole is");
            right.marks.set_wiped(is_wiped);
            right.zeroed.set(is_zeroed);
            left.append(right);
            assert_eq!((left.marks.is_wiped(), left.zeroed.get()), (is_zero, false));
            left.release(ExtentState::Active);
        }
    }

    #[test]
    fn a_run_is_known_as_wiped_for_one_use() {
        let mut pages = PageAllocator::for_test(Fixed::leak(4 << 20));
        let run = pages.allocate(8, PAGE, Memory::Any).unwrap();
        let base = run.base();
        assert!(!run.was_wiped());
        run.note_wiped();
        pages.free(run);
        let wiped = pages.allocate(8, PAGE, Memory::Any).unwrap();
        assert!(wiped.base() == base && wiped.was_wiped() && !wiped.zeroed.get());
        pages.free(wiped);
        let used = pages.allocate(8, PAGE, Memory::Any).unwrap();
        assert!(used.base() == base && !used.was_wiped(), "its last user may have written to it");
        used.note_wiped();
        pages.free(used);
        let short = pages.allocate(4, PAGE, Memory::Any).unwrap();
        assert!(short.base() == base && short.was_wiped());
        assert!(pages.grow(short, 8).is_some());
        pages.shrink(short, 4);
        let behind = pages.allocate(4, PAGE, Memory::Any).unwrap();
        assert!(behind.base() == short.end() && !behind.was_wiped(), "it was part of a run in use");
    }

    fn record_of(run: &Extent) -> &'static Extent {
        keep(Box::new(Extent::new(run.arena())))
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "the run at 0x5000 was dropped: its pages are lost")]
    fn a_run_that_is_dropped_is_noticed() {
        let run = record();
        run.set_range(5 * PAGE, 1);
        drop(InHand::hold(run, ExtentState::Dirty));
    }
}
