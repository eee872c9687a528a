//! The end of an arena's pages: every unused run gives its addresses back, and what is not taken
//! goes to another arena.

use super::chunk_notes;
use super::extent::{Extent, ExtentState};
use super::in_hand::InHand;
use super::page_allocator::PageAllocator;
use super::page_map;
use super::page_provider::PageProvider;
use core::ptr::NonNull;

/// Gives a run's addresses back, which is in nobody's list and not in the page map. Under no lock.
/// `false`: they stay ours.
pub(crate) fn release(provider: &dyn PageProvider, run: &'static Extent) -> bool {
    chunk_notes::forget_lost_chunks(run);
    let Some(base) = NonNull::new(run.base_ptr()) else { return false };
    // SAFETY: the run is unused, and nobody looks at it.
    unsafe { provider.release(base, run.bytes()) }
}

impl PageAllocator {
    /// An unused run that is in nobody's list any more, nor in the page map.
    pub(crate) fn take_unused(&mut self) -> Option<InHand> {
        self.file_rest();
        self.file_ready();
        let states = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];
        let (state, run) = states
            .into_iter()
            .find_map(|state| self.cache(state).oldest().map(|run| (state, run)))?;
        let run = self.cache(state).remove(run);
        self.counts.purging += run.pages();
        page_map::bury(&run);
        Some(run)
    }

    /// Strikes a run that [`PageAllocator::take_unused`] answered off the books.
    pub(crate) fn strike_off(&mut self, run: InHand) {
        self.counts.purging -= run.pages();
        self.forget(run);
        self.report();
    }

    /// Takes in addresses, with or without memory, that another arena leaves. Without memory for a
    /// record they are lost.
    pub(crate) fn adopt(&mut self, base: usize, pages: usize) {
        if self.spares.keep().is_none() {
            return;
        }
        let Some(record) = self.spares.take() else { return };
        record.set_range(base, pages);
        page_map::recover(record.bytes());
        let run = self.hold_new(record, false);
        self.file(run, ExtentState::Dirty);
    }
}
