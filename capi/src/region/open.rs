//! Opening and closing regions, and what holds for a whole region.

use super::abi::{self, Vmalloc, Vmdisc, Vmethod, event, handle};
use super::disciplines::Source;
use super::fork;
use super::kinds::{self, Kind};
use super::list::Regions;
use super::{publish, vmregion};
use crate::errno;
use alloc_core::control::diversion::past;

use alloc_core::raw;
use core::ffi::{c_int, c_void};
use core::ptr;
use lumalloc_region::mode;
use lumalloc_region::raw::{Entry, Form, Head};

/// The flags that `vmopen` knows.
const OPEN_FLAGS: u32 = mode::FLAGS | mode::ANNOUNCE;

/// `vmopen`: opens a region. Source: vmalloc(3).
///
/// Errors: NULL with `EINVAL` when an argument or `memoryf` is NULL, the method is unknown, the
/// earlier region is none, or `exceptf` refuses; with `ENOMEM` when there is no memory; with
/// `EBUSY` when the earlier region is open and its handle lies in its memory.
///
/// # Safety
/// Pointers other than NULL must be those of a discipline and of a method. The discipline must
/// exist as long as the region, and its functions must do what vmalloc(3) says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmopen(
    disc: *mut Vmdisc,
    meth: *mut Vmethod,
    flags: c_int,
) -> *mut Vmalloc {
    // SAFETY: the caller's promise.
    let parts = unsafe { disc.as_ref() };
    // SAFETY: the caller's promise.
    let method = unsafe { meth.as_ref() };
    let kind = method.and_then(|method| kinds::with_method(method.bit()));
    let Some(kind) = kind.filter(|_| parts.is_some_and(|parts| parts.memoryf.is_some())) else {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    };
    prepare();
    // SAFETY: the caller's promise.
    match unsafe { open(disc, kind, abi::flags(flags, OPEN_FLAGS)) } {
        Ok(vm) => {
            // SAFETY: the handle is new.
            publish::add(unsafe { &*vm }, b"");
            vm
        }
        Err(code) => {
            errno::set(code);
            ptr::null_mut()
        }
    }
}

/// Is called before a region is opened.
pub(super) fn prepare() {
    fork::register();
}

/// Opens a region. Returns its handle, or what `errno` is to be.
///
/// # Safety
/// As for [`vmopen`]; the discipline has a `memoryf`.
unsafe fn open(disc: *mut Vmdisc, kind: &Kind, flags: u32) -> Result<*mut Vmalloc, c_int> {
    // What the discipline sees until the handle has its place.
    let temporary = kinds::stand_in(kind, disc);
    // SAFETY: the discipline exists (the caller's promise), and so does the handle.
    let source = unsafe { Source::new(temporary.address(), disc) };
    let mut earlier: *mut c_void = ptr::null_mut();
    let flags = if source.is_private() { flags } else { flags | mode::COMMON };
    let head = match source.announce(event::OPEN, (&raw mut earlier).cast()).unwrap_or(0) {
        ..0 => return Err(libc::EINVAL),
        0 => {
            let handle = if earlier.is_null() { 0 } else { size_of::<Vmalloc>() };
            let more = if handle == 0 { 0 } else { mode::MEMORYF };
            let form = Form { flags: flags | more, handle };
            (kind.open)(&temporary, form).ok_or(libc::ENOMEM)?.as_ptr()
        }
        // SAFETY: the program promises that this is the core data of a region, or NULL.
        _ => unsafe { reopened(earlier, kind, flags) }?,
    };
    // SAFETY: the core data is that of the region, and its discipline exists.
    let opened = unsafe { with_data(disc, kind, head) };
    if opened.is_err() && earlier.is_null() {
        (kind.close)(&Vmalloc::new(kind.method, disc, head.cast()));
    }
    opened
}

/// Makes the handle of a region, and adds it to the list.
///
/// # Safety
/// The core data is that of a region with this method, which is open with this discipline.
pub(super) unsafe fn with_data(
    disc: *mut Vmdisc,
    kind: &Kind,
    head: *mut Head,
) -> Result<*mut Vmalloc, c_int> {
    let vm = Vmalloc::new(kind.method, disc, head.cast());
    // SAFETY: the core data is that of the region.
    let place = unsafe { &*head }.handle().map(ptr::with_exposed_provenance_mut::<Vmalloc>);
    let place = place.unwrap_or_else(|| past(|| raw::malloc(size_of::<Vmalloc>()).cast()));
    if place.is_null() {
        return Err(libc::ENOMEM);
    }
    // SAFETY: the place is the region's own, or new, and long enough.
    unsafe { place.write(vm) };
    // SAFETY: the handle is there now.
    let vm = unsafe { &*place };
    // SAFETY: as above.
    unsafe { Source::new(place, disc) }.announce(event::ENDOPEN, ptr::null_mut());
    Regions::hold().add(vm);
    Ok(place)
}

