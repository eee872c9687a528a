//! A table of descriptors for the threads of an exporter that its program does not know of.
//!
//! Descriptors are numbers of a process, and a new one has the lowest free number. A program that
//! closes all of them, or opens files at numbers of its choice, as a shell or a daemon does, would
//! close those of the exporter, and the exporter those of the program. With a table of their own
//! the exporter's threads cannot meet the program's files, and no child inherits theirs.
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether threads of this process have a table of their own.
static ARE_OWN: AtomicBool = AtomicBool::new(false);

/// Gives the calling thread, and those that it starts from now on, a table of descriptors of its
/// own. In it are three places that cannot be read or written, so that no file gets the number of
/// standard input, output or error. Where the system cannot do it (Linux before 5.9), the table
/// stays that of the process.
///
/// A runtime on such a thread must be woken by threads of the same table: others would write to
/// the number of its wake-up descriptor in theirs.
pub(crate) fn make_own() {
    const ALL: c_uint = c_uint::MAX;
    // SAFETY: a system call without pointers. What it closes are copies that nobody uses.
    let status = unsafe { libc::syscall(libc::SYS_close_range, 0, ALL, libc::CLOSE_RANGE_UNSHARE) };
    if status != 0 {
        return;
    }
    ARE_OWN.store(true, Relaxed);
    let places: [c_int; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
    for _ in places {
        // SAFETY: the path is a C string.
        unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    }
}

/// Whether the exporter's threads have a table of their own. A child of the program has none of
/// their descriptors then.
pub(crate) fn are_own() -> bool {
    ARE_OWN.load(Relaxed)
}
