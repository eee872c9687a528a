//! The user of this process.
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the effective user.
pub(crate) fn effective() -> u32 {
    // SAFETY: `geteuid` has no preconditions, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether the effective user may make files in a directory. `Err` says why not.
pub(crate) fn may_write_to(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    let name = CString::new(directory.as_os_str().as_bytes())?;
    let wanted = libc::W_OK | libc::X_OK;
    // SAFETY: the name is NUL-terminated.
    let answer =
        unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), wanted, libc::AT_EACCESS) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
