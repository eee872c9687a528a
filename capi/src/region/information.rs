//! What there is to know about regions.

use super::abi::{Vmalloc, Vmdisc, Vmstat, count, handle};
use super::inside::Way;
use super::kinds::{self, Span};
use super::list::{Place, Regions};
use super::{position, trace, vmregion};
use crate::errno;
use alloc_core::observe::{self, regions};
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use lumalloc_region::mode;

/// How many segments are copied at a time, so that none is locked while a program looks.
const BATCH: usize = 32;

/// `int see(Vmalloc_t *vm, void *segment, size_t size, Vmdisc_t *disc, void *handle)`.
pub type SeeSegment =
    unsafe extern "C" fn(*mut Vmalloc, *mut c_void, usize, *mut Vmdisc, *mut c_void) -> c_int;

/// `vmregion`: the open region that has allocated the block at an address; NULL if there is none. A
/// region in which another call stays is left out. Source: vmalloc(3).
///
/// Errors: NULL with `ENOSYS` when regions of one thread cannot be looked at, because the system
/// refuses membarrier(2) to a process with several threads.
#[unsafe(no_mangle)]
pub extern "C" fn vmregion(addr: *mut c_void) -> *mut Vmalloc {
    let has_it = |vm: &&Vmalloc| (kinds::of(vm).has_block)(vm, Way::Visit, addr.addr());
    let with_method = |vm: &&Vmalloc| vm.meth.bit() & (mode::LAST | mode::POOL) == 0;
    let find = || {
        let regions = Regions::hold();
        let found = regions.each().filter(with_method).find(has_it)?;
        // Of several handles, the oldest one has obtained the segment.
        let oldest = regions.each().filter(|vm| vm.data() == found.data()).last();
        oldest.map(Vmalloc::address)
    };
    regions::alone(find).unwrap_or(ptr::null_mut())
}

/// `vmsegment`: the start of the region's segment in which an address lies, or NULL. Source:
/// vmalloc(3).
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsegment(vm: *mut Vmalloc, addr: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) };
    let segment = region.and_then(|vm| (kinds::of(vm).segment)(vm, addr.addr()));
    segment.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}

/// `vmwalk`: calls `walkf` for each segment of a region, or of all regions for NULL, until it
/// returns a negative number. Returns this number, or 0. Source: vmalloc(3).
///
/// Nothing is locked while `walkf` runs, so it may wait for other threads, and end in a jump to a
/// caller of `vmwalk`. It may look at regions, and open and close them: those that are opened
/// meanwhile are left out.
///
/// Errors: -1 with `EINVAL` for a null callback. `errno` is `ENOSYS` if regions of one thread were
/// left out, because the system refuses membarrier(2) to a process with several threads.
///
/// # Safety
/// `vm` must be NULL or a handle, and `walkf` must accept `handle`. No other thread may close a
/// region that `walkf` looks at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmwalk(
    vm: *mut Vmalloc,
    walkf: Option<SeeSegment>,
    handle: *mut c_void,
) -> c_int {
    let Some(walkf) = walkf else {
        errno::set(libc::EINVAL);
        return -1;
    };
    let way = if vm.is_null() { Way::Visit } else { Way::Call };
    // SAFETY: the caller's promise.
    let first = unsafe { vm.as_ref() }.unwrap_or(kinds::first());
    let mut place = Regions::hold().place_of(first);
    let walk = Walk { way, walkf, handle };
    loop {
        let result = walk.region(place);
        let next = if way == Way::Visit { Regions::hold().after(place) } else { None };
        match next.filter(|_| result >= 0) {
            Some(next) => place = next,
            None => return result.min(0),
        }
    }
}

/// A walk over segments. No value that a jump out of the program's function would leave behind is
/// there while that runs.
struct Walk {
    way: Way,
    walkf: SeeSegment,
    handle: *mut c_void,
}

impl Walk {
    /// Shows the segments of a region, as long as it is open. Returns a negative number that the
    /// program returned, or else 0.
    fn region(&self, place: Place) -> c_int {
        let mut seen = 0;
        loop {
            let mut spans: [Span; BATCH] = [(0, 0); BATCH];
            let found = self.copy(place, seen, &mut spans);
            for (start, bytes) in spans.into_iter().take(found) {
                match self.segment(place, start, bytes) {
                    Some(0..) => {}
                    None => return 0,
                    Some(negative) => return negative,
                }
            }
            seen += found;
            if found < BATCH {
                return 0;
            }
        }
    }

