//! What the system's errors are called in messages.
//!
//! `strerror` is not asked: it may allocate, and take locks of the C library.

use crate::sink::Text;
use core::ffi::c_int;
use core::fmt::{self, Formatter};

/// Returns what the error of a file is called. `None`: it is none of the usual ones.
#[must_use]
pub fn of(error: c_int) -> Option<&'static str> {
    Some(match error {
        libc::EACCES => "permission denied",
        libc::EBADF => "bad file descriptor",
        libc::EDQUOT => "disk quota exceeded",
        libc::EEXIST => "file exists",
        libc::EFBIG => "file too large",
        libc::EIO => "input/output error",
        libc::EISDIR => "is a directory",
        // Files of this crate refuse a symbolic link by this number.
        libc::ELOOP => "is a symbolic link, or there are too many of them",
        libc::EMFILE => "too many open files",
        libc::ENAMETOOLONG => "file name too long",
        libc::ENFILE => "too many open files in system",
        libc::ENOENT => "no such file or directory",
        libc::ENOMEM => "cannot allocate memory",
        libc::ENOSPC => "no space left on device",
        libc::ENOTDIR => "not a directory",
        libc::ENXIO => "no such device or address",
        libc::EPERM => "operation not permitted",
        libc::EPIPE => "broken pipe",
        libc::EROFS => "read-only file system",
        libc::ESPIPE => "illegal seek",
        libc::ESRCH => "no such process",
        _ => return None,
    })
}

/// Appends what an error is called, or its number.
pub(crate) fn put(text: &mut Text<'_>, error: c_int) {
    match of(error) {
        Some(reason) => text.bytes(reason.as_bytes()),
        None => text.bytes(b"error ").decimal(u64::from(error.unsigned_abs())),
    };
}

/// Writes that a file could not be written, and why.
pub(crate) fn say_unwritten(formatter: &mut Formatter<'_>, error: c_int) -> fmt::Result {
    formatter.write_str("the file could not be written: ")?;
    match of(error) {
        Some(reason) => formatter.write_str(reason),
        None => write!(formatter, "error {}", error.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn reasons_are_those_of_the_system() {
        let known = (1..200).filter_map(|error| Some((error, of(error)?)));
        let expected = [
            (libc::EPERM, "operation not permitted"),
            (libc::ENOENT, "no such file or directory"),
            (libc::ESRCH, "no such process"),
            (libc::EIO, "input/output error"),
            (libc::ENXIO, "no such device or address"),
            (libc::EBADF, "bad file descriptor"),
            (libc::ENOMEM, "cannot allocate memory"),
            (libc::EACCES, "permission denied"),
            (libc::EEXIST, "file exists"),
            (libc::ENOTDIR, "not a directory"),
            (libc::EISDIR, "is a directory"),
            (libc::ENFILE, "too many open files in system"),
            (libc::EMFILE, "too many open files"),
            (libc::EFBIG, "file too large"),
            (libc::ENOSPC, "no space left on device"),
            (libc::ESPIPE, "illegal seek"),
            (libc::EROFS, "read-only file system"),
            (libc::EPIPE, "broken pipe"),
            (libc::ENAMETOOLONG, "file name too long"),
            (libc::ELOOP, "is a symbolic link, or there are too many of them"),
            (libc::EDQUOT, "disk quota exceeded"),
        ];
        assert_eq!(known.collect::<Vec<_>>(), expected);
        for (error, reason) in expected.into_iter().filter(|(error, _)| *error != libc::ELOOP) {
            let system = std::io::Error::from_raw_os_error(error).to_string().to_lowercase();
            assert_eq!(system, std::format!("{reason} (os error {error})"));
        }
    }

    #[test]
    fn another_error_is_its_number() {
        let written = |error| {
            let mut written = Vec::new();
            let mut text = Text::new(&mut written);
            put(&mut text, error);
            assert!(text.end());
            written
        };
        assert_eq!(written(libc::ENOENT), b"no such file or directory");
        assert_eq!(written(libc::EHOSTDOWN), b"error 112");
    }
}
