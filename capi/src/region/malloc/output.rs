//! Files that options name. Source: vmalloc(3), Malloc-compatible functions.

use crate::errno;
use alloc_core::system_calls;
use core::ffi::{CStr, c_int};

/// Descriptors from here on, so that programs get the small ones.
const FIRST: c_int = 64;
/// The longest name of a file, with the zero at its end.
const MOST: usize = 4096;

/// Opens the file that an option names for writing: `&n` and `/dev/fd/n` are the descriptor `n`,
/// and `%p` stands for the number of the process. Returns a descriptor that programs are not given,
/// and that is closed when another program is started.
///
/// Errors: what `errno` is for a file that cannot be opened, and for a name that is too long.
pub(super) fn open(name: &[u8]) -> Result<c_int, c_int> {
    let before = errno::get();
    let opened = match descriptor_in(name) {
        Some(descriptor) => duplicate(descriptor),
        None => create(name),
    };
    errno::set(before);
    opened
}

/// Returns the number of the descriptor that a name stands for.
fn descriptor_in(name: &[u8]) -> Option<c_int> {
    let digits = name.strip_prefix(b"&").or_else(|| name.strip_prefix(b"/dev/fd/"))?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn duplicate(descriptor: c_int) -> Result<c_int, c_int> {
    // SAFETY: the call takes any descriptor.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, FIRST) };
    if copy < 0 { Err(errno::get()) } else { Ok(copy) }
}

fn create(name: &[u8]) -> Result<c_int, c_int> {
    let mut path = [0; MOST];
    let name = expand(name, &mut path).ok_or(libc::ENAMETOOLONG)?;
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    let descriptor = system_calls::open_beside_streams(name, flags, 0o644);
    if descriptor < 0 {
        return Err(errno::get());
    }
    // Without another descriptor this one serves.
    let Ok(copy) = duplicate(descriptor) else { return Ok(descriptor) };
    system_calls::close(descriptor);
    Ok(copy)
}

/// Puts the number of the process in place of `%p`. Returns `None` if the name is too long.
fn expand<'a>(name: &[u8], path: &'a mut [u8; MOST]) -> Option<&'a CStr> {
    let mut length = 0;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            // The last byte stays zero.
            *path.get_mut(length).filter(|_| length + 1 < MOST)? = *byte;
            length += 1;
        }
        Some(())
    };
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"%p") {
            // SAFETY: getpid has no requirements.
            let process = unsafe { libc::getpid() };
            let mut line = lumalloc_region::raw::Line::new();
            add(line.decimal(usize::try_from(process).unwrap_or(0)).get())?;
            rest = after;
        } else {
            add(core::slice::from_ref(first))?;
            rest = after;
        }
    }
    CStr::from_bytes_until_nul(path).ok()
}
