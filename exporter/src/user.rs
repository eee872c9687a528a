//! The user of this process.

/// Returns the effective user.
pub(crate) fn effective() -> u32 {
    // SAFETY: `geteuid` has no preconditions, and cannot fail.
    unsafe { libc::geteuid() }
}
