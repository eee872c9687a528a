//! `experimental.hooks.prof_*`: functions of the program that the heap profiler calls. Source:
//! jemalloc, `prof_hook.h`. And those that are told of each allocation and each free.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::unsafe_rw;
use crate::rows::prof::enabled;
use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::null_mut;
use lumalloc::control::profile::{
    self, AllocatedHook, BacktraceHook, DumpHook, FreedHook, SampleFreeHook, SampleHook,
    backtrace_hook, dump_hook, sample_free_hook, sample_hook,
};

/// The rows of `experimental.hooks.prof_*`.
pub static ROWS: &[Spec] = &[
    unsafe_rw!(
        "experimental.hooks.allocated",
        Pointer("allocated_hook_t"),
        None,
        |_| profile::hooks().0.map_or(null_mut(), |hook| hook as *mut c_void),
        set_allocated,
        "called after each allocation: void (*)(const void *, size_t requested)"
    )
    .unstable(),
    unsafe_rw!(
        "experimental.hooks.freed",
        Pointer("freed_hook_t"),
        None,
        |_| profile::hooks().1.map_or(null_mut(), |hook| hook as *mut c_void),
        set_freed,
        "called before each free: void (*)(const void *)"
    )
    .unstable(),
    unsafe_rw!(
        "experimental.hooks.prof_backtrace",
        Pointer("prof_backtrace_hook_t"),
        None,
        |_| backtrace_hook() as *mut c_void,
        set_backtrace,
        "finds the stack of a sample: void (*)(void **, unsigned *count, unsigned most)"
    )
    .unstable(),
    unsafe_rw!(
        "experimental.hooks.prof_dump",
        Pointer("prof_dump_hook_t"),
        None,
        |_| dump_hook().map_or(null_mut(), |hook| hook as *mut c_void),
        set_dump,
        "called with the name of each profile once it is written: void (*)(const char *)"
    )
    .unstable(),
    unsafe_rw!(
        "experimental.hooks.prof_sample",
        Pointer("prof_sample_hook_t"),
        None,
        |_| sample_hook().map_or(null_mut(), |hook| hook as *mut c_void),
        set_sample,
        "called for each sample: void (*)(const void *, size_t requested, void **stack, \
         unsigned depth, size_t usable)"
    )
    .unstable(),
    unsafe_rw!(
        "experimental.hooks.prof_sample_free",
        Pointer("prof_sample_free_hook_t"),
        None,
        |_| sample_free_hook().map_or(null_mut(), |hook| hook as *mut c_void),
        set_sample_free,
        "called for each sample that is freed: void (*)(const void *, size_t usable)"
    )
    .unstable(),
];

/// # Safety
/// As [`mod@crate::access`]: the hook is a function of its C type, or NULL for none.
unsafe fn set_allocated(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let hook = unsafe { transmute::<*mut c_void, Option<AllocatedHook>>(hook) };
    if profile::set_allocated_hook(hook) { Ok(()) } else { Err(Error::NoMemory) }
}

/// # Safety
/// As [`set_allocated`].
unsafe fn set_freed(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let hook = unsafe { transmute::<*mut c_void, Option<FreedHook>>(hook) };
    if profile::set_freed_hook(hook) { Ok(()) } else { Err(Error::NoMemory) }
}

/// # Safety
/// As [`set_allocated`].
unsafe fn set_backtrace(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    enabled()?;
    // SAFETY: the caller's promise.
    let hook = unsafe { transmute::<*mut c_void, Option<BacktraceHook>>(hook) };
    let hook = hook.ok_or(Error::Invalid)?;
    // SAFETY: as above.
    unsafe { profile::set_backtrace_hook(hook) };
    Ok(())
}

/// # Safety
/// As [`set_allocated`].
unsafe fn set_dump(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    enabled()?;
    // SAFETY: the caller's promise.
    profile::set_dump_hook(unsafe { transmute::<*mut c_void, Option<DumpHook>>(hook) });
    Ok(())
}

/// # Safety
/// As [`set_allocated`].
unsafe fn set_sample(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    enabled()?;
    // SAFETY: the caller's promise.
    profile::set_sample_hook(unsafe { transmute::<*mut c_void, Option<SampleHook>>(hook) });
    Ok(())
}

/// # Safety
/// As [`set_allocated`].
unsafe fn set_sample_free(_: &[usize], hook: *mut c_void) -> Result<(), Error> {
    enabled()?;
    // SAFETY: the caller's promise.
    let hook = unsafe { transmute::<*mut c_void, Option<SampleFreeHook>>(hook) };
    profile::set_sample_free_hook(hook);
    Ok(())
}
