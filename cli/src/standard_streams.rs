//! The standard streams, each of which may be closed.
//!
//! Rust's runtime opens /dev/null in place of a standard stream that is closed, so what is written
//! there seems to be written.

use std::io::{Error, Result, StdoutLock};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which of standard input, output and error were closed when this process was started.
static WERE_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (stream, was_closed) in (0..).zip(&WERE_CLOSED) {
        // SAFETY: the call takes no memory.
        let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
        was_closed.store(flags < 0, Relaxed);
    }
}

/// Returns standard output.
///
/// # Errors
/// `EBADF`: it was closed when this process was started.
pub(crate) fn output() -> Result<StdoutLock<'static>> {
    match was_closed(libc::STDOUT_FILENO) {
        true => Err(Error::from_raw_os_error(libc::EBADF)),
        false => Ok(std::io::stdout().lock()),
    }
}

/// Whether a descriptor is a standard stream that was closed when this process was started.
pub(crate) fn was_closed(descriptor: RawFd) -> bool {
    let stream = usize::try_from(descriptor).ok().and_then(|at| WERE_CLOSED.get(at));
    stream.is_some_and(|was_closed| was_closed.load(Relaxed))
}

/// Has the command begin with those streams closed that were closed when this process was started.
pub(crate) fn keep_closed(command: &mut Command) {
    let close = || {
        for (stream, was_closed) in (0 as RawFd..).zip(&WERE_CLOSED) {
            if was_closed.load(Relaxed) {
                // SAFETY: what is open there is the runtime's /dev/null, which nothing needs now.
                unsafe { libc::close(stream) };
            }
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls and allocates nothing.
    unsafe { command.pre_exec(close) };
}
