//! The disciplines of the library, and calls of any discipline.

use super::abi::{Memory, Vmalloc, Vmdisc};
use super::shared::Shared;
use alloc_core::PAGE;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicPtr;
use lumalloc_region::{Discipline, Heap, Resized, System};

/// A discipline that programs may change.
#[repr(transparent)]
pub(super) struct Changeable(UnsafeCell<Vmdisc>);

// SAFETY: programs that change a discipline see to it that no other thread uses it meanwhile.
unsafe impl Sync for Changeable {}

impl Changeable {
    const fn new(memoryf: Memory, size: usize) -> Changeable {
        let memoryf = Some(memoryf);
        Changeable(UnsafeCell::new(Vmdisc { memoryf, exceptf: None, round: 0, size }))
    }
}

pub(super) static SYSTEM: Changeable = Changeable::new(system_memory, size_of::<Vmdisc>());
static HEAP: Changeable = Changeable::new(heap_memory, size_of::<Vmdisc>());

/// `Vmdcsystem`: pages of the operating system.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmdcsystem: AtomicPtr<Vmdisc> = AtomicPtr::new(SYSTEM.0.get());

/// `Vmdcsbrk`: the same discipline.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmdcsbrk: AtomicPtr<Vmdisc> = AtomicPtr::new(SYSTEM.0.get());

/// `Vmdcheap`: blocks of `Vmheap`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmdcheap: AtomicPtr<Vmdisc> = AtomicPtr::new(HEAP.0.get());

impl Changeable {
    /// The pointer that handles hold.
    pub(super) const fn get(&self) -> *mut Vmdisc {
        self.0.get()
    }
}

unsafe extern "C" fn system_memory(
    _vm: *mut Vmalloc,
    segment: *mut c_void,
    size: usize,
    new_size: usize,
    _disc: *mut Vmdisc,
) -> *mut c_void {
    let in_pages = |size: usize| size.checked_next_multiple_of(PAGE);
    match (in_pages(size), in_pages(new_size)) {
        // SAFETY: the caller passes a segment with its size.
        (Some(size), Some(new_size)) => unsafe { supply(System, segment, size, new_size) },
        _ => ptr::null_mut(),
    }
}

unsafe extern "C" fn heap_memory(
    _vm: *mut Vmalloc,
    segment: *mut c_void,
    size: usize,
    new_size: usize,
    _disc: *mut Vmdisc,
) -> *mut c_void {
    // SAFETY: the caller passes a segment with its size.
    unsafe { supply(Heap, segment, size, new_size) }
}

/// A discipline of the region crate as `memoryf`.
///
/// # Safety
/// Unless `size` is 0 the segment came from the same discipline and has this size. It is not used
/// after if `new_size` is 0.
unsafe fn supply(
    mut discipline: impl Discipline,
    segment: *mut c_void,
    size: usize,
    new_size: usize,
) -> *mut c_void {
    if size == 0 {
        let new = if new_size == 0 { None } else { discipline.obtain(new_size) };
        return new.map_or(ptr::null_mut(), |new| new.as_ptr().cast());
    }
    let Some(start) = NonNull::new(segment.cast::<u8>()) else { return ptr::null_mut() };
    let is_done = if new_size == 0 {
        // SAFETY: the caller's promise.
        unsafe { discipline.release(start, size) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { discipline.resize(start, size, new_size) == Resized::InPlace }
    };
    if is_done { segment } else { ptr::null_mut() }
}

/// A discipline as the region of a handle sees it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    vm: *mut Vmalloc,
    disc: *mut Vmdisc,
    parts: &'a Vmdisc,
}

impl Source<'_> {
    /// The discipline at `disc`, for the handle at `vm`.
    ///
    /// # Safety
    /// Both exist while the value is used.
    #[inline]
    pub(super) unsafe fn new(vm: *mut Vmalloc, disc: *mut Vmdisc) -> Self {
        // SAFETY: the caller's promise.
        Source { vm, disc, parts: unsafe { &*disc } }
    }

    /// Announces an event. Returns `None` if nobody wants to know.
    pub(super) fn announce(self, event: c_int, object: *mut c_void) -> Option<c_int> {
        let exceptf = self.parts.exceptf?;
        // SAFETY: the program promises that the function takes any event of its region.
        Some(unsafe { exceptf(self.vm, event, object, self.disc) })
    }

    /// Returns whether anybody is told of events.
    pub(super) fn has_exceptf(self) -> bool {
        self.parts.exceptf.is_some()
    }

    /// Returns whether both get memory from the same function.
    pub(super) fn has_same_memory(self, other: Source<'_>) -> bool {
        let address = |memoryf: Memory| memoryf as usize;
        self.parts.memoryf.map(address) == other.parts.memoryf.map(address)
    }

    /// Returns what is known of the discipline, in one word.
    pub(super) fn name(self) -> &'static CStr {
        if self.is(system_memory) {
            c"system"
        } else if self.is(heap_memory) {
            c"heap"
        // SAFETY: the discipline exists as long as the value is used.
        } else if let Some(shared) = unsafe { Shared::at(self.disc) } {
            if shared.mapping().is_file() { c"file" } else { c"segment" }
        } else {
            c"program"
        }
    }

    /// Returns whether the memory is private to the process for certain.
    pub(super) fn is_private(self) -> bool {
        self.is(system_memory) || self.is(heap_memory)
    }

    fn is(self, memory: Memory) -> bool {
        self.parts.memoryf.is_some_and(|memoryf| memoryf as usize == memory as usize)
    }

    #[inline]
    pub(super) fn round(self) -> usize {
        self.parts.round
    }

    pub(super) fn growth(self, extent: usize) -> usize {
        if self.is(system_memory) {
            System.growth(extent)
        } else if self.is(heap_memory) {
            Heap.growth(extent)
        // SAFETY: the discipline exists as long as the value is used.
        } else if let Some(shared) = unsafe { Shared::at(self.disc) } {
            shared.mapping().growth(extent)
        } else {
            0
        }
    }

    /// Calls `memoryf`. Returns NULL without one.
    pub(super) fn memory(
        self,
        segment: Option<NonNull<u8>>,
        size: usize,
        new_size: usize,
    ) -> Option<NonNull<u8>> {
        let memoryf = self.parts.memoryf?;
        let segment = segment.map_or(ptr::null_mut(), |segment| segment.as_ptr().cast());
        // SAFETY: the program promises that the function takes its region's segments.
        NonNull::new(unsafe { memoryf(self.vm, segment, size, new_size, self.disc) }.cast())
    }
}
