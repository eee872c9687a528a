//! Whether the operators that a program calls are those of this library.
//!
//! A program may replace some of them. Its `new[]` may then call this library's `new`, while
//! `delete[]` is this library's, so that such a block comes back by another operator than it was
//! allocated by. In such a program operators are not compared.
use alloc_core::raw;
use core::arch::global_asm;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;

// The addresses to which the loader leads the program's calls.
global_asm!(
    ".pushsection .data.rel.ro.lumalloc_operators, \"aw\"",
    ".p2align 3",
    ".hidden lumalloc_operators",
    ".globl lumalloc_operators",
    "lumalloc_operators:",
    ".quad _Znwm, _Znam, _ZnwmRKSt9nothrow_t, _ZnamRKSt9nothrow_t",
    ".quad _ZnwmSt11align_val_t, _ZnamSt11align_val_t",
    ".quad _ZnwmSt11align_val_tRKSt9nothrow_t, _ZnamSt11align_val_tRKSt9nothrow_t",
    ".quad _ZdlPv, _ZdaPv, _ZdlPvm, _ZdaPvm, _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t",
    ".quad _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t",
    ".quad _ZdlPvmSt11align_val_t, _ZdaPvmSt11align_val_t",
    ".quad _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t",
    ".popsection",
);

unsafe extern "C" {
    safe static lumalloc_operators: [*const c_void; 20];
}

/// Lets the hardened tier compare the operators of blocks if they are all of this library.
pub(crate) fn begin() {
    let own = module_of((begin as *const ()).cast());
    if lumalloc_operators.iter().all(|operator| module_of(*operator) == own) {
        raw::compare_operators();
    }
}

/// Returns where the module begins that an address belongs to, or NULL if the loader does not know
/// it. In a static program without a loader that is the answer for all addresses.
fn module_of(address: *const c_void) -> *const c_void {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address, and writes at most the structure.
    let is_known = unsafe { libc::dladdr(address, found.as_mut_ptr()) } != 0;
    // SAFETY: zeroes are a valid value, as is what dladdr has written.
    if is_known { unsafe { found.assume_init() }.dli_fbase } else { ptr::null() }
}
