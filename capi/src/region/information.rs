//! What there is to know about regions.

use super::abi::{Vmalloc, Vmdisc, Vmstat, count, handle};
use super::inside::Way;
use super::kinds::{self, Span};
use super::list::Regions;
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
/// The region is not locked while `walkf` runs. It may look at regions, and even close them.
///
/// Errors: -1 with `EINVAL` for a null callback.
///
/// # Safety
/// `vm` must be NULL or a handle, and `walkf` must accept `handle` and must not unwind.
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
    // The list of published regions comes before that of handles, because `walkf` may open and
    // close regions.
    regions::alone(|| {
        if vm.is_null() {
            return walk_all(walkf, handle);
        }
        let walk = Walk { regions: &Regions::hold(), way: Way::Call, walkf, handle };
        walk.region(vm).unwrap_or_default()
    })
}

/// Walks over the segments of all regions, those of other threads too.
fn walk_all(walkf: SeeSegment, handle: *mut c_void) -> c_int {
    let regions = Regions::hold();
    let walk = Walk { regions: &regions, way: Way::Visit, walkf, handle };
    let mut next = Some(kinds::first());
    while let Some(region) = next {
        match walk.region(region.address()) {
            Some(0..) => next = regions.next(region),
            // The region is gone, and with it the way to the next one.
            None => next = None,
            Some(negative) => return negative,
        }
    }
    0
}

/// A walk over segments.
struct Walk<'a> {
    regions: &'a Regions,
    way: Way,
    walkf: SeeSegment,
    handle: *mut c_void,
}

impl Walk<'_> {
    /// Shows the segments of a region. Returns a negative number that the program returned, or else
    /// 0, or `None` if the program closed the region.
    fn region(&self, vm: *mut Vmalloc) -> Option<c_int> {
        let mut seen = 0;
        loop {
            // SAFETY: the region is open.
            let region = unsafe { &*vm };
            let mut spans: [Span; BATCH] = [(0, 0); BATCH];
            let found = (kinds::of(region).segments)(region, self.way, seen, &mut spans);
            for (start, bytes) in spans.into_iter().take(found) {
                let result = self.segment(region, start, bytes)?;
                if result < 0 {
                    return Some(result);
                }
            }
            seen += found;
            if found < BATCH {
                return Some(0);
            }
        }
    }

    /// Shows a segment. Returns the result, or `None` if the region is not open any more.
    fn segment(&self, region: &Vmalloc, start: usize, bytes: usize) -> Option<c_int> {
        let (vm, disc) = (region.address(), region.disc());
        let removed = self.regions.removed();
        let start = ptr::with_exposed_provenance_mut(start);
        // SAFETY: the caller of `vmwalk` vouches for the function.
        let result = unsafe { (self.walkf)(vm, start, bytes, disc, self.handle) };
        let is_open = self.regions.removed() == removed || self.regions.has(vm);
        (result < 0 || is_open).then_some(result)
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
