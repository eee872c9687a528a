//! C++: `operator new` and `operator delete`, all replaceable forms, by their mangled names.
//!
//! The forms of `new` differ in what they do when there is no memory, which the functions
//! `no_memory_*` in [`throwing`] do. The forms of `delete` differ in what they know about the
//! block. A form that C++ defines by another one calls that if it is the program's: see
//! [`programs`].
//!
//! The forms of `new` stay on the stack while they allocate. They are in the section by which
//! profiles leave out the allocator's own functions. The forms of `delete` jump to what they need.
//!
//! No C++ runtime is needed: its functions are weak references, used only if they are there.
use alloc_core::raw::{self, Operator};
use core::ffi::c_void;

pub(crate) mod forms;
pub(crate) mod programs;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod runtime;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod exceptions;
#[cfg(target_arch = "x86_64")]
#[path = "throwing_x86_64.rs"]
pub mod throwing;
#[cfg(target_arch = "aarch64")]
#[path = "throwing_aarch64.rs"]
pub mod throwing;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "throwing_portable.rs"]
pub mod throwing;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod resolved;

/// The second argument of the nothrow forms: a reference to `std::nothrow`, which is not used.
pub type Nothrow = *const c_void;

/// A block for `operator new(size_t)`; NULL when there is no memory.
pub(crate) extern "C" fn single(size: usize) -> *mut c_void {
    raw::malloc_by(size, Operator::Single).cast()
}

/// A block for `operator new[](size_t)`; NULL when there is no memory.
pub(crate) extern "C" fn array(size: usize) -> *mut c_void {
    raw::malloc_by(size, Operator::Array).cast()
}

/// A block for `operator new(size_t, align_val_t)`; NULL when there is no memory, or the alignment
/// is no power of two, for which no handler is called.
pub(crate) extern "C" fn aligned_single(size: usize, alignment: usize) -> *mut c_void {
    aligned(size, alignment, Operator::Single)
}

/// A block for `operator new[](size_t, align_val_t)`, as [`aligned_single`].
pub(crate) extern "C" fn aligned_array(size: usize, alignment: usize) -> *mut c_void {
    aligned(size, alignment, Operator::Array)
}

#[inline(always)]
fn aligned(size: usize, alignment: usize, operator: Operator) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return core::ptr::null_mut();
    }
    raw::malloc_aligned_by(size, alignment, operator).cast()
}

/// Defines a nothrow `operator new`.
macro_rules! nothrow_new {
    ($($name:ident = $allocate:ident or $form:ident)*) => {$(
        /// `new (std::nothrow)`: NULL when there is no memory and the new-handler, if any, gives
        /// up.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "lumalloc_entries")]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize, _: Nothrow) -> *mut c_void {
            #[inline(always)]
            fn own(size: usize) -> *mut c_void {
                let block = $allocate(size);
                if block.is_null() { throwing::no_memory_nothrow(size, 1) } else { block }
            }
            #[cold]
            #[inline(never)]
            extern "C" fn by_program(size: usize) -> *mut c_void {
                match programs::new(&forms::$form) {
                    Some(new) => throwing::caught(size, 1, new),
                    None => own(size),
                }
            }
            if forms::is_own(&forms::$form) { own(size) } else { by_program(size) }
        }
    )*};
}
nothrow_new! {
    _ZnwmRKSt9nothrow_t = single or NEW
    _ZnamRKSt9nothrow_t = array or NEW_ARRAY
}

/// Defines an aligned nothrow `operator new`.
macro_rules! aligned_nothrow_new {
    ($($name:ident = $allocate:ident or $form:ident)*) => {$(
        /// Aligned `new (std::nothrow)`: NULL when there is no memory and the new-handler, if any,
        /// gives up.
        #[unsafe(no_mangle)]
        #[unsafe(link_section = "lumalloc_entries")]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub extern "C" fn $name(size: usize, alignment: usize, _: Nothrow) -> *mut c_void {
            #[inline(always)]
            fn own(size: usize, alignment: usize) -> *mut c_void {
                let block = $allocate(size, alignment);
                if block.is_null() { throwing::no_memory_nothrow(size, alignment) } else { block }
            }
            #[cold]
            #[inline(never)]
            extern "C" fn by_program(size: usize, alignment: usize) -> *mut c_void {
                match programs::new(&forms::$form) {
                    Some(new) => throwing::caught(size, alignment, new),
                    None => own(size, alignment),
                }
            }
            let is_own = forms::is_own(&forms::$form);
            if is_own { own(size, alignment) } else { by_program(size, alignment) }
        }
    )*};
}
aligned_nothrow_new! {
    _ZnwmSt11align_val_tRKSt9nothrow_t = aligned_single or NEW_ALIGNED
    _ZnamSt11align_val_tRKSt9nothrow_t = aligned_array or NEW_ARRAY_ALIGNED
}

