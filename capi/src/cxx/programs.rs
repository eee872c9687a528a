//! The operators of the program, which forms of this library call instead of allocating.
//!
//! C++ says that most forms of `new` and `delete` call another one: `delete` with a size calls the
//! one without, `new[]` calls `new`, and the nothrow forms call those that throw. So a program that
//! replaces two of them has replaced all. Here each form does its work itself, unless what it would
//! call is the program's. [`resolved`](super::resolved) finds that out when the library is loaded.
use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The program's own function for a form, or that for the form which this one calls; NULL if both
/// are of this library.
///
/// All loads and stores are relaxed: it is stored while the library is loaded, before threads that
/// could load it, and it stands for code that the loader has mapped.
pub(crate) type Form = AtomicPtr<c_void>;

/// `operator new(size_t)`.
pub(crate) static NEW: Form = Form::new(null_mut());
/// `operator new[](size_t)`.
pub(crate) static NEW_ARRAY: Form = Form::new(null_mut());
/// `operator new(size_t, align_val_t)`.
pub(crate) static NEW_ALIGNED: Form = Form::new(null_mut());
/// `operator new[](size_t, align_val_t)`.
pub(crate) static NEW_ARRAY_ALIGNED: Form = Form::new(null_mut());
/// `operator delete(void *)`.
pub(crate) static DELETE: Form = Form::new(null_mut());
/// `operator delete[](void *)`.
pub(crate) static DELETE_ARRAY: Form = Form::new(null_mut());
/// `operator delete(void *, align_val_t)`.
pub(crate) static DELETE_ALIGNED: Form = Form::new(null_mut());
/// `operator delete[](void *, align_val_t)`.
pub(crate) static DELETE_ARRAY_ALIGNED: Form = Form::new(null_mut());

/// `operator new` with an alignment, or without one, which ignores the second argument. It may
/// throw an exception, so only assembly calls it.
pub(crate) type New = unsafe extern "C" fn(usize, usize) -> *mut c_void;

/// Returns the program's function for a form of `new`.
#[inline(always)]
pub(crate) fn new(form: &Form) -> Option<New> {
    // SAFETY: NULL is no function, and the loader has found the others by the names of such forms.
    unsafe { transmute::<*mut c_void, Option<New>>(form.load(Relaxed)) }
}

/// `operator delete` with an alignment, or without one, which ignores the second argument. It may
/// not throw.
type Delete = unsafe extern "C" fn(*mut c_void, usize);

/// Calls the program's function for a form of `delete`. Returns `false` if there is none.
///
/// # Safety
/// As for the form: the block must be NULL or one of the matching `new`.
#[inline(always)]
pub(crate) unsafe fn delete(form: &Form, block: *mut c_void, alignment: usize) -> bool {
    let address = form.load(Relaxed);
    // SAFETY: NULL is no function, and the loader has found the others by the names of such forms.
    let Some(delete) = (unsafe { transmute::<*mut c_void, Option<Delete>>(address) }) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe { delete(block, alignment) };
    true
}