    /// Copies segments of a region, after so many of them. Returns how many there were.
    fn copy(&self, place: Place, seen: usize, spans: &mut [Span]) -> usize {
        let mut look = |vm: &Vmalloc| (kinds::of(vm).segments)(vm, self.way, seen, spans);
        if self.way == Way::Visit {
            // Other threads may close the region. Visits are made under the list of published
            // regions, which comes first.
            return regions::alone(|| Regions::hold().at(place).map_or(0, look));
        }
        // The list is not held while another call in the region is waited for.
        let vm = Regions::hold().at(place).map(Vmalloc::address);
        // SAFETY: the region is open, and stays so until `walkf` closes it.
        vm.map_or(0, |vm| look(unsafe { &*vm }))
    }

    /// Shows a segment. Returns the result, or `None` if the region is not open any more.
    fn segment(&self, place: Place, start: usize, bytes: usize) -> Option<c_int> {
        let parts = Regions::hold().at(place).map(|vm| (vm.address(), vm.disc()));
        let (vm, disc) = parts?;
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: the caller of `vmwalk` vouches for the function.
        Some(unsafe { (self.walkf)(vm, start, bytes, disc, self.handle) })
    }
}

/// `vmstat`: fills `*st` with numbers about a region, or for NULL about the heap of malloc. Returns
/// 0; if `st` is NULL, 1 if a call is in the region, and 0 otherwise. Source: vmalloc(3).
///
/// Errors: -1 with `EBUSY` when a call is in the region, so that it cannot be looked at.
///
/// # Safety
/// `vm` must be NULL or a handle, and `st` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmstat(vm: *mut Vmalloc, st: *mut Vmstat) -> c_int {
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) }.unwrap_or(vmregion::current());
    if st.is_null() {
        return c_int::from(is_busy(region));
    }
    let Some(stat) = (kinds::of(region).stat)(region, Way::Call) else {
        errno::set(libc::EBUSY);
        return -1;
    };
    let numbers = Vmstat {
        n_busy: count(stat.busy),
        n_free: count(stat.free),
        s_busy: stat.busy_bytes,
        s_free: stat.free_bytes,
        m_busy: stat.busy_largest,
        m_free: stat.free_largest,
        n_seg: count(stat.segments),
        extent: stat.extent,
        mode: region.head().mode().cast_signed(),
        ..match (vm.is_null(), kinds::is_heap(region)) {
            (true, true) => numbers_of_malloc(),
            (true, false) => vmregion::numbers(),
            _ => Vmstat::default(),
        }
    };
    // SAFETY: the caller's promise.
    unsafe { st.write(numbers) };
    0
}

/// The numbers that only malloc has: its arenas stand for regions.
fn numbers_of_malloc() -> Vmstat {
    let totals = observe::totals();
    let number = |value: u64| count(usize::try_from(value).unwrap_or(usize::MAX));
    Vmstat {
        n_region: count(totals.arenas_open as usize),
        n_open: number(totals.n_open),
        n_lock: number(totals.n_lock),
        n_probe: number(totals.n_probe),
        ..Vmstat::default()
    }
}

/// Returns whether a call is in a region. One without memory is inside `vmopen` or `vmclose`.
fn is_busy(vm: &Vmalloc) -> bool {
    vm.region().is_none_or(|head| head.lock().is_held())
}

/// `vmbusy`: whether a call is in a region: 1 or 0. Source: vmalloc(3).
///
/// Errors: -1 for NULL.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmbusy(vm: *mut Vmalloc) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { handle(vm) } {
        Some(vm) => c_int::from(is_busy(vm)),
        None => {
            errno::set(libc::EINVAL);
            -1
        }
    }
}

/// `vmlocked`: the same, and 0 for NULL.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmlocked(vm: *mut Vmalloc) -> c_uint {
    // SAFETY: the caller's promise.
    unsafe { handle(vm) }.map_or(0, |vm| c_uint::from(is_busy(vm)))
}

/// `vmdata`: the core data of a region, or NULL for NULL. Source: vmalloc(3).
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdata(vm: *mut Vmalloc) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { handle(vm) }.map_or(ptr::null_mut(), Vmalloc::data)
}

/// `vmdbcheck`: checks a region with `Vmdebug`, `Vmbest` or `Vmprofile`. Returns how many blocks
/// are corrupt. Source: vmalloc(3).
///
/// Errors: -1 for NULL, for other methods, and when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdbcheck(vm: *mut Vmalloc) -> c_int {
    let position = position::take();
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) };
    region.and_then(|vm| (kinds::of(vm).check)(vm, Way::Call, position)?).map_or(-1, count)
}

/// `vmtrbusy`: writes a trace line for each block in use. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 without a descriptor, for NULL, for `Vmlast` and `Vmpool`, and when a call is in the
/// region.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmtrbusy(vm: *mut Vmalloc) -> c_int {
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) }.filter(|_| trace::has_descriptor());
    let is_done = region.is_some_and(|vm| {
        (kinds::of(vm).blocks)(vm, &mut |address, size| trace::write_busy(vm, address, size))
    });
    if is_done { 0 } else { -1 }
}