/// Defines forms of `operator delete` that know only the pointer, and call no other form.
macro_rules! delete {
    ($($name:ident($($ignored:ty),*))*) => {$(
        /// `delete` without a size; NULL is allowed.
        ///
        /// # Safety
        /// `ptr` must be NULL or a live block of the matching `new`.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub unsafe extern "C" fn $name(ptr: *mut c_void, $(_: $ignored),*) {
            // SAFETY: the caller upholds the contract.
            unsafe { raw::free_by(ptr.cast(), Operator::Single) };
        }
    )*};
}
delete!(_ZdlPv() _ZdlPvSt11align_val_t(usize));

/// The alignment that a form was told, or 1.
macro_rules! alignment {
    () => {
        1
    };
    ($told:ident) => {
        $told
    };
}

/// Frees a block, or lets the program's function do it: `$own` is how this library does, which may
/// use the named arguments.
macro_rules! free_or_tell {
    ($form:ident, $ptr:ident, $alignment:expr, ($($name:ident: $kind:ty),*), $own:expr) => {{
        /// # Safety
        /// As for the form.
        #[inline(always)]
        #[allow(unused_variables, reason = "without a size the alignment tells nothing")]
        unsafe fn own($ptr: *mut c_void, $($name: $kind),*) {
            // SAFETY: the caller's promise; a block is not NULL where that matters.
            unsafe { $own };
        }
        /// # Safety
        /// As for the form.
        #[cold]
        #[inline(never)]
        unsafe extern "C" fn by_program($ptr: *mut c_void, $($name: $kind),*) {
            // SAFETY: the caller's promise.
            if !unsafe { programs::delete(&forms::$form, $ptr, $alignment) } {
                // SAFETY: the caller's promise.
                unsafe { own($ptr, $($name),*) };
            }
        }
        if forms::is_own(&forms::$form) {
            // SAFETY: the caller upholds the contract.
            unsafe { own($ptr, $($name),*) };
        } else {
            // SAFETY: the caller upholds the contract.
            unsafe { by_program($ptr, $($name),*) };
        }
    }};
}

/// Defines forms of `operator delete` that know the pointer, and perhaps the alignment, and call
/// another form.
macro_rules! delete_by {
    ($operator:ident: $($name:ident($($alignment:ident)?; $($ignored:ty)?) or $form:ident)*) => {$(
        /// `delete` without a size; NULL is allowed.
        ///
        /// # Safety
        /// `ptr` must be NULL or a live block of the matching `new`.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub unsafe extern "C" fn $name(
            ptr: *mut c_void,
            $($alignment: usize,)?
            $(_: $ignored)?
        ) {
            free_or_tell!(
                $form, ptr, alignment!($($alignment)?), ($($alignment: usize)?),
                raw::free_by(ptr.cast(), Operator::$operator)
            );
        }
    )*};
}
delete_by! {
    Single: _ZdlPvRKSt9nothrow_t(; Nothrow) or DELETE
    _ZdlPvSt11align_val_tRKSt9nothrow_t(alignment; Nothrow) or DELETE_ALIGNED
}
delete_by! {
    Array: _ZdaPv(;) or DELETE
    _ZdaPvRKSt9nothrow_t(; Nothrow) or DELETE_ARRAY
    _ZdaPvSt11align_val_t(alignment;) or DELETE_ALIGNED
    _ZdaPvSt11align_val_tRKSt9nothrow_t(alignment; Nothrow) or DELETE_ARRAY_ALIGNED
}

/// Defines a sized `operator delete`.
macro_rules! sized_delete {
    ($($name:ident = $operator:ident or $form:ident)*) => {$(
        /// `delete` with the size that `new` was given; NULL is allowed.
        ///
        /// # Safety
        /// `ptr` must be NULL or a live block of `new` of that size.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub unsafe extern "C" fn $name(ptr: *mut c_void, size: usize) {
            free_or_tell!(
                $form, ptr, 1, (size: usize),
                if !ptr.is_null() { raw::free_sized_by(ptr.cast(), size, Operator::$operator) }
            );
        }
    )*};
}
sized_delete! {
    _ZdlPvm = Single or SIZED
    _ZdaPvm = Array or SIZED_ARRAY
}

/// Defines a sized and aligned `operator delete`.
macro_rules! aligned_sized_delete {
    ($($name:ident = $operator:ident or $form:ident)*) => {$(
        /// `delete` with the size and alignment that `new` was given; NULL is allowed.
        ///
        /// # Safety
        /// `ptr` must be NULL or a live block of `new` of that size and alignment.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the mangled name")]
        pub unsafe extern "C" fn $name(ptr: *mut c_void, size: usize, alignment: usize) {
            free_or_tell!(
                $form, ptr, alignment, (size: usize, alignment: usize),
                if !ptr.is_null() {
                    raw::free_sized_aligned_by(ptr.cast(), size, alignment, Operator::$operator);
                }
            );
        }
    )*};
}
aligned_sized_delete! {
    _ZdlPvmSt11align_val_t = Single or SIZED_ALIGNED
    _ZdaPvmSt11align_val_t = Array or SIZED_ARRAY_ALIGNED
}