/// Returns the core data of an earlier region, if it is that of a region with this method, or what
/// `errno` is to be. A region that is open cannot get a second handle in its own memory.
///
/// # Safety
/// The pointer is NULL, or leads to readable memory of a region.
unsafe fn reopened(data: *mut c_void, kind: &Kind, flags: u32) -> Result<*mut Head, c_int> {
    let data = data.cast::<Head>();
    if !data.is_aligned() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller's promise.
    let head = unsafe { data.as_ref() }.ok_or(libc::EINVAL)?;
    if !head.is_intact(kind.method.bit()) {
        return Err(libc::EINVAL);
    }
    let place = head.handle().map(ptr::with_exposed_provenance::<Vmalloc>);
    if place.is_some_and(|place| Regions::hold().has(place)) {
        return Err(libc::EBUSY);
    }
    if head.entry() == Entry::Alone {
        // The thread that was in the region is gone.
        head.free_lock();
    }
    head.change_mode(flags, true);
    Ok(data)
}

/// `vmclose`: closes a region, with all its blocks. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 with `EINVAL` for NULL, for `Vmheap`, for a handle that is not open, and when
/// `exceptf` refuses; with `EBUSY` when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle, which is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmclose(vm: *mut Vmalloc) -> c_int {
    // SAFETY: the caller's promise.
    let Some(region) = (unsafe { handle(vm) }).filter(|vm| !kinds::is_heap(vm)) else {
        return fail(libc::EINVAL);
    };
    let is_used = |head: &Head| head.lock().is_held() && head.entry() == Entry::Alone;
    if region.region().is_none_or(is_used) {
        return fail(libc::EBUSY);
    }
    let disc = region.disc();
    // SAFETY: handle and discipline exist while the region is open.
    let source = unsafe { Source::new(vm, disc) };
    let answer = source.announce(event::CLOSE, ptr::without_provenance_mut(1)).unwrap_or(0);
    if answer < 0 || !Regions::hold().has(region) {
        return fail(libc::EINVAL);
    }
    publish::remove(region);
    if !Regions::hold().remove(region) {
        return fail(libc::EINVAL);
    }
    vmregion::forget(region);
    let has_own_place = region.head().handle().is_none();
    // What the discipline sees at the end, when the handle may be gone with the segments.
    let kind = kinds::of(region);
    let temporary = match answer {
        0 => kinds::stand_in(kind, disc),
        _ => Vmalloc::new(region.meth, disc, region.data()),
    };
    if answer == 0 && !(kind.close)(region) {
        Regions::hold().add(region);
        publish::add(region, b"");
        return fail(libc::EBUSY);
    }
    // SAFETY: the discipline exists, and so does the handle.
    unsafe { Source::new(temporary.address(), disc) }.announce(event::ENDCLOSE, ptr::null_mut());
    if has_own_place {
        // SAFETY: the handle came from malloc, and is not used any more (the caller's promise).
        past(|| unsafe { raw::free(vm.cast()) });
    }
    0
}

fn fail(code: c_int) -> c_int {
    errno::set(code);
    -1
}

/// `vmclear`: frees all blocks of a region, and keeps its segments. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 for NULL, for `Vmheap`, and when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle; blocks of the region are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmclear(vm: *mut Vmalloc) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { handle(vm) } {
        None => fail(libc::EINVAL),
        Some(vm) if kinds::is_heap(vm) => fail(libc::EINVAL),
        Some(vm) if (kinds::of(vm).clear)(vm) => 0,
        Some(_) => fail(libc::EBUSY),
    }
}

/// `vmset`: sets flags, or clears them if `on` is 0. Returns flags and method as they were before.
/// `VM_SHARE` stays as it is while a call is in the region, and set where malloc allocates. Of a
/// handle without core data it returns the method, and changes nothing. Source: vmalloc(3).
///
/// Errors: -1 for NULL.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmset(vm: *mut Vmalloc, flags: c_int, on: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(vm) = (unsafe { handle(vm) }) else { return fail(libc::EINVAL) };
    let (flags, on) = (abi::flags(flags, mode::FLAGS), on != 0);
    let is_turned = flags & mode::SHARE != 0;
    let Some(head) = vm.region() else { return vm.meth.bit().cast_signed() };
    // `Vmheap`, which no call opens, has a lock for traced calls.
    fork::register();
    if is_turned { head.turn(flags, on) } else { head.change_mode(flags, on) }.cast_signed()
}

/// `vmdisc`: replaces the discipline by `disc`, unless that is NULL, has another `memoryf`, or the
/// present one objects. Returns the discipline afterwards. Source: vmalloc(3).
///
/// Errors: NULL for NULL as region.
///
/// # Safety
/// As for [`vmopen`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmdisc(vm: *mut Vmalloc, disc: *mut Vmdisc) -> *mut Vmdisc {
    // SAFETY: the caller's promise.
    let Some(region) = (unsafe { handle(vm) }) else {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    };
    if disc.is_null() {
        return region.disc();
    }
    // SAFETY: handle and discipline exist while the region is open.
    let old = unsafe { Source::new(vm, region.disc()) };
    // SAFETY: the discipline exists (the caller's promise), and so does the handle.
    let new = unsafe { Source::new(vm, disc) };
    let is_agreed = || old.announce(event::DISC, disc.cast()).unwrap_or(0) == 0;
    if old.has_same_memory(new) && is_agreed() {
        region.set_disc(disc);
    }
    region.disc()
}
