//! A thread of the library's own: detached, deaf to signals, with a small stack and a name.

use super::os::keep_errno;
use core::ffi::{CStr, c_int, c_void};

/// What such a thread runs.
pub(crate) type Body = extern "C" fn(*mut c_void) -> *mut c_void;

/// Enough for a pass many times over, and for what runs at `exit` if it is the last thread.
const STACK: usize = 256 << 10;

/// Starts a detached thread that no signal is delivered to. The error is `pthread_create`'s.
///
/// It allocates, by way of the C library: the caller holds no lock that an allocation needs.
pub(crate) fn start(body: Body) -> Result<(), c_int> {
    keep_errno(|| {
        let before = block_signals();
        // With much thread-local storage in the program the small stack is refused: its usual one.
        let status = match create(body, Some(STACK)) {
            libc::EINVAL => create(body, None),
            status => status,
        };
        // SAFETY: the mask is the one that was in force.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut())
        };
        if status == 0 { Ok(()) } else { Err(status) }
    })
}

/// Blocks all signals for the calling thread (threads that it makes inherit that), and answers what
/// was blocked before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: all-zero is a valid (empty) set.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    let mut before = all;
    // SAFETY: the set is writable.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: one set is readable, the other writable.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    before
}

fn create(body: Body, stack: Option<usize>) -> c_int {
    // SAFETY: all-zero bytes are a valid place for what `pthread_attr_init` writes.
    let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: the place is writable.
    let status = unsafe { libc::pthread_attr_init(&raw mut attributes) };
    if status != 0 {
        return status;
    }
    // SAFETY: the attributes were initialised.
    unsafe {
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED)
    };
    if let Some(bytes) = stack {
        // SAFETY: the attributes were initialised.
        unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, bytes) };
    }
    let mut thread: libc::pthread_t = 0;
    // SAFETY: the body takes any argument, and is there as long as the library is.
    let status = unsafe {
        libc::pthread_create(&raw mut thread, &raw const attributes, body, core::ptr::null_mut())
    };
    // SAFETY: the attributes were initialised, and are not used after.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    status
}

/// Names the calling thread, for `ps` and debuggers. At most 15 bytes.
pub(crate) fn name(name: &CStr) {
    // SAFETY: reads a C string.
    keep_errno(|| unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) });
}
