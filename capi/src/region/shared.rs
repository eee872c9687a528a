//! The discipline of regions in files and shared segments. A program does not see it but through
//! `vmdisc`.

use super::abi::{Memory, Vmalloc, Vmdisc, event};
use alloc_core::control::diversion::past;
use alloc_core::{PAGE, raw};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};
use lumalloc_region::raw::Mapping;
use lumalloc_region::{Discipline, Resized};

/// The discipline of one file or segment, for all handles of this process.
#[repr(C)]
pub(super) struct Shared {
    disc: Vmdisc,
    mapping: Mapping,
    /// How many handles there are.
    handles: AtomicUsize,
}

impl Shared {
    /// Makes the discipline of a mapping, for one handle. Returns `None` if there is no memory.
    pub(super) fn make(mapping: Mapping) -> Option<*mut Vmdisc> {
        let place = past(|| raw::malloc(size_of::<Shared>())).cast::<Shared>();
        if place.is_null() {
            return None;
        }
        let disc = Vmdisc {
            memoryf: Some(memory),
            exceptf: Some(except),
            round: PAGE,
            size: size_of::<Shared>(),
        };
        // SAFETY: the place is new, and long enough.
        unsafe { place.write(Shared { disc, mapping, handles: AtomicUsize::new(1) }) };
        Some(place.cast())
    }

    /// The discipline of a region, if it lies in a file or a shared segment.
    pub(super) fn of(vm: &Vmalloc) -> Option<&Shared> {
        // SAFETY: handle and discipline exist while the region is open.
        unsafe { Shared::at(vm.disc()) }
    }

    /// As [`Shared::of`], for a discipline.
    ///
    /// # Safety
    /// It exists as long as the reference is used.
    pub(super) unsafe fn at<'a>(disc: *mut Vmdisc) -> Option<&'a Shared> {
        // SAFETY: the caller's promise.
        let memoryf = unsafe { (*disc).memoryf }?;
        // SAFETY: only disciplines that were made here have this function.
        ptr::fn_addr_eq(memoryf, memory as Memory).then(|| unsafe { &*disc.cast::<Shared>() })
    }

    /// The pointer that handles hold.
    pub(super) fn disc(&self) -> *mut Vmdisc {
        (&raw const self.disc).cast_mut()
    }

    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Notes one handle more.
    pub(super) fn share(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes one handle less. The last one unmaps the region.
    ///
    /// # Safety
    /// The discipline came from [`Shared::make`], and the handle does not use it any more.
    pub(super) unsafe fn release(disc: *mut Vmdisc) {
        let place = disc.cast::<Shared>();
        // AcqRel: pairs with itself in other threads, which have used the mapping until then.
        // SAFETY: the discipline exists as long as a handle does.
        if unsafe { (*place).handles.fetch_sub(1, Ordering::AcqRel) } == 1 {
            // SAFETY: nobody else uses it any more.
            unsafe { ptr::drop_in_place(place) };
            // SAFETY: the place came from malloc.
            past(|| unsafe { raw::free(place.cast()) });
        }
    }
}

unsafe extern "C" fn memory(
    _vm: *mut Vmalloc,
    segment: *mut c_void,
    size: usize,
    new_size: usize,
    disc: *mut Vmdisc,
) -> *mut c_void {
    let shared = disc.cast::<Shared>();
    // SAFETY: disciplines with this function came from `Shared::make`; who calls is in the region.
    let mapping = unsafe { &mut (*shared).mapping };
    let Some(start) = NonNull::new(segment.cast::<u8>()).filter(|_| size != 0) else {
        return mapping.obtain(new_size).map_or(ptr::null_mut(), |new| new.as_ptr().cast());
    };
    // SAFETY: the caller passes a segment with its size.
    let is_done =
        new_size != 0 && unsafe { mapping.resize(start, size, new_size) } == Resized::InPlace;
    if is_done { segment } else { ptr::null_mut() }
}

/// Leaves the memory as it is when a handle is closed, and allows no other discipline.
unsafe extern "C" fn except(
    _vm: *mut Vmalloc,
    event: c_int,
    _object: *mut c_void,
    disc: *mut Vmdisc,
) -> c_int {
    match event {
        event::CLOSE => 1,
        event::ENDCLOSE => {
            // SAFETY: the discipline is of `Shared::make`, and its handle is closed.
            unsafe { Shared::release(disc) };
            0
        }
        event::NOMEM | event::DISC => -1,
        _ => 0,
    }
}
