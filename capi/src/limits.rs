//! `setrlimit` and `prlimit`, which tell the core of a limit of addresses that the program sets.
//!
//! The core keeps unused addresses, and fewer of them under a limit (RLIMIT_AS, RLIMIT_DATA). It
//! does not ask for the limits all the time, because a sandbox may end a process that asks: that of
//! OpenSSH's server does.
//!
//! The functions are called `lumalloc_setrlimit` and `lumalloc_prlimit`. `build.rs` gives them the
//! names of the C library's in the shared object. They make the system call that those make. Types
//! of 32 and of 64 bits (`setrlimit64`) are one on the machines that have these names.
use alloc_core::control::limits;
use core::ffi::{c_int, c_long};
use core::ptr;
use libc::{pid_t, rlimit};

/// `setrlimit`: sets a limit of the calling process. Returns -1 and sets errno if it cannot.
///
/// # Safety
/// As for the C library's `setrlimit`: `limit` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_setrlimit(resource: c_int, limit: *const rlimit) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { lumalloc_prlimit(0, resource, limit, ptr::null_mut()) }
}

/// `prlimit`: reads and sets a limit of a process. Returns -1 and sets errno if it cannot.
///
/// # Safety
/// As for the C library's `prlimit`: `new` must be null or readable, `old` null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_prlimit(
    process: pid_t,
    resource: c_int,
    new: *const rlimit,
    old: *mut rlimit,
) -> c_int {
    let [process, resource] = [process, resource].map(c_long::from);
    // SAFETY: the caller's promise.
    let status = unsafe { libc::syscall(libc::SYS_prlimit64, process, resource, new, old) };
    let of_addresses = [libc::RLIMIT_AS, libc::RLIMIT_DATA].map(c_long::from);
    if status == 0 && !new.is_null() && of_addresses.contains(&resource) {
        limits::note_addresses();
    }
    status as c_int
}
