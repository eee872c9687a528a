//! What the pages of an arena are doing, as plain numbers.

use crate::back::map::extent::ExtentState;

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
    pub(crate) purges: PurgeCounts,
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

/// What purging did, by what the pages were before.
#[derive(Clone, Copy, Default)]
pub(crate) struct PurgeCounts {
    pub(crate) dirty: Purges,
    pub(crate) muzzy: Purges,
}

impl PurgeCounts {
    /// Where purging of pages in a state is counted.
    pub(in crate::back) fn of(&mut self, from: ExtentState) -> &mut Purges {
        match from {
            ExtentState::Muzzy => &mut self.muzzy,
            _ => &mut self.dirty,
        }
    }
}

#[cfg(any(test, feature = "testing"))]
impl PageCounts {
    /// Pages that are known to be doing something.
    pub(crate) fn sum(&self) -> usize {
        self.active + self.dirty + self.muzzy + self.retained + self.purging
    }
}
