//! Files that are named by a descriptor of this process, as /dev/stdout is.

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::{FromRawFd, RawFd};
use std::path::Path;

use crate::standard_streams;

/// The directories in which the system has the descriptors of this process. /dev/fd is a link to
/// the first.
const DIRECTORIES: [&str; 2] = ["/proc/self/fd", "/proc/thread-self/fd"];

/// The descriptor that a path is, without a look at what the last part of the path links to.
pub(super) fn of(path: &Path) -> Option<RawFd> {
    let name = path.file_name()?.to_str()?;
    let number: RawFd = name.parse().ok().filter(|number: &RawFd| number.to_string() == name)?;
    let directory = path.parent()?.canonicalize().ok()?;
    let is_own = |own: &str| Path::new(own).canonicalize().is_ok_and(|own| own == directory);
    DIRECTORIES.iter().any(|own| is_own(own)).then_some(number)
}

/// Opens what is open there. It has the same place in the file, and writes to the end if that does.
///
/// # Errors
/// `EBADF`: nothing is open there, or it was closed when this process was started.
pub(super) fn open(number: RawFd) -> Result<File> {
    if standard_streams::was_closed(number) {
        return Err(Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the call takes no memory.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: nobody else has the new descriptor.
    Ok(unsafe { File::from_raw_fd(copy) })
}
