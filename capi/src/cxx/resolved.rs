//! Whether the operators that a program calls are those of this library.
//!
//! A program may replace some of them. Forms of this library then call its own: see
//! [`programs`](super::programs). Its `new[]` may call this library's `new`, while `delete[]` is
//! this library's, so that such a block comes back by another operator than it was allocated by. In
//! such a program operators are not compared.
use super::forms::{
    DELETE, DELETE_ALIGNED, DELETE_ARRAY, DELETE_ARRAY_ALIGNED, NEW, NEW_ALIGNED, NEW_ARRAY,
    NEW_ARRAY_ALIGNED, SIZED, SIZED_ALIGNED, SIZED_ARRAY, SIZED_ARRAY_ALIGNED,
};
use alloc_core::options;
use alloc_core::raw;
use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

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

/// Notes which operators are the program's, so that this library's forms call them. Lets the
/// hardened tier compare the operators of blocks if all are of this library.
pub(crate) fn begin() {
    let own = module();
    if lumalloc_operators.iter().all(|operator| own.contains(&operator.addr())) {
        raw::compare_operators();
    }
    let [new, new_array, new_nothrow, new_array_nothrow, rest @ ..] = lumalloc_operators;
    let [new_aligned, new_array_aligned, rest @ ..] = rest;
    let [new_aligned_nothrow, new_array_aligned_nothrow, rest @ ..] = rest;
    let [delete, delete_array, _, _, _, _, delete_aligned, delete_array_aligned, ..] = rest;
    for (form, operator, calls) in [
        (&NEW, new, None),
        (&NEW_ARRAY, new_array, Some(&NEW)),
        (&NEW_ALIGNED, new_aligned, None),
        (&NEW_ARRAY_ALIGNED, new_array_aligned, Some(&NEW_ALIGNED)),
        (&DELETE, delete, None),
        (&DELETE_ARRAY, delete_array, Some(&DELETE)),
        (&DELETE_ALIGNED, delete_aligned, None),
        (&DELETE_ARRAY_ALIGNED, delete_array_aligned, Some(&DELETE_ALIGNED)),
    ] {
        let is_own = own.contains(&operator.addr());
        let by_call = calls.map_or(null_mut(), |other| other.load(Relaxed));
        form.store(if is_own { by_call } else { operator.cast_mut() }, Relaxed);
    }
    let are_own = |operators: [*const c_void; 2]| {
        operators.iter().all(|operator| own.contains(&operator.addr()))
    };
    // A program's `new` may request other sizes than it is called with. Those of arrays call it.
    let single = options::current().sized_delete && are_own([new, new_nothrow]);
    let array = single && are_own([new_array, new_array_nothrow]);
    let aligned = options::current().sized_delete && are_own([new_aligned, new_aligned_nothrow]);
    let array_aligned = aligned && are_own([new_array_aligned, new_array_aligned_nothrow]);
    for (sized, plain, by_default, uses_size) in [
        (&SIZED, &DELETE, delete, single),
        (&SIZED_ARRAY, &DELETE_ARRAY, delete_array, array),
        (&SIZED_ALIGNED, &DELETE_ALIGNED, delete_aligned, aligned),
        (&SIZED_ARRAY_ALIGNED, &DELETE_ARRAY_ALIGNED, delete_array_aligned, array_aligned),
    ] {
        let form = plain.load(Relaxed);
        let by_plain = form.is_null() && !uses_size;
        sized.store(if by_plain { by_default.cast_mut() } else { form }, Relaxed);
    }
}

/// Returns where this library lies in memory, or the program that it is linked into.
fn module() -> Range<usize> {
    let (start, end): (usize, usize);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: forms two addresses, which the linker defines.
    unsafe {
        asm!(
            ".hidden __ehdr_start",
            ".hidden _end",
            "lea {start}, [rip + __ehdr_start]",
            "lea {end}, [rip + _end]",
            start = out(reg) start,
            end = out(reg) end,
            options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            ".hidden __ehdr_start",
            ".hidden _end",
            "adrp {start}, __ehdr_start",
            "add {start}, {start}, :lo12:__ehdr_start",
            "adrp {end}, _end",
            "add {end}, {end}, :lo12:_end",
            start = out(reg) start,
            end = out(reg) end,
            options(nomem, nostack, preserves_flags),
        );
    }
    start..end
}
