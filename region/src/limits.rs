//! Limits of the process.

/// Returns how many bytes of addresses the process may have, if there is a limit.
pub(crate) fn addresses() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is writable. If the call fails, it is as it was.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    usize::try_from(limit.rlim_cur).ok().filter(|_| limit.rlim_cur != libc::RLIM_INFINITY)
}
