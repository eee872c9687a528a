//! The functions that allocate and free.

use super::abi::{Vmalloc, handle, resize};
use super::disciplines::Vmdcheap;
use super::kinds::Vmbest;
use super::open::{vmclose, vmopen};
use crate::errno;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

/// Calls through the table of a handle, or returns `$else` with `EINVAL` for NULL.
macro_rules! through {
    ($vm:ident, $function:ident($($argument:expr),*), $else:expr) => {{
        // SAFETY: the caller passes NULL or a handle.
        match unsafe { handle($vm) } {
            // SAFETY: the function takes what this one takes.
            Some(vm) => unsafe { (vm.meth.$function)($vm, $($argument,)* 0) },
            None => {
                errno::set(libc::EINVAL);
                $else
            }
        }
    }};
}

/// `vmalloc`: a block of `size` bytes. Source: vmalloc(3).
///
/// Errors: NULL with `ENOMEM`; `EINVAL` for NULL; `EBUSY` when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe extern "C" fn vmalloc(vm: *mut Vmalloc, size: usize) -> *mut c_void {
    through!(vm, allocf(size), ptr::null_mut())
}

/// `vmalign`: a block at a multiple of `align`. Source: vmalloc(3).
///
/// Errors: NULL, as for [`vmalloc`], and with `EINVAL` for 0 and in a pool.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe extern "C" fn vmalign(vm: *mut Vmalloc, size: usize, align: usize) -> *mut c_void {
    through!(vm, alignf(size, align), ptr::null_mut())
}

/// `vmresize`: makes a block `size` bytes long. Source: vmalloc(3).
///
/// Errors: NULL, as for [`vmalloc`], and with `EINVAL` for what is no block. The block is as it
/// was.
///
/// # Safety
/// `vm` must be NULL or a handle. The block is not used at its old place after it moved.
#[unsafe(no_mangle)]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe extern "C" fn vmresize(
    vm: *mut Vmalloc,
    addr: *mut c_void,
    size: usize,
    how: c_int,
) -> *mut c_void {
    through!(vm, resizef(addr, size, how), ptr::null_mut())
}

/// `vmfree`: frees a block. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 with `EINVAL` for what is no block, and for what is not the latest one of `Vmlast`;
/// with `EBUSY` when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle. The block is not used any more.
#[unsafe(no_mangle)]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe extern "C" fn vmfree(vm: *mut Vmalloc, addr: *mut c_void) -> c_int {
    through!(vm, freef(addr), -1)
}

/// `vmcompact`: gives free memory back to the discipline. Returns 0. Source: vmalloc(3).
///
/// Errors: -1 for NULL, and when a call is in the region.
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmcompact(vm: *mut Vmalloc) -> c_int {
    through!(vm, compactf(), -1)
}

/// `vmaddr`: how far behind the start of its block an address lies; -1 outside blocks. Source:
/// vmalloc(3).
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmaddr(vm: *mut Vmalloc, addr: *mut c_void) -> c_long {
    through!(vm, addrf(addr), -1)
}

/// `vmsize`: the size of a block; -1 if it is none. Source: vmalloc(3).
///
/// # Safety
/// `vm` must be NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmsize(vm: *mut Vmalloc, addr: *mut c_void) -> c_long {
    through!(vm, sizef(addr), -1)
}

/// `vmnewsize`: `n * size + extra`, or `SIZE_MAX` if that is too large.
#[unsafe(no_mangle)]
pub extern "C" fn vmnewsize(n: usize, size: usize, extra: usize) -> usize {
    n.checked_mul(size).and_then(|bytes| bytes.checked_add(extra)).unwrap_or(usize::MAX)
}

/// `vmgetmem`: opens and closes regions over `Vmheap`, allocates and frees. Source: vmalloc(3).
///
/// # Safety
/// `vm` must be NULL or a handle, and `addr` NULL or one of its blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmgetmem(vm: *mut Vmalloc, addr: *mut c_void, size: usize) -> *mut c_void {
    if vm.is_null() {
        let (disc, meth) = (Vmdcheap.load(Ordering::Relaxed), Vmbest.load(Ordering::Relaxed));
        // SAFETY: the variables hold a discipline and a method, by the promise of who changes them.
        return unsafe { vmopen(disc, meth, 0) }.cast();
    }
    if addr.is_null() && size == 0 {
        // SAFETY: the caller's promise.
        unsafe { vmclose(vm) };
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe { vmresize(vm, addr, size, resize::COPY | resize::MOVE | resize::ZERO) }
}

/// `vmstrdup`: a copy of a string; NULL for NULL.
///
/// Errors: as for [`vmalloc`].
///
/// # Safety
/// `vm` must be NULL or a handle, and `string` NULL or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmstrdup(vm: *mut Vmalloc, string: *const c_char) -> *mut c_char {
    if string.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(string) }.to_bytes_with_nul();
    // SAFETY: the caller's promise.
    let copy = unsafe { vmalloc(vm, text.len()) }.cast::<u8>();
    if !copy.is_null() {
        // SAFETY: the new block is that long.
        unsafe { copy.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    }
    copy.cast()
}
