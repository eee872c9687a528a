//! Regions in files and in shared memory, and the values that regions hold.

use super::abi::{Vmalloc, Vmdisc, handle};
use super::kinds::{self, Kind};
use super::list::Regions;
use super::open;
use super::publish;
use super::shared::Shared;
use crate::errno;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use lumalloc_region::mode;
use lumalloc_region::raw::{
    Change, FileForm, Mapping, Value, any_address, begin, object_of, when_made,
};

/// What `vmmvalue` does.
mod op {
    use super::c_int;

    pub(super) const GET: c_int = 0;
    pub(super) const SET: c_int = 1;
    pub(super) const ADD: c_int = 2;
}

/// `vmmopen`: opens the region in a file, or in a segment of System V. Source: vmalloc(3), 2011.
///
/// Errors: NULL with `EINVAL` for NULL or an empty name, a negative size, and for what is no region
/// or a broken one; with `EADDRINUSE` when something else lies at the region's addresses; with
/// `EBUSY` when another program has locked the file; with `ENOMEM` when the region cannot be so
/// large; and with the system's errors.
///
/// # Safety
/// `file` must be NULL or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmopen(file: *const c_char, project: c_int, size: isize) -> *mut Vmalloc {
    let Ok(size) = usize::try_from(size) else {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    };
    let form = FileForm { size, ..FileForm::default() };
    // SAFETY: the caller's promise.
    unsafe { opened(file, project, form) }
}

/// `vmmopenat`: opens the region in a file, at `base` unless that is NULL. It grows with the file.
/// Source: vmalloc(3), 1998, as `vmmopen`.
///
/// Errors: as for [`vmmopen`]; also `EINVAL` when the region lies elsewhere.
///
/// # Safety
/// `file` must be NULL or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmopenat(
    file: *const c_char,
    base: *mut c_void,
    round: usize,
) -> *mut Vmalloc {
    let form = FileForm { base: base.addr(), size: round, grows: true, exists: false };
    // SAFETY: the caller's promise.
    unsafe { opened(file, -1, form) }
}

/// # Safety
/// The name is NULL or NUL-terminated.
unsafe fn opened(file: *const c_char, project: c_int, form: FileForm) -> *mut Vmalloc {
    // SAFETY: the caller's promise.
    let path = (!file.is_null()).then(|| unsafe { CStr::from_ptr(file) });
    let opened = match path.filter(|path| !path.is_empty()) {
        Some(path) => open_path(path, project, form).inspect(|vm| {
            // SAFETY: the handle is new.
            publish::add(unsafe { &**vm }, publish::name_of(path));
        }),
        None => Err(libc::EINVAL),
    };
    opened.unwrap_or_else(|code| {
        errno::set(code);
        ptr::null_mut()
    })
}

fn open_path(path: &CStr, project: c_int, form: FileForm) -> Result<*mut Vmalloc, c_int> {
    open::prepare();
    let kind = kinds::with_method(mode::BEST).ok_or(libc::EINVAL)?;
    when_made(|| open_now(path, project, form, kind))
}

/// Opens the region, unless another process makes it: then the result is `None`.
fn open_now(
    path: &CStr,
    project: c_int,
    form: FileForm,
    kind: &Kind,
) -> Result<Option<*mut Vmalloc>, c_int> {
    // One thread at a time, so that the process maps a region once.
    let regions = Regions::hold();
    let object = object_of(path, project);
    let same = |shared: &&Shared| Some(shared.mapping().object()) == object;
    if let Some(shared) = regions.each().filter_map(Shared::of).find(same) {
        if form.base != 0 && form.base != shared.mapping().base() {
            return Err(libc::EINVAL);
        }
        shared.mapping().make_room_for(form)?;
        shared.share();
        return with_handle(shared.disc(), kind, shared.mapping().data()).map(Some);
    }
    let mapped = if project < 0 {
        Mapping::of_file(path, form)?
    } else {
        Mapping::of_segment(path, project, form.size)?
    };
    let Some(mut mapping) = mapped else { return Ok(None) };
    let head = begin(&mut mapping)?;
    let disc = Shared::make(mapping).ok_or(libc::ENOMEM)?;
    with_handle(disc, kind, head.as_ptr().expose_provenance()).map(Some)
}

