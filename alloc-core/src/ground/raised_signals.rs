//! The signals that a write raises, which end a program that does not expect them: `SIGXFSZ` at the
//! bound of a file's size (`ulimit -f`), and `SIGPIPE` where nobody reads.
//!
//! A sandbox may end a program that uses a system call it does not know. So a write that succeeds
//! takes `rt_sigprocmask` and nothing else, and one that fails no more than it must.

use super::os::{errno, keep_errno};
use super::system_calls;
use core::ffi::c_int;
use core::ptr::null_mut;

const RAISED: [c_int; 2] = [libc::SIGXFSZ, libc::SIGPIPE];

/// Calls `write`, which writes to a file and returns the system's error number if it fails. A
/// signal that this raises in the calling thread is taken back: the number says the same.
///
/// # Errors
/// That of `write`.
pub fn without_signals<T>(write: impl FnOnce() -> Result<T, c_int>) -> Result<T, c_int> {
    let raised = set_of(&RAISED);
    let mut before = set_of(&[]);
    // SAFETY: both sets are the caller's, and whole.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const raised, &raw mut before) };
    // One that was not blocked waits for nobody.
    let waiting = RAISED.map(|signal| is_in(&before, signal) && is_pending(signal));
    let result = write();
    if matches!(result, Err(libc::EFBIG | libc::EPIPE)) {
        RAISED
            .iter()
            .zip(waiting)
            .filter(|(_, waits)| !waits)
            .for_each(|(signal, _)| take(*signal));
    }
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    result
}

/// Writes all of `text` to standard error, giving up on any error. It is that of the process also
/// in a thread with a table of descriptors of its own, as those of the exporter, in which that
/// number cannot be written to.
pub fn write_stderr(text: &[u8]) {
    keep_errno(|| {
        if write_all(libc::STDERR_FILENO, text) == Err(libc::EBADF) {
            let how = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOCTTY;
            let process = system_calls::open(c"/proc/self/fd/2", how, 0);
            if process >= 0 {
                let _ = write_all(process, text);
                system_calls::close(process);
            }
        }
    });
}

/// Writes all of `text` to a descriptor, and raises no signal. Gives up on any error.
///
/// # Errors
/// The system's error number.
pub fn write_all(descriptor: c_int, text: &[u8]) -> Result<(), c_int> {
    without_signals(|| complete(text, |rest| system_calls::write(descriptor, rest)))
}

/// Calls `write` with what is left of a text until it has taken all, or fails, and not because a
/// signal came.
fn complete(text: &[u8], mut write: impl FnMut(&[u8]) -> isize) -> Result<(), c_int> {
    let mut rest = text;
    while !rest.is_empty() {
        match usize::try_from(write(rest)) {
            Ok(0) => return Err(libc::EIO),
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return Err(errno()),
        }
    }
    Ok(())
}

fn set_of(signals: &[c_int]) -> libc::sigset_t {
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

fn is_in(set: &libc::sigset_t, signal: c_int) -> bool {
    // SAFETY: the set is whole.
    unsafe { libc::sigismember(core::ptr::from_ref(set), signal) == 1 }
}

fn is_pending(signal: c_int) -> bool {
    let mut pending = set_of(&[]);
    // SAFETY: the set is whole.
    unsafe { libc::sigpending(&raw mut pending) };
    is_in(&pending, signal)
}

/// Takes a signal that waits for the thread, if it does. This is no point of cancellation, as
/// `sigtimedwait` would be.
fn take(signal: c_int) {
    /// Bytes of a set, as the system has it.
    const BYTES: usize = 8;
    let (set, now) = (set_of(&[signal]), libc::timespec { tv_sec: 0, tv_nsec: 0 });
    let nothing = null_mut::<libc::siginfo_t>();
    let (set, now) = (&raw const set, &raw const now);
    // SAFETY: the set and the time are whole, and nothing is written.
    unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, set, nothing, now, BYTES) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::os::set_errno;

    /// Writes a text with these answers of the system, and no more. Returns what was taken, and the
    /// error.
    fn taken(answers: &[Result<usize, c_int>]) -> (Vec<u8>, Option<c_int>) {
        let (mut answers, mut taken) = (answers.iter(), Vec::new());
        let outcome = complete(b"a line\n", |rest| match answers.next().expect("no more calls") {
            Ok(length) => {
                taken.extend(&rest[..*length]);
                length.cast_signed()
            }
            Err(code) => {
                set_errno(*code);
                -1
            }
        });
        assert_eq!(answers.next(), None);
        (taken, outcome.err())
    }

    #[test]
    fn a_text_that_is_cut_short_is_completed() {
        assert_eq!(taken(&[Ok(7)]), (b"a line\n".to_vec(), None));
        let interrupted = Err(libc::EINTR);
        let answers = [Ok(2), interrupted, interrupted, Ok(5)];
        assert_eq!(taken(&answers), (b"a line\n".to_vec(), None));
        assert_eq!(taken(&[Ok(2), Err(libc::EAGAIN)]), (b"a ".to_vec(), Some(libc::EAGAIN)));
        assert_eq!(taken(&[Ok(2), Ok(0)]), (b"a ".to_vec(), Some(libc::EIO)));
        assert_eq!(taken(&[Err(libc::EBADF)]), (Vec::new(), Some(libc::EBADF)));
    }

    fn raise(signal: c_int) {
        // SAFETY: takes nothing and returns the thread's handle.
        let own = unsafe { libc::pthread_self() };
        // SAFETY: the handle is the calling thread's.
        unsafe { libc::pthread_kill(own, signal) };
    }

    #[test]
    fn what_a_failed_write_raises_is_taken_back_and_what_waited_stays() {
        for (signal, error) in [(libc::SIGXFSZ, libc::EFBIG), (libc::SIGPIPE, libc::EPIPE)] {
            let failed = || {
                raise(signal);
                assert!(is_pending(signal));
                Err::<(), _>(error)
            };
            assert_eq!(without_signals(failed), Err(error));
            assert!(!is_pending(signal));
            let blocked = set_of(&[signal]);
            // SAFETY: the set is whole.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, null_mut()) };
            assert_eq!(without_signals(failed), Err(error));
            assert!(!is_pending(signal), "also where the program has blocked it");
            raise(signal);
            assert_eq!(without_signals(failed), Err(error));
            assert!(is_pending(signal), "it is the program's");
            take(signal);
            // SAFETY: as above.
            unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const blocked, null_mut()) };
        }
    }
}
