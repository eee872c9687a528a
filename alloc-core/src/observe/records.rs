//! The numbers of each arena, and of the locks that there is one of, in memory that is kept from
//! one walk to the next.

use super::arena_stats::ArenaStats;
use super::mutex_stats::MutexStats;
use crate::back::metadata;
use crate::middle::arenas::arena_list::{self, MAX_ARENAS};

/// Locks that there is one of in the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMutexes {
    /// The start and the stop of the background thread.
    pub background_thread: MutexStats,
    /// The decay pass.
    pub decay_pass: MutexStats,
    /// The list of thread caches.
    pub registry: MutexStats,
    /// The making of arenas.
    pub arenas: MutexStats,
}

/// What is kept for one index.
pub(super) struct Place {
    pub(super) stats: Option<&'static mut ArenaStats>,
    /// What arenas of this index counted that were destroyed.
    pub(super) before: Option<&'static mut ArenaStats>,
    /// How many of them there were.
    pub(super) ends: u32,
}

/// A record for each index of an arena.
pub(super) struct Records {
    mutexes: ProcessMutexes,
    places: [Place; MAX_ARENAS],
    /// Places below this have been looked at.
    made: usize,
}

impl Records {
    /// None yet.
    pub(super) const fn new() -> Records {
        Records {
            mutexes: ProcessMutexes {
                background_thread: MutexStats::EMPTY,
                decay_pass: MutexStats::EMPTY,
                registry: MutexStats::EMPTY,
                arenas: MutexStats::EMPTY,
            },
            places: [const { Place { stats: None, before: None, ends: 0 } }; MAX_ARENAS],
            made: 0,
        }
    }

    /// Makes a record for each arena that there is. An arena for which there is no memory has none.
    pub(super) fn make_room(&mut self) {
        for arena in arena_list::all() {
            let index = arena.id() as usize;
            if let Some(place) = self.places.get_mut(index)
                && place.stats.is_none()
            {
                place.stats = record();
            }
            self.made = self.made.max(index + 1);
        }
    }

    /// Clears what is counted anew.
    pub(super) fn clear(&mut self) {
        self.mutexes = ProcessMutexes::default();
        self.all_mut().for_each(ArenaStats::clear);
    }

    /// Indices below this may have a record.
    pub(super) fn end(&self) -> usize {
        self.made
    }

    /// The record of an index.
    pub(super) fn arena(&self, index: usize) -> Option<&ArenaStats> {
        self.places.get(index)?.stats.as_deref()
    }

    /// The record of an index, to write to it.
    pub(super) fn arena_mut(&mut self, index: u32) -> Option<&mut ArenaStats> {
        self.places.get_mut(index as usize)?.stats.as_deref_mut()
    }

    /// The records, lowest index first.
    pub(super) fn all(&self) -> impl Iterator<Item = &ArenaStats> {
        self.places.iter().take(self.made).filter_map(|place| place.stats.as_deref())
    }

    /// The records, to write to them.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ArenaStats> {
        self.places().filter_map(|place| place.stats.as_deref_mut())
    }

    /// What is kept for each index, lowest first.
    pub(super) fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.places.iter_mut().take(self.made)
    }

    /// Locks that there is one of.
    pub(super) fn mutexes(&self) -> &ProcessMutexes {
        &self.mutexes
    }

    /// As [`Records::mutexes`], to write to them.
    pub(super) fn mutexes_mut(&mut self) -> &mut ProcessMutexes {
        &mut self.mutexes
    }
}

/// Memory for one arena's numbers.
pub(super) fn record() -> Option<&'static mut ArenaStats> {
    let memory = metadata::allocate(size_of::<ArenaStats>(), 64)?.cast::<ArenaStats>();
    // SAFETY: fresh memory of the right size and alignment, never given to anyone else; zeroes are
    // valid for plain numbers and flags.
    Some(unsafe { &mut *memory.as_ptr() })
}
