//! Finds open regions by the addresses of their handles, however many there are: a table by hash.
//!
//! A handle may be gone, so nothing is read at its address. The table grows by moving to a new one;
//! if there is no memory for that, it does not know all regions any more.

use super::abi::Vmalloc;
use alloc_core::control::diversion::past;
use alloc_core::raw;
use core::ptr;

/// What is noted of an open region.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    vm: *const Vmalloc,
    /// The one before it in the list.
    pub(super) before: *const Vmalloc,
    /// Its number in the list of published regions.
    pub(super) number: Option<usize>,
}

const NOTHING: Noted = Noted { vm: ptr::null(), before: ptr::null(), number: None };

/// How many places the first table has.
const FIRST: usize = 64;

/// The table. Who uses it holds the list of regions.
pub(super) struct Index {
    places: *mut Noted,
    /// A power of 2, or 0.
    length: usize,
    used: usize,
    is_complete: bool,
}

impl Index {
    pub(super) const EMPTY: Index =
        Index { places: ptr::null_mut(), length: 0, used: 0, is_complete: true };

    /// Returns whether a region that is not found is not open.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Notes a region that was not noted.
    pub(super) fn add(&mut self, vm: *const Vmalloc, before: *const Vmalloc) {
        if self.used >= self.length / 2 && !self.grow() {
            self.is_complete = false;
            return;
        }
        self.put(Noted { vm, before, number: None });
    }

    /// Returns what is noted of a region.
    pub(super) fn get(&mut self, vm: *const Vmalloc) -> Option<&mut Noted> {
        let at = self.find(vm)?;
        self.place(at)
    }

    /// Forgets a region. Returns what was noted of it.
    pub(super) fn remove(&mut self, vm: *const Vmalloc) -> Option<Noted> {
        let mut free = self.find(vm)?;
        let noted = self.replace(free, NOTHING)?;
        self.used -= 1;
        // What lies behind moves up, unless it lies between its first place and the free one.
        let mut at = self.next(free);
        while let Some(other) = self.place(at).copied().filter(|other| !other.vm.is_null()) {
            let first = self.first(other.vm);
            let (to_free, to_here) = (self.distance(first, free), self.distance(first, at));
            if to_free <= to_here {
                self.replace(free, other);
                self.replace(at, NOTHING);
                free = at;
            }
            at = self.next(at);
        }
        Some(noted)
    }

    /// Moves to a table of twice the length. Returns whether there was memory.
    fn grow(&mut self) -> bool {
        let length = (self.length * 2).max(FIRST);
        let places = past(|| raw::malloc(length * size_of::<Noted>())).cast::<Noted>();
        if places.is_null() {
            return false;
        }
        for at in 0..length {
            // SAFETY: the block has so many places.
            let place = unsafe { places.add(at) };
            // SAFETY: as above.
            unsafe { place.write(NOTHING) };
        }
        let new = Index { places, length, used: 0, is_complete: self.is_complete };
        let mut old = core::mem::replace(self, new);
        for at in 0..old.length {
            if let Some(noted) = old.place(at).copied().filter(|noted| !noted.vm.is_null()) {
                self.put(noted);
            }
        }
        // SAFETY: the block came from malloc, or there was none.
        past(|| unsafe { raw::free(old.places.cast()) });
        true
    }

    /// Writes to the first place that is free, from the region's own on. There is one.
    fn put(&mut self, noted: Noted) {
        let mut at = self.first(noted.vm);
        while self.place(at).is_some_and(|place| !place.vm.is_null()) {
            at = self.next(at);
        }
        self.replace(at, noted);
        self.used += 1;
    }

    fn find(&mut self, vm: *const Vmalloc) -> Option<usize> {
        if vm.is_null() {
            return None;
        }
        let mut at = self.first(vm);
        loop {
            match self.place(at)?.vm {
                found if ptr::eq(found, vm) => return Some(at),
                nothing if nothing.is_null() => return None,
                _ => at = self.next(at),
            }
        }
    }

    fn place(&mut self, at: usize) -> Option<&mut Noted> {
        if at >= self.length {
            return None;
        }
        // SAFETY: the table has so many places.
        let place = unsafe { self.places.add(at) };
        // SAFETY: as above; the table is borrowed.
        unsafe { place.as_mut() }
    }

    fn replace(&mut self, at: usize, noted: Noted) -> Option<Noted> {
        self.place(at).map(|place| core::mem::replace(place, noted))
    }

    /// The place at which the search for a region begins.
    fn first(&self, vm: *const Vmalloc) -> usize {
        /// An odd number without structure: the golden ratio.
        const FACTOR: usize = 0x9e37_79b9_7f4a_7c15;
        (vm.addr() >> 4).wrapping_mul(FACTOR) >> 32 & self.length.wrapping_sub(1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & self.length.wrapping_sub(1)
    }

    /// How many places lie from one up to another one.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.length.wrapping_sub(1)
    }
}
