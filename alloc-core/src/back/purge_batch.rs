//! The system's part of purging, outside all locks: runs that are in nobody's list meanwhile.

use super::extent::{Extent, ExtentState};
use super::page_provider::{PageProvider, Purged};
use core::ptr::NonNull;

/// Runs on their way back to the system, chained by their `younger` links.
pub(crate) struct Batch {
    first: Option<&'static Extent>,
    lazily: bool,
    provider: &'static dyn PageProvider,
}

impl Batch {
    /// The runs from `first` on; `lazily`: the system may take its time.
    pub(crate) fn new(
        first: Option<&'static Extent>,
        lazily: bool,
        provider: &'static dyn PageProvider,
    ) -> Batch {
        Batch { first, lazily, provider }
    }

    /// The first run.
    pub(crate) fn first(&self) -> Option<&'static Extent> {
        self.first
    }

    /// The system calls. Runs outside all locks; the runs belong to the batch alone.
    pub(crate) fn purge(&self) {
        let mut next = self.first;
        while let Some(extent) = next {
            next = extent.younger.get();
            let Some(base) = NonNull::new(extent.base_ptr()) else { continue };
            let (state, zeroed) = self.purge_one(base, extent.bytes());
            extent.zeroed.set(zeroed);
            extent.after_purge.set(state);
        }
    }

    fn purge_one(&self, base: NonNull<u8>, size: usize) -> (ExtentState, bool) {
        // SAFETY: the run lies in one reservation and is free; nobody needs its contents.
        if self.lazily && unsafe { self.provider.purge_lazily(base, size) } {
            return (ExtentState::Muzzy, false);
        }
        // SAFETY: as above.
        match unsafe { self.provider.purge(base, size) } {
            Purged::Zeroed => (ExtentState::Retained, true),
            Purged::Undefined => (ExtentState::Retained, false),
            Purged::Refused => (ExtentState::Dirty, false),
        }
    }
}
