//! The forms of `new` and `delete`, and which of them are the program's.
use core::ffi::c_void;
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
pub(super) const UNKNOWN: *mut c_void =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
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

/// Returns whether a form and what it would call are known to be of this library. If not,
/// [`known`](super::programs::known) is asked, by a function of its own, so that the form itself
/// saves no registers.
#[inline(always)]
pub(crate) fn is_own(form: &Form) -> bool {
    form.load(Relaxed).is_null()
}
