//! lumalloc's own functions: the heap monitor, which writes each allocation and free to a file.
//!
//! They return error numbers and do not change `errno`.
use core::ffi::{CStr, c_char, c_int};
use lumalloc_profile::monitor::{self, Refusal};

/// Begins to record each allocation and each free: see [`monitor::start`]. `NULL` for a file that
/// is named by `prof.prefix`, process and number.
///
/// Errors: `EBUSY` if events are being recorded already; `EINVAL` for a name that is
/// empty or too long; `ENOMEM`; or the error of
/// the file.
///
/// # Safety
/// `file` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_monitor_start(file: *const c_char) -> c_int {
    // SAFETY: the caller's promise; it is not null.
    let name = (!file.is_null()).then(|| unsafe { CStr::from_ptr(file) });
    monitor::start(name).map_or_else(error_of, |()| 0)
}

/// Ends the recording: see [`monitor::stop`].
///
/// Errors: `EAGAIN` if no events are being recorded; or the first error of the file.
#[unsafe(no_mangle)]
pub extern "C" fn lumalloc_monitor_stop() -> c_int {
    monitor::stop().map_or_else(error_of, |_| 0)
}

fn error_of(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Running => libc::EBUSY,
        Refusal::Stopped => libc::EAGAIN,
        Refusal::BadName => libc::EINVAL,
        Refusal::Unwritten(error) => error,
        Refusal::System => libc::ENOMEM,
    }
}
