//! The list of open regions: `Vmheap`, then from the newest to the oldest.

use super::abi::Vmalloc;
use super::index::Index;
use super::kinds;
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use lumalloc_region::raw::{Entry, Lock};

static LOCK: Lock = Lock::new();

/// The number of the region that was added last. Each has a number one higher than the one before
/// it, of the numbers that come round.
static NEWEST: AtomicU32 = AtomicU32::new(0);

/// What leads from handles to their places in the list.
struct Places(UnsafeCell<Index>);

// SAFETY: the index is used by who holds the list.
unsafe impl Sync for Places {}

static PLACES: Places = Places(UnsafeCell::new(Index::EMPTY));

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
        vm.age().store(NEWEST.fetch_add(1, Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let next = first.next.load(Ordering::Relaxed);
        vm.next.store(next, Ordering::Relaxed);
        first.next.store(vm.address(), Ordering::Relaxed);
        self.index(|index| {
            index.add(vm, first);
            if let Some(noted) = index.get(next) {
                noted.before = vm;
            }
        });
    }

    /// Takes a region off the list. Returns false if it is not on it.
    pub(super) fn remove(&self, vm: &Vmalloc) -> bool {
        let Some(before) = self.before(vm) else { return false };
        let next = vm.next.load(Ordering::Relaxed);
        before.next.store(next, Ordering::Relaxed);
        self.index(|index| {
            index.remove(vm);
            if let Some(noted) = index.get(next) {
                noted.before = before;
            }
        });
        REMOVED.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Returns the region before another one, which need not be on the list.
    fn before(&self, vm: &Vmalloc) -> Option<&Vmalloc> {
        let (noted, is_complete) =
            self.index(|index| (index.get(vm).map(|noted| noted.before), index.is_complete()));
        match noted {
            // SAFETY: the region is on the list, which is held, and so is the one before it.
            Some(before) => unsafe { before.as_ref() },
            None if is_complete => None,
            None => self.each().find(|other| {
                !ptr::eq(*other, vm) && ptr::eq(other.next.load(Ordering::Relaxed), vm)
            }),
        }
    }

    /// Runs `f` on the index. `f` does not come here again.
    fn index<T>(&self, f: impl FnOnce(&mut Index) -> T) -> T {
        // SAFETY: the list is held.
        f(unsafe { &mut *PLACES.0.get() })
    }

    /// Notes the number that a region has in the list of published regions.
    pub(super) fn set_number(&self, vm: &Vmalloc, number: usize) {
        self.index(|index| {
            if let Some(noted) = index.get(vm) {
                noted.number = Some(number);
            }
        });
    }

    /// Returns that number, if it was noted.
    pub(super) fn number(&self, vm: &Vmalloc) -> Option<usize> {
        self.index(|index| index.get(vm).and_then(|noted| noted.number))
    }

    /// Iterates over the regions.
    pub(super) fn each(&self) -> impl Iterator<Item = &Vmalloc> {
        core::iter::successors(Some(kinds::first()), |vm| after(vm))
    }

    /// Returns the place of a region that is open.
    pub(super) fn place_of(&self, vm: &Vmalloc) -> Place {
        let removed = REMOVED.load(Ordering::Relaxed);
        // All that are open now come after the first.
        let age = match kinds::is_heap(vm) {
            true => NEWEST.load(Ordering::Relaxed).wrapping_add(1),
            false => vm.age().load(Ordering::Relaxed),
        };
        Place { vm: vm.address(), age, removed }
    }

    /// Returns the region at a place, unless it was closed.
    pub(super) fn at(&self, place: Place) -> Option<&Vmalloc> {
        if place.is_as_it_was() {
            // SAFETY: no region was closed since this one was open.
            return Some(unsafe { &*place.vm });
        }
        let is_same = |vm: &&Vmalloc| {
            let age = vm.age().load(Ordering::Relaxed);
            ptr::eq(*vm, place.vm) && (age == place.age || kinds::is_heap(vm))
        };
        self.each().find(is_same)
    }

    /// Returns the place of the newest region that was there before the one at a place, which may
    /// have been closed.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        let next = match self.at(place) {
            Some(vm) if place.is_as_it_was() && !kinds::is_heap(vm) => after(vm),
            _ => self.each().find(|vm| !kinds::is_heap(vm) && place.is_behind(vm)),
        };
        next.map(|vm| self.place_of(vm))
    }

    /// Returns whether a region is open. The pointer may be that of a handle that is gone.
    pub(super) fn has(&self, vm: *const Vmalloc) -> bool {
        let (is_noted, is_complete) =
            self.index(|index| (index.get(vm).is_some(), index.is_complete()));
        is_noted
            || kinds::first_address().cast_const() == vm
            || !is_complete && self.each().any(|other| ptr::eq(other, vm))
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

/// A place in the list, which outlives its region: regions are added at the front only, so those
/// behind it are the ones that are older.
#[derive(Clone, Copy)]
pub(super) struct Place {
    vm: *const Vmalloc,
    age: u32,
    /// How many regions had been taken off the list.
    removed: usize,
}

impl Place {
    /// Returns whether no region was taken off the list since.
    fn is_as_it_was(self) -> bool {
        REMOVED.load(Ordering::Relaxed) == self.removed
    }

    /// Returns whether a region is older.
    fn is_behind(self, vm: &Vmalloc) -> bool {
        self.age.wrapping_sub(vm.age().load(Ordering::Relaxed)).cast_signed() > 0
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
