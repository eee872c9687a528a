//! What the pages of an arena are doing, as plain numbers.

use super::extent::ExtentState;
use super::extent_cache::Filed;
use super::page_allocator::PageAllocator;
use crate::ground::size_class::page_class_floor;

/// What the pages of an arena are doing, in pages, and what was done.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageCounts {
    pub(crate) active: usize,
    pub(crate) dirty: usize,
    pub(crate) muzzy: usize,
    pub(crate) retained: usize,
    /// Pages in purge batches that are under way.
    pub(crate) purging: usize,
    pub(crate) mapped: usize,
    /// Runs that left for a slab or a large block, and that came back.
    pub(crate) taken: u64,
    pub(crate) given: u64,
    /// Giving back pages that were dirty, and that were muzzy.
    pub(crate) dirty_purges: Purges,
    pub(crate) muzzy_purges: Purges,
    /// Records of runs ever made, and addresses that the system did not take back.
    pub(crate) records: usize,
    pub(crate) abandoned: usize,
}

/// What purging of pages in one state did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purges {
    /// Batches.
    pub(crate) passes: u64,
    /// System calls.
    pub(crate) calls: u64,
    /// Pages given back.
    pub(crate) pages: u64,
}

#[cfg(any(test, feature = "testing"))]
impl PageCounts {
    /// Pages that are known to be doing something.
    pub(crate) fn sum(&self) -> usize {
        self.active + self.dirty + self.muzzy + self.retained + self.purging
    }
}

impl PageAllocator {
    /// What the pages are doing now.
    pub(crate) fn counts(&self) -> PageCounts {
        PageCounts {
            dirty: self.unused(),
            muzzy: self.muzzy.pages(),
            retained: self.retained.pages(),
            records: self.spares.made(),
            ..self.counts
        }
    }

    /// The unused runs of a class in a state.
    pub(crate) fn filed(&self, state: ExtentState, class: usize) -> Filed {
        match state {
            ExtentState::Dirty => {
                let (filed, rest) = (self.dirty.filed(class), self.rest.pages());
                let is_here = rest > 0 && page_class_floor(rest) == class;
                if is_here {
                    return Filed { runs: filed.runs + 1, pages: filed.pages + rest };
                }
                filed
            }
            ExtentState::Muzzy => self.muzzy.filed(class),
            _ => self.retained.filed(class),
        }
    }

    /// How long unused dirty and muzzy pages are kept, in milliseconds; -1: for ever.
    pub(crate) fn decay_millis(&self) -> (isize, isize) {
        (self.dirty_decay.millis(), self.muzzy_decay.millis())
    }

    /// Records of runs that wait for their next use.
    pub(crate) fn spare_records(&self) -> usize {
        self.spares.count()
    }

    /// Where the active pages are counted, in bytes from the beginning.
    pub(crate) const ACTIVE: usize = core::mem::offset_of!(PageAllocator, counts.active);
}
