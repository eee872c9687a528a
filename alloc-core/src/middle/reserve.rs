//! The reserve of an arena: unused pages with memory that stay, whatever purges. For threads that
//! must go on when there is no memory left, or when others are stuck in the allocator: a thread
//! whose arena has one purges for nobody, waits for no other arena, and its allocations fail at
//! once where nothing is left (see `front/background.rs` and `front/retry.rs`).

use super::arena::Arena;
use super::owner::{self, Owner};
use super::tidy_bins;
use crate::ground::units::{LG_PAGE, PAGE};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

impl Arena {
    /// Bytes of unused pages that stay.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserve.load(Relaxed) << LG_PAGE
    }

    /// Whether any stay.
    pub(crate) fn has_reserve(&self) -> bool {
        self.reserve.load(Relaxed) != 0
    }

    /// Sets how many bytes stay, in whole pages, and purges what is unused beyond. Slabs without a
    /// block in use are unused pages too: those of its threads are given back before.
    pub(crate) fn set_reserve(&'static self, bytes: usize) {
        self.reserve.store(bytes.div_ceil(PAGE), Relaxed);
        owner::all().filter(|owner| ptr::eq(owner.home.get(), self)).for_each(Owner::settle);
        tidy_bins::tidy(self);
        self.purge_by_hand(0, 0);
    }

    /// The pages are like others from now on.
    pub(super) fn forget_reserve(&self) {
        self.reserve.store(0, Relaxed);
    }

    /// Purges unused pages until no more than these are left, or than the reserve, wherever it is
    /// called.
    pub(super) fn purge_now(&self, dirty: usize, muzzy: usize) {
        let dirty = dirty.max(self.reserve.load(Relaxed));
        loop {
            let Some(batch) = self.pages.lock().allocator.take_batch(dirty, muzzy) else { return };
            batch.purge();
            if !self.pages.lock().allocator.file_batch(batch) {
                return;
            }
        }
    }
}
