//! The end of a process that cannot go on.
use alloc_core::message;

/// Writes a message to `malloc_message` or standard error, and aborts.
#[cold]
pub(crate) fn die(text: &[u8]) -> ! {
    message::write(text);
    // SAFETY: abort has no requirements.
    unsafe { libc::abort() }
}
