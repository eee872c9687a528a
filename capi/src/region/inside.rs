//! One call that is in a region: it holds the lock, and stands for the discipline.

use super::abi::{Vmalloc, event};
use super::disciplines::Source;
use super::warnings::vmdbwarn;
use core::ffi::c_void;
use core::ptr::{self, NonNull};
use lumalloc_region::raw::{Call, Data, Entry};
use lumalloc_region::{
    Best, Debug, Discipline, Last, Method, Pool, Profile, Resized, Retry, Warning, mode,
};

/// The flags of a region of whose calls somebody is told.
const SPECIAL: u32 = mode::TRACE | mode::DBCHECK | mode::ANNOUNCE;

/// The discipline of a region, for one call.
pub(super) struct Inside<'a> {
    vm: &'a Vmalloc,
    /// How the region was entered. `None`: it is not locked, because nobody else knows it yet, or
    /// any more.
    entry: Option<Entry>,
    way: Way,
}

/// Who enters a region.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A call of the program.
    Call,
    /// A thread to which the region need not belong, and which holds the lock of the list of
    /// published regions.
    Visit,
}

impl<'a> Inside<'a> {
    /// Enters a region. Returns `None` if a call of this thread is in it; and, in a region that
    /// belongs to one thread at a time, if any call is. A region without memory is in a call.
    #[inline]
    pub(super) fn enter(vm: &'a Vmalloc) -> Option<Inside<'a>> {
        vm.region()?;
        let entry = entry_of_call(vm)?;
        Inside::entered(vm, entry, Way::Call)
    }

    /// As [`Inside::enter`], for a visitor: a region of another thread can be entered too, and none
    /// is waited for long.
    pub(super) fn visit(vm: &'a Vmalloc) -> Option<Inside<'a>> {
        let entry = vm.head().entry();
        let is_in = vm.head().visit(entry);
        Inside::entered(vm, is_in.then_some(entry)?, Way::Visit)
    }

    #[inline]
    fn entered(vm: &'a Vmalloc, entry: Entry, way: Way) -> Option<Inside<'a>> {
        let mut inside = Inside { vm, entry: Some(entry), way };
        inside.mend().then_some(inside)
    }

    /// As [`Inside::enter`], to clear or close a region, also one that cannot be made whole.
    pub(super) fn enter_to_end(vm: &'a Vmalloc) -> Option<Inside<'a>> {
        vm.region()?;
        let mut inside = Inside { vm, entry: Some(entry_of_call(vm)?), way: Way::Call };
        inside.mend();
        Some(inside)
    }

    /// Makes the region whole again if a process ended in it. Returns false if it cannot be.
    #[inline]
    fn mend(&mut self) -> bool {
        let is_damaged = self.entry == Some(Entry::Processes) && self.vm.head().lock().is_damaged();
        !is_damaged || self.mend_now()
    }

    #[cold]
    fn mend_now(&mut self) -> bool {
        match self.vm.meth.bit() {
            // SAFETY: the region has this method.
            mode::BEST => unsafe { self.call::<Best>() }.mend(),
            // SAFETY: as above.
            mode::LAST => unsafe { self.call::<Last>() }.mend(),
            // SAFETY: as above.
            mode::POOL => unsafe { self.call::<Pool>() }.mend(),
            // SAFETY: as above.
            mode::DEBUG => unsafe { self.call::<Debug>() }.mend(),
            // SAFETY: as above.
            mode::PROFILE => unsafe { self.call::<Profile>() }.mend(),
            _ => false,
        }
    }

    /// Enters a region that belongs to one thread at a time and of which nobody is told anything.
    /// Returns `None` for other regions, and if a call is in it.
    #[inline]
    pub(super) fn enter_plain(vm: &'a Vmalloc) -> Option<Inside<'a>> {
        let is_plain = vm.head().enter_unless(SPECIAL);
        is_plain.then(|| Inside { vm, entry: Some(Entry::Alone), way: Way::Call })
    }

    /// Stands for the discipline of a handle that no other thread knows.
    pub(super) fn alone(vm: &'a Vmalloc) -> Inside<'a> {
        Inside { vm, entry: None, way: Way::Call }
    }

    /// Keeps the region locked for ever: its core data is given back.
    pub(super) fn forget_lock(&mut self) {
        self.entry = None;
    }

    /// Gives access to the region for one call.
    ///
    /// # Safety
    /// The region has the method `M`.
    #[inline]
    pub(super) unsafe fn call<M: Method>(&mut self) -> Call<'_, M, Inside<'a>> {
        let data = NonNull::from(self.vm.head()).cast::<Data<M::State>>();
        // SAFETY: the region is open and locked, and has this method (the caller's promise).
        unsafe { Call::new(data, self) }
    }

    #[inline]
    fn source(&self) -> Source<'a> {
        // SAFETY: handle and discipline exist while the region is open.
        unsafe { Source::new(self.vm.address(), self.vm.disc()) }
    }

    #[inline]
    fn leave(&mut self) {
        match (self.entry.take(), self.way) {
            (Some(Entry::Alone), Way::Call) => self.vm.head().lock().leave(Entry::Alone),
            (Some(entry), way) => self.leave_another(entry, way),
            (None, _) => {}
        }
    }

    #[inline(never)]
    fn leave_another(&self, entry: Entry, way: Way) {
        match way {
            Way::Call => self.vm.head().lock().leave(entry),
            Way::Visit => self.vm.head().end_visit(entry),
        }
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.leave();
    }
}

// SAFETY: the program promises that its function returns memory that is the region's.
unsafe impl Discipline for Inside<'_> {
    #[inline]
    fn round(&self) -> usize {
        self.source().round()
    }

    fn growth(&self, extent: usize) -> usize {
        self.source().growth(extent)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.source().memory(None, 0, size)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        match self.source().memory(Some(segment), size, new_size) {
            Some(same) if same == segment => Resized::InPlace,
            Some(another) if new_size > size => Resized::Another(another),
            _ => Resized::Refused,
        }
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        self.source().memory(Some(segment), size, 0).is_some()
    }

    /// The region is not locked while `exceptf` runs, so that it may free blocks.
    fn no_memory(&mut self, size: usize) -> Retry {
        self.leave();
        let retry = match self.source().announce(event::NOMEM, number(size)) {
            Some(1..) => Retry::Repeat,
            Some(0) => Retry::AskOnce,
            _ => Retry::Fail,
        };
        let Some(entry) = entry_of_call(self.vm) else { return Retry::Fail };
        self.entry = Some(entry);
        if self.mend() { retry } else { Retry::Fail }
    }

    fn warn(&mut self, warning: &Warning, _region: usize) {
        vmdbwarn(self.vm, warning);
    }
}

/// Enters a region, and returns how. It may become one of several threads meanwhile, if malloc is
/// to use it.
#[inline]
fn entry_of_call(vm: &Vmalloc) -> Option<Entry> {
    let entry = vm.head().entry();
    if vm.head().enter(entry) {
        return Some(entry);
    }
    let another = vm.head().entry();
    (another != entry && vm.head().enter(another)).then_some(another)
}

/// A number where an event has a pointer.
fn number(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

/// Enters a region with the method `M`, and runs `f` in it. Returns `None` if a call is in it.
///
/// # Safety
/// The region has the method `M`.
#[inline]
pub(super) unsafe fn inside<M: Method, T>(
    vm: &Vmalloc,
    way: Way,
    f: impl FnOnce(&mut Call<'_, M, Inside<'_>>) -> T,
) -> Option<T> {
    let mut inside = match way {
        Way::Call => Inside::enter(vm)?,
        Way::Visit => Inside::visit(vm)?,
    };
    // SAFETY: the caller's promise.
    let mut call = unsafe { inside.call::<M>() };
    Some(f(&mut call))
}

/// Runs `f` on the core data of a region that belongs to one thread at a time, and of which nobody
/// is told anything. Returns `None` for other regions, and if a call is in it.
///
/// # Safety
/// The region has a method with the state `S`.
#[inline]
pub(super) unsafe fn quickly<S, T>(
    vm: &Vmalloc,
    f: impl FnOnce(&Data<S>) -> Option<T>,
) -> Option<T> {
    let head = vm.head();
    if !head.enter_unless(SPECIAL) {
        return None;
    }
    // SAFETY: the core data begins with the head, and is of this type (the caller's promise).
    let result = f(unsafe { NonNull::from(head).cast::<Data<S>>().as_ref() });
    head.lock().leave(Entry::Alone);
    result
}
