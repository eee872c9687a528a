//! The operators of the program, which forms of this library call instead of allocating.
//!
//! C++ says that most forms of `new` and `delete` call another one: `delete` with a size calls the
//! one without, `new[]` calls `new`, and the nothrow forms call those that throw. So a program that
//! replaces two of them has replaced all. Here each form does its work itself, unless what it would
//! call is the program's. [`resolved`](super::resolved) finds that out when the library is loaded,
//! or before, at the first call of such a form: constructors of other libraries may run first.
use super::forms::Form;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::forms::UNKNOWN;
use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::Ordering::Relaxed;

/// Returns the program's function for a form, or NULL.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn known(form: &Form) -> *mut c_void {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if form.load(Relaxed) == UNKNOWN {
        super::resolved::begin();
    }
    form.load(Relaxed)
}

/// `operator new` with an alignment, or without one, which ignores the second argument. It may
/// throw an exception, so only assembly calls it.
pub(crate) type New = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// Returns the program's function for a form of `new`.
pub(crate) fn new(form: &Form) -> Option<New> {
    // SAFETY: NULL is no function, and the loader has found the others by the names of such forms.
    unsafe { transmute::<*mut c_void, Option<New>>(known(form)) }
}

/// `operator delete` with an alignment, or without one, which ignores the second argument. It may
/// not throw.
type Delete = unsafe extern "C" fn(*mut c_void, usize);

/// Calls the program's function for a form of `delete`. Returns `false` if there is none.
///
/// # Safety
/// As for the form: the block must be NULL or one of the matching `new`.
pub(crate) unsafe fn delete(form: &Form, block: *mut c_void, alignment: usize) -> bool {
    // SAFETY: NULL is no function, and the loader has found the others by the names of such forms.
    let Some(delete) = (unsafe { transmute::<*mut c_void, Option<Delete>>(known(form)) }) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe { delete(block, alignment) };
    true
}
