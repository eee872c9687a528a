//! The error number of the last system call of a thread.

use core::ffi::c_int;

/// Returns the number.
pub(crate) fn get() -> c_int {
    // SAFETY: the function always returns a valid pointer to this thread's variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place }
}

/// Runs `f`, and leaves the number as it was.
pub(crate) fn keeping<T>(f: impl FnOnce() -> T) -> T {
    let before = get();
    let result = f();
    set(before);
    result
}

/// Sets the number.
pub(crate) fn set(number: c_int) {
    // SAFETY: the function always returns a valid pointer to this thread's variable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *place = number };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_kept() {
        set(77);
        assert_eq!(keeping(|| set(5)), ());
        assert_eq!(get(), 77);
    }
}
