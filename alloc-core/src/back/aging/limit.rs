//! Bounds on the pages that arenas take from the system, checked only where new pages are taken.
//!
//! The bounds limit the pages with memory, in use or not, and the allocator's own records. Beyond
//! the hard bound, or the bound of an arena, an allocation fails until memory was given back (see
//! `front/miss/retry.rs`). What is held beside the soft bound is noted by [`soft_limit`].

use super::refusals::{self, Refusal};
use super::{held, soft_limit};
use crate::ground::intervals;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The hard bound in bytes. 0 is no bound.
static HARD: AtomicUsize = AtomicUsize::new(0);
/// Stands for the bound of all arenas.
pub(crate) const ANY: usize = usize::MAX;

/// The hard bound in bytes. 0 is no bound.
pub(crate) fn hard() -> usize {
    HARD.load(Relaxed)
}

/// Sets the hard bound.
pub(crate) fn set_hard(bytes: usize) {
    HARD.store(bytes, Relaxed);
}

fn refuse(pages: usize, place: usize) -> bool {
    refusals::note(Refusal { wanted: pages << LG_PAGE, place });
    false
}

/// The bounds of one arena, and what it last reported.
pub(crate) struct Bounds {
    arena: u32,
    own: usize,
    is_exempt: bool,
    /// The pages that the arena held when it last reported.
    reported: usize,
}

impl Bounds {
    /// Creates the bounds of an arena without its own bound.
    pub(in crate::back) const fn new(arena: u32) -> Bounds {
        Bounds { arena, own: 0, is_exempt: false, reported: 0 }
    }

    /// The bytes that the arena may hold. 0 is no bound.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// Removes the bounds, for the arena's next use.
    pub(in crate::back) fn begin_anew(&mut self) {
        (self.own, self.is_exempt) = (0, false);
    }

    /// Sets the bytes that the arena may hold.
    pub(crate) fn set_own(&mut self, bytes: usize) {
        self.own = bytes;
    }

    /// Whether the arena is exempt from the bound of all arenas.
    pub(crate) fn is_exempt(&self) -> bool {
        self.is_exempt
    }

    /// Sets whether the arena is exempt from the bound of all arenas.
    pub(crate) fn set_exempt(&mut self, is_exempt: bool) {
        self.is_exempt = is_exempt;
    }

    /// Whether the arena, which holds `held` pages, may take `pages` new ones. Counts a refusal.
    pub(in crate::back) fn admits(&mut self, held: usize, pages: usize) -> bool {
        self.report(held);
        self.bound_of(held, pages).is_none_or(|place| refuse(pages, place))
    }

    /// As [`Bounds::admits`], but also counts the pages as held, so that several arenas do not take
    /// the same room at the same time. The caller takes them, and then calls [`Bounds::report`]
    /// whether it got them or not.
    pub(in crate::back) fn take_room(&mut self, held: usize, pages: usize) -> bool {
        if !self.is_bound() {
            return self.admits(held, pages);
        }
        // First, because another arena may do the same at this moment.
        self.report(held + pages);
        let place = self.bound_of(held, 0).or_else(|| self.own_bound_of(held, pages));
        if let Some(place) = place {
            self.report(held);
            return refuse(pages, place);
        }
        true
    }

    /// Whether there is room for `pages` new pages. No refusal is counted.
    pub(in crate::back) fn has_room_for(&self, held: usize, pages: usize) -> bool {
        self.bound_of(held, pages).is_none()
    }

    /// Whether the bound of all arenas applies.
    fn is_bound(&self) -> bool {
        HARD.load(Relaxed) != 0 && !self.is_exempt
    }

    /// The bound that `pages` new pages would exceed, if any: that of an arena, or [`ANY`].
    fn bound_of(&self, own_held: usize, pages: usize) -> Option<usize> {
        if self.is_bound() && held::bytes().saturating_add(pages << LG_PAGE) > HARD.load(Relaxed) {
            return Some(ANY);
        }
        self.own_bound_of(own_held, pages)
    }

    fn own_bound_of(&self, own_held: usize, pages: usize) -> Option<usize> {
        let own = self.own != 0 && (own_held + pages) << LG_PAGE > self.own;
        own.then_some(self.arena as usize)
    }

    /// The pages that the arena held when it last reported.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn reported(&self) -> usize {
        self.reported
    }

    /// Notes how many pages the arena holds now.
    pub(in crate::back) fn report(&mut self, held: usize) {
        let change = held.wrapping_sub(core::mem::replace(&mut self.reported, held));
        let all = held::add(change);
        intervals::note_held(all);
        soft_limit::note_held(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_stays_within_its_own_bound() {
        let mut bounds = Bounds::new(7);
        assert!(bounds.has_room_for(usize::MAX >> 16, 1), "there is none");
        bounds.set_own(12 << LG_PAGE);
        bounds.set_exempt(true);
        assert_eq!((bounds.own(), bounds.is_exempt()), (12 << LG_PAGE, true));
        assert!(bounds.has_room_for(10, 2) && bounds.admits(10, 2));
        assert!(!bounds.has_room_for(10, 3));
        let refused = refusals::count();
        assert!(!bounds.admits(10, 3));
        let refusal = Refusal { wanted: 3 << LG_PAGE, place: 7 };
        assert_eq!(refusals::take_since(refused), Some(refusal));
        // Takes the pages out of the count of all arenas again.
        bounds.report(0);
    }
}