/// Makes a handle, which is noted in the discipline of its region already.
fn with_handle(disc: *mut Vmdisc, kind: &Kind, data: usize) -> Result<*mut Vmalloc, c_int> {
    // SAFETY: the region is open, and the discipline exists.
    let vm = unsafe { open::with_data(disc, kind, ptr::with_exposed_provenance_mut(data)) };
    if vm.is_err() {
        // SAFETY: the discipline exists, and the handle that was noted does not.
        unsafe { Shared::release(disc) };
    }
    vm
}

/// `vmmvalue`: finds or changes the value of a key. Returns the value afterwards. Source:
/// vmalloc(3), 2011.
///
/// Errors: NULL, without a change of `errno` when the key has no value; with `EINVAL` for NULL, for
/// `Vmheap`, for a pool, and for an unknown operation; with `ENOMEM`; with `EBUSY` when a call is
/// in the region.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmvalue(
    vm: *mut Vmalloc,
    key: c_int,
    value: *mut c_void,
    op: c_int,
) -> *mut c_void {
    let change = match op {
        op::GET => Some(Change::Get),
        op::SET => Some(Change::Set(number(value))),
        op::ADD => Some(Change::Add(number(value))),
        _ => None,
    };
    // SAFETY: the caller's promise.
    let value = unsafe { changed(vm, key, change) };
    pointer(value.after)
}

/// `vmmset`: stores the value of a key if `set` is not 0, and returns the previous one, or `value`
/// if there was none. Otherwise returns the value. Source: vmalloc(3), 1998.
///
/// Errors: as for [`vmmvalue`].
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmset(
    vm: *mut Vmalloc,
    key: c_int,
    value: *mut c_void,
    set: c_int,
) -> *mut c_void {
    let change = if set == 0 { Change::Get } else { Change::Set(number(value)) };
    // SAFETY: the caller's promise.
    let value = unsafe { changed(vm, key, Some(change)) };
    pointer(value.before.or(value.after))
}

/// # Safety
/// `vm` is NULL or a handle.
unsafe fn changed(vm: *mut Vmalloc, key: c_int, change: Option<Change>) -> Value {
    // SAFETY: the caller's promise.
    let region = unsafe { handle(vm) };
    let has_values = |vm: &&Vmalloc| !kinds::is_heap(vm) && vm.meth.bit() & mode::POOL == 0;
    let (Some(vm), Some(change)) = (region.filter(has_values), change) else {
        errno::set(libc::EINVAL);
        return Value::default();
    };
    let key = u64::from(key.cast_unsigned());
    let Some(value) = (kinds::of(vm).value)(vm, key, change) else {
        errno::set(libc::EBUSY);
        return Value::default();
    };
    if value.after.is_none() && change != Change::Get {
        errno::set(libc::ENOMEM);
    }
    value
}

fn number(value: *mut c_void) -> u64 {
    value.expose_provenance() as u64
}

fn pointer(value: Option<u64>) -> *mut c_void {
    ptr::with_exposed_provenance_mut(value.unwrap_or(0) as usize)
}

/// `vmmcleanup`: lets `vmclose` remove the file or the segment. Returns the core data. Source:
/// vmalloc(3), 2011.
///
/// Errors: NULL with `EINVAL` for what is no region of [`vmmopen`].
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmcleanup(vm: *mut Vmalloc) -> *mut c_void {
    // SAFETY: the caller's promise.
    let shared = unsafe { handle(vm) }.and_then(|vm| Some((vm, Shared::of(vm)?)));
    let Some((vm, shared)) = shared else {
        errno::set(libc::EINVAL);
        return ptr::null_mut();
    };
    shared.mapping().remove_when_closed();
    vm.data()
}

/// `vmmrelease`: for a `type` above 0, the same. Source: the library of 2011.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmmrelease(vm: *mut Vmalloc, r#type: c_int) {
    if r#type > 0 {
        // SAFETY: the caller's promise.
        unsafe { vmmcleanup(vm) };
    }
}

/// `vmmaddress`: an address at which `size` bytes can be mapped; NULL if there is none. Source:
/// vmalloc(3), 2011.
#[unsafe(no_mangle)]
pub extern "C" fn vmmaddress(size: usize) -> *mut c_void {
    any_address(size).map_or(ptr::null_mut(), ptr::without_provenance_mut)
}
