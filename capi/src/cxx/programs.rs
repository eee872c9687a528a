//! The operators of the program, which forms of this library call instead of allocating.
//!
//! C++ says that most forms of `new` and `delete` call another one: `delete` with a size calls the
//! one without, `new[]` calls `new`, and the nothrow forms call those that throw. So a program that
//! replaces two of them has replaced all. Here each form does its work itself, unless what it would
//! call is the program's. [`resolved`](super::resolved) finds that out when the library is loaded,
//! or before, at the first call of such a form: constructors of other libraries may run first.
use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The program's own function for a form, or that for the form which this one calls; NULL if both
/// are of this library; [`UNKNOWN`] at first.
///
/// All loads and stores are relaxed: each thread that finds it unknown stores the same, and it
/// stands for code that the loader has mapped.
pub(crate) type Form = AtomicPtr<c_void>;

/// What a form is until it is found out whose it is. On machines without `resolved` all forms are
/// this library's.
const UNKNOWN: *mut c_void = if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
    without_provenance_mut(1)
} else {
    null_mut()
};

/// `operator new(size_t)`.
pub(crate) static NEW: Form = Form::new(UNKNOWN);
/// `operator new[](size_t)`.
pub(crate) static NEW_ARRAY: Form = Form::new(UNKNOWN);
/// `operator new(size_t, align_val_t)`.
pub(crate) static NEW_ALIGNED: Form = Form::new(UNKNOWN);
/// `operator new[](size_t, align_val_t)`.
pub(crate) static NEW_ARRAY_ALIGNED: Form = Form::new(UNKNOWN);
/// `operator delete(void *)`.
pub(crate) static DELETE: Form = Form::new(UNKNOWN);
/// `operator delete[](void *)`.
pub(crate) static DELETE_ARRAY: Form = Form::new(UNKNOWN);
/// `operator delete(void *, align_val_t)`.
pub(crate) static DELETE_ALIGNED: Form = Form::new(UNKNOWN);
/// `operator delete[](void *, align_val_t)`.
pub(crate) static DELETE_ARRAY_ALIGNED: Form = Form::new(UNKNOWN);
/// `operator delete(void *, size_t)`: as [`DELETE`], or `operator delete(void *)` of this library
/// if sizes are not used. The forms below are alike.
pub(crate) static SIZED: Form = Form::new(UNKNOWN);
/// `operator delete[](void *, size_t)`.
pub(crate) static SIZED_ARRAY: Form = Form::new(UNKNOWN);
/// `operator delete(void *, size_t, align_val_t)`.
pub(crate) static SIZED_ALIGNED: Form = Form::new(UNKNOWN);
/// `operator delete[](void *, size_t, align_val_t)`.
pub(crate) static SIZED_ARRAY_ALIGNED: Form = Form::new(UNKNOWN);

/// Returns whether a form and what it would call are known to be of this library. If not, [`known`]
/// is asked, by a function of its own, so that the form itself saves no registers.
#[inline(always)]
pub(crate) fn is_own(form: &Form) -> bool {
    form.load(Relaxed).is_null()
}

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
