//! The statistics of each arena, and of the locks that the process has one of, in memory that is
//! kept from one walk to the next.

use super::arena_stats::ArenaStats;
use super::mutex_stats::MutexStats;
use crate::back::metadata;
use crate::middle::arenas::arena_list::{self, MAX_ARENAS};

/// Statistics of the locks that the process has one of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMutexes {
    /// The lock for starting and stopping the background thread.
    pub background_thread: MutexStats,
    /// The lock of the decay pass.
    pub decay_pass: MutexStats,
    /// The lock of the list of thread caches.
    pub registry: MutexStats,
    /// The lock for making arenas.
    pub arenas: MutexStats,
}

/// The records for one index of an arena.
pub(super) struct Place {
    pub(super) stats: Option<&'static mut ArenaStats>,
    /// The counts of destroyed arenas of this index.
    pub(super) before: Option<&'static mut ArenaStats>,
    /// The number of destroyed arenas whose counts `before` has.
    pub(super) ends: u32,
}

/// The records for each index of an arena, and of the locks of the process.
pub(super) struct Records {
    mutexes: ProcessMutexes,
    places: [Place; MAX_ARENAS],
    /// Places below this index may have a record.
    made: usize,
}

impl Records {
    /// Makes records for no arena yet.
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

    /// Makes a record for each arena. An arena for which there is no memory has none.
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

    /// Clears what each walk counts anew.
    pub(super) fn clear(&mut self) {
        self.mutexes = ProcessMutexes::default();
        self.all_mut().for_each(ArenaStats::clear);
    }

    /// Indices below this may have a record.
    pub(super) fn end(&self) -> usize {
        self.made
    }

    /// Returns the record of an index.
    pub(super) fn arena(&self, index: usize) -> Option<&ArenaStats> {
        self.places.get(index)?.stats.as_deref()
    }

    /// As [`Records::arena`], to write to the record.
    pub(super) fn arena_mut(&mut self, index: u32) -> Option<&mut ArenaStats> {
        self.places.get_mut(index as usize)?.stats.as_deref_mut()
    }

    /// Iterates over the records, lowest index first.
    pub(super) fn all(&self) -> impl Iterator<Item = &ArenaStats> {
        self.places.iter().take(self.made).filter_map(|place| place.stats.as_deref())
    }

    /// As [`Records::all`], to write to the records.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut ArenaStats> {
        self.places().filter_map(|place| place.stats.as_deref_mut())
    }

    /// Iterates over the places, lowest index first.
    pub(super) fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.places.iter_mut().take(self.made)
    }

    /// Returns the statistics of the locks that the process has one of.
    pub(super) fn mutexes(&self) -> &ProcessMutexes {
        &self.mutexes
    }

    /// As [`Records::mutexes`], to write to the statistics.
    pub(super) fn mutexes_mut(&mut self) -> &mut ProcessMutexes {
        &mut self.mutexes
    }
}

/// Allocates a record for the statistics of one arena.
pub(super) fn record() -> Option<&'static mut ArenaStats> {
    let memory = metadata::allocate(size_of::<ArenaStats>(), 64)?.cast::<ArenaStats>();
    // SAFETY: fresh memory of the right size and alignment, which nothing else uses. Zeroes are
    // valid for plain numbers and flags.
    Some(unsafe { &mut *memory.as_ptr() })
}
