//! What the system knows of this process, and the clocks.

use core::ffi::{CStr, c_int};
use lumalloc::{observe, own_files};

/// Returns the number of this process.
pub(crate) fn process_id() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::getpid() }.cast_unsigned()
}

/// Returns the system's number of the calling thread. Calls that take the number of a process take
/// that of a thread of it too, and fail for that of the first thread once this has ended.
pub(crate) fn thread_id() -> libc::pid_t {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Returns a number above 0 that tells this process from those that it was forked from. Their
/// numbers in the system may be the same, each in its own namespace.
pub(crate) fn this_process() -> u64 {
    observe::fork_generation() + 1
}

/// Returns the time since 1970 in nanoseconds.
pub(crate) fn now() -> u64 {
    time_by(libc::CLOCK_REALTIME)
}

/// Returns the time of the monotonic clock in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    time_by(libc::CLOCK_MONOTONIC)
}

fn time_by(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is writable.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

/// Runs `f` and restores `errno` after.
pub(crate) fn keep_errno<T>(f: impl FnOnce() -> T) -> T {
    // SAFETY: the C library gives every thread a valid location.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: only this thread uses its errno.
    let saved = unsafe { *place };
    let result = f();
    // SAFETY: as above.
    unsafe { *place = saved };
    result
}

/// Returns the error number of the last call.
pub(crate) fn last_error() -> c_int {
    // SAFETY: the C library gives every thread a valid location.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: only this thread uses its errno.
    unsafe { *place }
}

/// Writes the path of the working directory to `buffer`, and returns it. `None`: it has none, or
/// there is no room.
pub(crate) fn directory(buffer: &mut [u8]) -> Option<&[u8]> {
    // SAFETY: the buffer is writable.
    let got = keep_errno(|| unsafe { libc::getcwd(buffer.as_mut_ptr().cast(), buffer.len()) });
    if got.is_null() {
        return None;
    }
    CStr::from_bytes_until_nul(buffer).ok().map(CStr::to_bytes)
}

/// Writes the path of the program to `buffer`, and returns it. It is empty if the system does not
/// tell it.
pub(crate) fn program(buffer: &mut [u8]) -> &[u8] {
    link(own_files::PROGRAM, buffer).unwrap_or_default()
}

/// Writes to `buffer` where the first of these links leads that can be read, and returns it.
fn link<'a>(paths: [&CStr; 2], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let (place, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    let read = |path: &CStr| {
        // SAFETY: the buffer is writable, and the path a C string.
        let got = keep_errno(|| unsafe { libc::readlink(path.as_ptr(), place, length) });
        usize::try_from(got).ok()
    };
    let length = paths.into_iter().find_map(read)?;
    buffer.get(..length)
}

/// Returns the number of the namespace of this process's number. `None`: the system does not tell
/// it.
pub(crate) fn pid_namespace() -> Option<u64> {
    // pid:[4026531836]
    let mut buffer = [0; 64];
    let text = link(own_files::NAMESPACE, &mut buffer)?;
    let digits = text.strip_prefix(b"pid:[")?.strip_suffix(b"]")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}
