//! Who this process is.

/// The effective user.
pub(crate) fn effective() -> u32 {
    // SAFETY: has no preconditions, and cannot fail.
    unsafe { libc::geteuid() }
}
