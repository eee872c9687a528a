//! The list of open regions: `Vmheap`, then from the newest to the oldest.

use super::abi::Vmalloc;
use super::kinds;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use lumalloc_region::raw::{Entry, Lock};

static LOCK: Lock = Lock::new();

/// How many regions were taken off the list.
static REMOVED: AtomicUsize = AtomicUsize::new(0);

/// The list, while this thread holds its lock.
pub(super) struct Regions {
    /// Whether this thread does not hold the lock in an outer call too.
    is_outer: bool,
}

impl Regions {
    /// Waits until no other thread holds the list.
    pub(super) fn hold() -> Regions {
        Regions { is_outer: LOCK.enter(Entry::Shared) }
    }

    /// Adds a region that was opened.
    pub(super) fn add(&self, vm: &Vmalloc) {
        let first = kinds::first();
        vm.next.store(first.next.load(Ordering::Relaxed), Ordering::Relaxed);
        first.next.store(vm.address(), Ordering::Relaxed);
    }

    /// Takes a region off the list. Returns false if it is not on it.
    pub(super) fn remove(&self, vm: &Vmalloc) -> bool {
        let next = vm.next.load(Ordering::Relaxed);
        let before = self
            .each()
            .find(|other| !ptr::eq(*other, vm) && ptr::eq(other.next.load(Ordering::Relaxed), vm));
        if let Some(before) = before {
            before.next.store(next, Ordering::Relaxed);
            REMOVED.fetch_add(1, Ordering::Relaxed);
        }
        before.is_some()
    }

    /// Iterates over the regions.
    pub(super) fn each(&self) -> impl Iterator<Item = &Vmalloc> {
        core::iter::successors(Some(kinds::first()), |vm| after(vm))
    }

    /// Returns the region after another one.
    pub(super) fn next(&self, vm: &Vmalloc) -> Option<&Vmalloc> {
        after(vm)
    }

    /// Returns how many regions were taken off the list so far.
    pub(super) fn removed(&self) -> usize {
        REMOVED.load(Ordering::Relaxed)
    }

    /// Returns whether a region is open. The pointer may be that of a handle that is gone.
    pub(super) fn has(&self, vm: *const Vmalloc) -> bool {
        self.each().any(|other| ptr::eq(other, vm))
    }

    /// Keeps the list held after the value is gone, until [`Regions::release`].
    pub(super) fn keep(self) -> bool {
        let is_outer = self.is_outer;
        core::mem::forget(self);
        is_outer
    }

    /// Keeps the list held by this thread in the child of a fork, which was noted.
    pub(super) fn note_process(&self) {
        LOCK.note_process();
    }

    /// Ends what [`Regions::keep`] began.
    pub(super) fn release(is_outer: bool) {
        drop(Regions { is_outer });
    }
}

impl Drop for Regions {
    fn drop(&mut self) {
        if self.is_outer {
            LOCK.leave(Entry::Shared);
        }
    }
}

fn after<'a>(vm: &Vmalloc) -> Option<&'a Vmalloc> {
    // SAFETY: the list leads to handles of open regions, and is held.
    unsafe { vm.next.load(Ordering::Relaxed).as_ref() }
}
