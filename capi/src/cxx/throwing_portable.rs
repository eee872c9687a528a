//! The throwing forms of `operator new` for machines without assembly for them. Without memory they
//! abort with a message instead of throwing `std::bad_alloc`, and new-handlers are not called.
use super::programs::New;
use super::{aligned_array, aligned_single, array, single};
use crate::die::die;
use core::ffi::c_void;

/// Aborts with a message that `std::bad_alloc` cannot be thrown.
#[cold]
fn no_memory_throwing() -> ! {
    die(b"<lumalloc>: operator new: out of memory, and std::bad_alloc cannot be thrown here\n")
}

/// The result of a nothrow form when there is no memory.
#[cold]
pub(crate) fn no_memory_nothrow(_size: usize, _alignment: usize) -> *mut c_void {
    core::ptr::null_mut()
}

/// Calls a form of `new` of the program, which may not throw. Here no form is known to be of the
/// program.
pub(crate) fn caught(size: usize, alignment: usize, new: New) -> *mut c_void {
    // SAFETY: a function of that type.
    unsafe { new(size, alignment) }
}

/// Defines a throwing `operator new(size_t)`.
macro_rules! throwing_new {
    ($($name:ident = $allocate:ident)*) => {$(
        /// `operator new`: returns a block, or aborts.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize) -> *mut c_void {
            let block = $allocate(size);
            if block.is_null() { no_memory_throwing() } else { block }
        }
    )*};
}
throwing_new!(_Znwm = single _Znam = array);

/// Defines a throwing `operator new(size_t, align_val_t)`.
macro_rules! throwing_aligned_new {
    ($($name:ident = $allocate:ident)*) => {$(
        /// Aligned `operator new`: returns a block, or aborts.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize, alignment: usize) -> *mut c_void {
            let block = $allocate(size, alignment);
            if block.is_null() { no_memory_throwing() } else { block }
        }
    )*};
}
throwing_aligned_new! {
    _ZnwmSt11align_val_t = aligned_single
    _ZnamSt11align_val_t = aligned_array
}
