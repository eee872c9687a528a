//! A table of descriptors for the threads of an exporter that its program does not know of.
//!
//! Descriptors are numbers of a process, and a new one has the lowest free number. A program that
//! closes all of them, or opens files at numbers of its choice, as a shell or a daemon does, would
//! close those of the exporter, and the exporter those of the program. With a table of their own
//! the exporter's threads cannot meet the program's files, and no child inherits theirs.
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Whether threads of this process have a table of their own.
static ARE_OWN: AtomicBool = AtomicBool::new(false);

/// Two descriptors of the own table that are there to be closed.
struct Spare {
    both: [RawFd; 2],
    /// What the first one is. No other table has it.
    is: Identity,
}

/// Device and inode of a file.
type Identity = (libc::dev_t, libc::ino_t);

static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

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
    *SPARE.lock().unwrap_or_else(PoisonError::into_inner) = Spare::new();
}

/// Calls a function with two free descriptors, as far as other threads leave them free, if this
/// thread has the own table.
pub(crate) fn with_spare<T>(call: impl FnOnce() -> T) -> T {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_here = |spare: &mut Spare| identity(spare.both[0]) == Some(spare.is);
    let Some(closed) = spare.take_if(is_here) else { return call() };
    for descriptor in closed.both {
        // SAFETY: the descriptor is of this table, and nothing else closes it.
        unsafe { libc::close(descriptor) };
    }
    let result = call();
    *spare = Spare::new();
    result
}

impl Spare {
    fn new() -> Option<Spare> {
        let (one, other) = UnixDatagram::pair().ok()?;
        let both = [one.into_raw_fd(), other.into_raw_fd()];
        Some(Spare { both, is: identity(both[0])? })
    }
}

fn identity(descriptor: RawFd) -> Option<Identity> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call fills the structure.
    let status = unsafe { libc::fstat(descriptor, stat.as_mut_ptr()) };
    // SAFETY: it was filled.
    (status == 0).then(|| unsafe { stat.assume_init() }).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Whether the exporter's threads have a table of their own. A child of the program has none of
/// their descriptors then.
pub(crate) fn are_own() -> bool {
    ARE_OWN.load(Relaxed)
}
