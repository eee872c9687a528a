//! The functions that libraries define with the name of one of ours.
use core::ffi::{CStr, c_char, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

// The C library's `dlsym`, by a weak reference, so that a program linked with the archive does not
// pull in the loader.
alloc_core::weak_symbol!(dlsym, "dlsym");

/// The function with this name in the libraries after ours, or null. It is looked up at the first
/// call and kept in `known`. Two threads may both look it up. It may allocate from lumalloc, and
/// does not call `dlopen`.
pub(crate) fn known(known: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let function = known.load(Relaxed);
    if !function.is_null() {
        return function;
    }
    // RTLD_NEXT stands for the libraries after the calling one.
    let found = find(libc::RTLD_NEXT, name);
    known.store(found, Relaxed);
    found
}

/// The function with this name that the program and its libraries use, or null.
pub(crate) fn first(name: &CStr) -> *mut c_void {
    find(libc::RTLD_DEFAULT, name)
}

fn find(whose: *mut c_void, name: &CStr) -> *mut c_void {
    let function = ptr::with_exposed_provenance::<()>(dlsym());
    if function.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the symbol is POSIX's function of this type.
    let dlsym = unsafe { mem::transmute::<*const (), Dlsym>(function) };
    // SAFETY: one of the handles that stand for libraries, and name is a C string.
    unsafe { dlsym(whose, name.as_ptr()) }
}
