//! Whether a signal is ignored, as `nohup` and shells have it for what they start.

use std::mem::MaybeUninit;

/// Returns whether this process ignores a signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer changes nothing, and the other one is writable.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call above succeeded, and wrote the whole structure.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}
