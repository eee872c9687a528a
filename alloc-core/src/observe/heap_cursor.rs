//! A walk over the runs of all arenas by address, of which each is looked at under its own lock.
//!
//! The page map leads from run to run. Between two runs no lock is held, and other threads go on.
//! So a run that is made, cut or merged meanwhile may be missing, and none is seen twice.

use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::slab_hold::{self, HeldSlab};

/// The next address of a walk.
pub(super) struct HeapCursor {
    at: usize,
}

/// A run, under the lock that keeps it as it is.
pub(super) enum Found<'a> {
    /// A slab.
    Slab(&'a HeldSlab),
    /// Another run, in any state.
    Run(&'static Extent),
}

impl HeapCursor {
    /// A walk from an address on. A run around it is left out.
    pub(super) fn new(from: usize) -> HeapCursor {
        HeapCursor { at: from.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX & !(PAGE - 1)) }
    }

    /// Calls `see` with the next run, and returns the result. `see` is called under a lock of an
    /// arena, a bin or a cache. `None`: there is no other run.
    pub(super) fn next<T>(&mut self, mut see: impl FnMut(Found<'_>) -> T) -> Option<T> {
        loop {
            let (page, entry) = page_map::next_from(self.at)?;
            self.at = page + PAGE;
            let seen = match entry.extent() {
                Some(run) => self.see_run(page, entry, run, &mut see),
                None => self.see_slab(page, entry, &mut see),
            };
            if seen.is_some() {
                return seen;
            }
        }
    }

    fn see_slab<T>(
        &mut self,
        page: usize,
        entry: Entry,
        see: &mut impl FnMut(Found<'_>) -> T,
    ) -> Option<T> {
        let held = slab_hold::hold(page, entry)?;
        self.at = held.slab.base() + held.bytes();
        // The beginning of a slab that was made meanwhile may have been seen as another run.
        (held.slab.base() == page).then(|| see(Found::Slab(&held)))
    }

    fn see_run<T>(
        &mut self,
        page: usize,
        entry: Entry,
        run: &'static Extent,
        see: &mut impl FnMut(Found<'_>) -> T,
    ) -> Option<T> {
        let arena = arena_list::by_id(run.arena())?;
        let _pages = arena.pages.lock();
        // Under the lock, the word of a run's first page leads to a record that says how long the
        // run is.
        if page_map::lookup(page) != entry || run.base() != page {
            return None;
        }
        self.at = run.end();
        Some(see(Found::Run(run)))
    }
}
