//! Threads of the library itself, with all signals blocked, a small stack and a name.

use super::callback::{self, Callback};
use super::os::keep_errno;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;

/// The function that a thread of the library runs.
pub(crate) type Body = extern "C" fn(*mut c_void) -> *mut c_void;

/// Bytes of the stack: many times what a decay pass needs, and enough for what runs at `exit` if
/// the thread is the last one of the process.
const STACK: usize = 256 << 10;

/// A thread that was started. [`OwnThread::join`] is called for it, or it keeps its stack.
pub(crate) struct OwnThread(libc::pthread_t);

/// Starts a thread that gets no signals. The error is that of `pthread_create`.
///
/// The C library allocates for the new thread, so the caller holds no lock that an allocation
/// needs. It gets these blocks from the first arena: the calling thread may have an arena that the
/// program empties while the new thread runs.
pub(crate) fn start(body: Body) -> Result<OwnThread, c_int> {
    callback::run(Callback::Thread, || {
        let before = block_signals();
        // In a program with much thread-local storage the small stack is refused. The default
        // works.
        let started = match create(body, Some(STACK)) {
            Err(libc::EINVAL) => create(body, None),
            started => started,
        };
        // SAFETY: the mask is the one that was in force before.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut())
        };
        started
    })
}

impl OwnThread {
    /// Waits until the thread has ended, and neither the C library nor the system counts it any
    /// more. The C library frees what it allocated for the thread.
    pub(crate) fn join(self) {
        keep_errno(|| {
            let mut before = 0;
            // SAFETY: the place is writable. `malloc` and `free` are no points of cancellation, and
            // `pthread_join` is one.
            unsafe { pthread_setcancelstate(CANCEL_DISABLE, &raw mut before) };
            // SAFETY: the thread was started, and nobody waits for it a second time.
            unsafe { libc::pthread_join(self.0, core::ptr::null_mut()) };
            // SAFETY: the place is writable.
            unsafe { pthread_setcancelstate(before, &raw mut before) };
        });
    }
}

/// Blocks all signals for the calling thread, and returns which were blocked before. Threads that
/// it creates inherit that.
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

fn create(body: Body, stack: Option<usize>) -> Result<OwnThread, c_int> {
    // SAFETY: all-zero bytes are a valid place for what `pthread_attr_init` writes.
    let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: the place is writable.
    let status = unsafe { libc::pthread_attr_init(&raw mut attributes) };
    if status != 0 {
        return Err(status);
    }
    if let Some(bytes) = stack {
        // SAFETY: the attributes were initialised.
        unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, bytes) };
    }
    // A number, or in another C library an address.
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    let place = thread.as_mut_ptr();
    // SAFETY: the body takes any argument, and stays loaded as long as the library.
    let status =
        unsafe { libc::pthread_create(place, &raw const attributes, body, core::ptr::null_mut()) };
    // SAFETY: the attributes were initialised, and are not used after.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    if status != 0 {
        return Err(status);
    }
    // SAFETY: a thread was started, so its name was written.
    Ok(OwnThread(unsafe { thread.assume_init() }))
}

/// `PTHREAD_CANCEL_DISABLE` of the C libraries of Linux.
const CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;

    /// A function of the C library that no tool has a use for.
    safe fn pthread_getconcurrency() -> c_int;
}

/// Returns the address of `pthread_create`, and of a function that lies beside it in the C library.
pub(crate) fn create_and_beside() -> [usize; 2] {
    [libc::pthread_create as *const () as usize, pthread_getconcurrency as *const () as usize]
}

/// Names the calling thread, for `ps` and debuggers. At most 15 bytes.
pub(crate) fn name(name: &CStr) {
    // SAFETY: reads a C string.
    keep_errno(|| unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) });
}
