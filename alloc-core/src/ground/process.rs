//! The process: its number and its loader.

use super::os::keep_errno;
use core::ffi::c_int;

/// Returns the number of the calling process.
pub(crate) fn id() -> c_int {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::getpid() }
}

/// Returns the first address of the loader's code, or 0 if the program has no loader.
pub(crate) fn loader() -> usize {
    // SAFETY: any value may be asked for.
    keep_errno(|| unsafe { libc::getauxval(libc::AT_BASE) }) as usize
}
