//! Counts of the pages of an arena, as plain numbers.

use crate::back::map::extent::ExtentState;
use crate::back::runs::free_runs::FreeRuns;

/// The pages of an arena by state, and counts of operations on them.
#[derive(Clone, Copy, Default)]
pub(crate) struct PageCounts {
    pub(crate) active: usize,
    pub(crate) dirty: usize,
    pub(crate) muzzy: usize,
    /// Pages of addresses without memory, with those that wait for their next use.
    pub(crate) retained: usize,
    /// Pages in purge batches.
    pub(crate) purging: usize,
    pub(crate) mapped: usize,
    /// Runs that were handed out for slabs or large blocks, and runs that came back.
    pub(crate) taken: u64,
    pub(crate) given: u64,
    pub(crate) purges: PurgeCounts,
    /// Records that stand for no run, and all records ever made.
    pub(crate) spares: usize,
    pub(crate) records: usize,
    /// Pages whose addresses were lost.
    pub(crate) abandoned: usize,
}

/// Counts of the purging of pages in one state.
#[derive(Clone, Copy, Default)]
pub(crate) struct Purges {
    /// Purged batches.
    pub(crate) passes: u64,
    /// System calls, one for each run that was purged.
    pub(crate) calls: u64,
    /// Pages that were given back.
    pub(crate) pages: u64,
}

impl Purges {
    /// Adds the counts of `more`.
    pub(in crate::back) fn add(&mut self, more: Purges) {
        self.passes += more.passes;
        self.calls += more.calls;
        self.pages += more.pages;
    }
}

/// Counts of purging, by the state of the pages before.
#[derive(Clone, Copy, Default)]
pub(crate) struct PurgeCounts {
    pub(crate) dirty: Purges,
    pub(crate) muzzy: Purges,
}

impl PurgeCounts {
    /// The counts for pages in a state. `None`: they have no memory, and only their addresses go.
    pub(in crate::back) fn of(&mut self, from: ExtentState) -> Option<&mut Purges> {
        match from {
            ExtentState::Muzzy => Some(&mut self.muzzy),
            ExtentState::Retained => None,
            _ => Some(&mut self.dirty),
        }
    }
}

impl PageCounts {
    /// Adds free runs, and what they know of their pages.
    pub(in crate::back) fn add(&mut self, runs: &FreeRuns) {
        self.dirty += runs.pages(ExtentState::Dirty);
        self.muzzy += runs.pages(ExtentState::Muzzy);
        self.retained += runs.without_memory();
        self.purging += runs.away();
        self.mapped += runs.mapped();
        let (spares, made) = runs.records();
        self.spares += spares;
        self.records += made;
        self.abandoned += runs.abandoned();
    }
}

#[cfg(any(test, feature = "checks"))]
impl PageCounts {
    /// The sum of the pages in all states.
    pub(crate) fn sum(&self) -> usize {
        self.active + self.dirty + self.muzzy + self.retained + self.purging
    }
}
