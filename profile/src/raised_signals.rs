//! The signals that a write raises, which end a program that does not expect them: `SIGXFSZ` at the
//! bound of a file's size (`ulimit -f`), and `SIGPIPE` where nobody reads.

use core::ptr::null_mut;

/// Calls `write`, which writes to a file. The signals that it raises in the calling thread are taken
/// back: the error number of the system call says the same.
pub(crate) fn without<T>(write: impl FnOnce() -> T) -> T {
    let mut raised = set_of(&[libc::SIGXFSZ, libc::SIGPIPE]);
    let mut before = set_of(&[]);
    // SAFETY: both sets are the caller's, and whole.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const raised, &raw mut before) };
    leave_out_pending(&mut raised);
    let result = write();
    while take(&raised) {}
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    result
}

fn set_of(signals: &[core::ffi::c_int]) -> libc::sigset_t {
    let mut set = core::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the place is writable.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set was made above.
        unsafe { libc::sigaddset(set.as_mut_ptr(), *signal) };
    }
    // SAFETY: as above.
    unsafe { set.assume_init() }
}

/// Removes from a set what waits for the program already.
fn leave_out_pending(set: &mut libc::sigset_t) {
    let mut pending = set_of(&[]);
    // SAFETY: the set is whole.
    unsafe { libc::sigpending(&raw mut pending) };
    for signal in [libc::SIGXFSZ, libc::SIGPIPE] {
        // SAFETY: as above.
        if unsafe { libc::sigismember(&raw const pending, signal) } == 1 {
            // SAFETY: as above.
            unsafe { libc::sigdelset(set, signal) };
        }
    }
}

/// Takes one signal of a set that waits for the thread. Returns whether there was one.
///
/// It is no point of cancellation, as `sigtimedwait` would be.
fn take(set: &libc::sigset_t) -> bool {
    /// Bytes of a set, as the system has it.
    const BYTES: usize = 8;
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let nothing = null_mut::<libc::siginfo_t>();
    // SAFETY: the set and the time are whole, and nothing is written.
    let signal = unsafe {
        libc::syscall(
            libc::SYS_rt_sigtimedwait,
            core::ptr::from_ref(set),
            nothing,
            &raw const now,
            BYTES,
        )
    };
    signal > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_pending(signal: core::ffi::c_int) -> bool {
        let mut pending = set_of(&[]);
        // SAFETY: the set is whole.
        unsafe { libc::sigpending(&raw mut pending) };
        // SAFETY: as above.
        unsafe { libc::sigismember(&raw const pending, signal) == 1 }
    }

    fn raise(signal: core::ffi::c_int) {
        // SAFETY: takes nothing and returns the thread's handle.
        let own = unsafe { libc::pthread_self() };
        // SAFETY: the handle is the calling thread's.
        unsafe { libc::pthread_kill(own, signal) };
    }

    #[test]
    fn what_is_raised_meanwhile_is_taken_back_and_what_waited_stays() {
        let is_raised = without(|| {
            raise(libc::SIGXFSZ);
            raise(libc::SIGPIPE);
            is_pending(libc::SIGXFSZ) && is_pending(libc::SIGPIPE)
        });
        assert!(is_raised && !is_pending(libc::SIGXFSZ) && !is_pending(libc::SIGPIPE));
        let blocked = set_of(&[libc::SIGXFSZ]);
        // SAFETY: the set is whole.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, null_mut()) };
        raise(libc::SIGXFSZ);
        without(|| raise(libc::SIGXFSZ));
        assert!(is_pending(libc::SIGXFSZ), "it is the program's");
        assert!(take(&blocked));
        // SAFETY: as above.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const blocked, null_mut()) };
    }
}
