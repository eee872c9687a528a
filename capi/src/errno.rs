//! `errno`, which only failures may change. The core sets `ENOMEM` when it finds no memory.
use alloc_core::raw;
use core::ffi::{c_int, c_void};

/// The calling thread's `errno`.
pub(crate) fn get() -> c_int {
    // SAFETY: __errno_location always returns a valid pointer to this thread's variable.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *errno }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set(code: c_int) {
    // SAFETY: __errno_location always returns a valid pointer to this thread's variable.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *errno = code };
}

/// The result for a size that overflows: NULL with `ENOMEM`; under `opt.xmalloc` it aborts.
#[cold]
pub(crate) fn too_large() -> *mut c_void {
    raw::malloc(usize::MAX).cast()
}

/// The result for an invalid alignment: NULL with `EINVAL`.
#[cold]
pub(crate) fn bad_alignment() -> *mut c_void {
    set(libc::EINVAL);
    core::ptr::null_mut()
}
