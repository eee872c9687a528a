//! Lines on standard error, where nobody else can be told.

use crate::descriptors;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// Writes one line to standard error: that of the process also on threads with a table of
/// descriptors of their own, which do not have it open. Returns whether it was written.
pub fn say(what: &str) -> bool {
    let line = format!("<lumalloc>: exporter: {what}\n");
    // SAFETY: the pointer and the length are those of the text.
    let written = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
    written >= 0
        || descriptors::with_spare(|| {
            let of_process = opened().or_else(|_| copied());
            of_process.and_then(|mut to| to.write_all(line.as_bytes())).is_ok()
        })
}

/// Opens the standard error of the process again.
fn opened() -> io::Result<File> {
    // It must not become the terminal of a daemon's session.
    OpenOptions::new().append(true).custom_flags(libc::O_NOCTTY).open("/proc/self/fd/2")
}

/// Copies the standard error of the process. A socket cannot be opened again. Fails before Linux
/// 5.6, and where `pidfd_getfd` is refused.
fn copied() -> io::Result<File> {
    // SAFETY: a system call without pointers.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, std::process::id(), 0) };
    let process = owned(process)?;
    // SAFETY: as before.
    let copy = unsafe {
        libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), libc::STDERR_FILENO, 0)
    };
    Ok(owned(copy)?.into())
}

/// Returns the descriptor that a system call returned.
fn owned(returned: i64) -> io::Result<OwnedFd> {
    match RawFd::try_from(returned) {
        // SAFETY: it was just opened, and belongs to nothing else.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
