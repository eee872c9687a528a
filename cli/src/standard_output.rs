//! Standard output, which may be closed.
//!
//! Rust's runtime opens /dev/null in place of a standard stream that is closed, so what is written
//! there seems to be written.

use std::io::{Error, Result, StdoutLock};
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the call takes no memory.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Returns standard output.
///
/// # Errors
/// `EBADF`: it was closed when this process was started.
pub(crate) fn open() -> Result<StdoutLock<'static>> {
    match WAS_CLOSED.load(Ordering::Relaxed) {
        true => Err(Error::from_raw_os_error(libc::EBADF)),
        false => Ok(std::io::stdout().lock()),
    }
}
