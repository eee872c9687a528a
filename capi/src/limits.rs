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
use core::arch::global_asm;
use core::ffi::{c_int, c_long};
use core::ptr;
use libc::{pid_t, rlimit};

/// The instructions of a function that passes its call on.
#[cfg(target_arch = "x86_64")]
macro_rules! pass_on {
    () => {
        "endbr64\njmp {function}"
    };
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! pass_on {
    () => {
        "hint #34\nb {function}"
    };
}

/// Defines a function of the shared object by one of this file.
macro_rules! define {
    ($name:literal, $function:ident) => {
        global_asm!(
            concat!(".pushsection .text.", $name, ", \"ax\", @progbits"),
            ".p2align 2",
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            pass_on!(),
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
            function = sym $function,
        );
    };
}

define!("lumalloc_setrlimit", set);
define!("lumalloc_prlimit", exchange);

/// Puts `setrlimit` and `setrlimit64` on the list of exported symbols, as [`crate::variables`]
/// explains for `malloc_conf`. The value is not used.
#[unsafe(export_name = "[s]etrlimit")]
pub static SETRLIMIT_PATTERN: u8 = 0;

/// As [`SETRLIMIT_PATTERN`].
#[unsafe(export_name = "[s]etrlimit64")]
pub static SETRLIMIT64_PATTERN: u8 = 0;

/// As [`SETRLIMIT_PATTERN`], for `prlimit`.
#[unsafe(export_name = "[p]rlimit")]
pub static PRLIMIT_PATTERN: u8 = 0;

/// As [`SETRLIMIT_PATTERN`], for `prlimit64`.
#[unsafe(export_name = "[p]rlimit64")]
pub static PRLIMIT64_PATTERN: u8 = 0;

/// `setrlimit`: sets a limit of the calling process. Returns -1 and sets errno if it cannot.
///
/// # Safety
/// As for the C library's function: `limit` must be readable.
unsafe extern "C" fn set(resource: c_int, limit: *const rlimit) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { exchange(0, resource, limit, ptr::null_mut()) }
}

/// `prlimit`: reads and sets a limit of a process. Returns -1 and sets errno if it cannot.
///
/// # Safety
/// As for the C library's function: `new` must be null or readable, `old` null or writable.
unsafe extern "C" fn exchange(
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
