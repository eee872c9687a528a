//! A second standard error, to print the statistics at exit in programs that have closed the first
//! one by then. The coreutils close it in a handler of `exit`, to learn whether all output was
//! written, before the libraries' own functions run.
//!
//! Only under `opt.stats_print`, a second descriptor is made at load. It is closed at exec, and has
//! a number that programs do not reach. A forked child closes it, so that no daemon keeps a pipe
//! open whose end its starter waits for. A program may close descriptors that it did not open and
//! then get the number again, so it is used only while it leads to the same file as at load.

use crate::{errno, variables};
use alloc_core::system_calls;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};
use lumalloc_namespace::writer::WriteCallback;

const NONE: c_int = -1;

static NUMBER: AtomicI32 = AtomicI32::new(NONE);
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// Makes the second descriptor. Called once, at load.
pub(crate) fn make() {
    let before = errno::get();
    if let (Some((device, inode)), Some(number)) =
        (file(libc::STDERR_FILENO), system_calls::duplicate_high(libc::STDERR_FILENO))
    {
        DEVICE.store(device, Relaxed);
        INODE.store(inode, Relaxed);
        NUMBER.store(number, Relaxed);
        // SAFETY: the handler takes no arguments and exists as long as the library.
        unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
    }
    errno::set(before);
}

/// The callback that writes to the second descriptor, if standard error is closed and the program
/// has not set `malloc_message`.
pub(crate) fn instead() -> Option<WriteCallback> {
    let before = errno::get();
    let is_closed = variables::program_callback().is_none() && is_closed(libc::STDERR_FILENO);
    let found = is_closed && is_ours(NUMBER.load(Relaxed));
    errno::set(before);
    if found { Some(deliver) } else { None }
}

unsafe extern "C" fn deliver(_: *mut c_void, text: *const c_char) {
    // SAFETY: the caller vouches for the text.
    let text = unsafe { core::ffi::CStr::from_ptr(text) };
    variables::write_to(NUMBER.load(Relaxed), text.to_bytes());
}

unsafe extern "C" fn close_in_child() {
    let before = errno::get();
    let number = NUMBER.swap(NONE, Relaxed);
    if is_ours(number) {
        system_calls::close(number);
    }
    errno::set(before);
}

/// Whether there is no such descriptor. A sandbox may refuse to tell.
fn is_closed(number: c_int) -> bool {
    file(number).is_none() && errno::get() == libc::EBADF
}

/// The device and inode of a descriptor's file; `None` if there is no such descriptor, or the
/// system does not tell.
fn file(number: c_int) -> Option<(u64, u64)> {
    system_calls::identity(number).map(|(device, inode, _)| (device, inode))
}

/// Whether this is still the descriptor that was made, as far as that can be known.
fn is_ours(number: c_int) -> bool {
    if number < 0 {
        return false;
    }
    // SAFETY: the call takes no pointers.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    flags == libc::FD_CLOEXEC && file(number) == Some((DEVICE.load(Relaxed), INODE.load(Relaxed)))
}
