//! The process: its number and its loader.

use super::os::{self, keep_errno};
use core::ffi::c_int;

/// Returns the number of the calling process.
pub(crate) fn id() -> c_int {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::getpid() }
}

/// A thread, as the kernel names it: the number of its process, and its own.
#[derive(Clone, Copy)]
pub(crate) struct KernelThread {
    process: c_int,
    thread: c_int,
}

impl KernelThread {
    /// No thread.
    pub(crate) const NONE: KernelThread = KernelThread { process: 0, thread: 0 };

    /// Returns the calling thread.
    pub(crate) fn current() -> KernelThread {
        KernelThread { process: id(), thread: c_int::try_from(os::thread_id()).unwrap_or(0) }
    }

    /// Returns whether the calling thread is another one of the same process. `false` in the child
    /// of a clone(2) that no handler of forks has told of.
    pub(crate) fn is_former(self) -> bool {
        let now = KernelThread::current();
        self.process == now.process && self.thread != now.thread
    }

    /// Returns whether the thread has ended. `false` also where the system does not tell, and while
    /// another thread has the same number.
    pub(crate) fn is_gone(self) -> bool {
        // SAFETY: signal 0 is sent to nobody; the call takes and returns numbers.
        let sent =
            |thread: c_int| unsafe { libc::syscall(libc::SYS_tgkill, self.process, thread, 0) };
        let is_gone = || sent(self.thread) == -1 && os::errno() == libc::ESRCH;
        self.thread != 0 && os::keep_errno(is_gone)
    }
}

/// Returns the first address of the loader's code, or 0 if the program has no loader.
pub(crate) fn loader() -> usize {
    // SAFETY: any value may be asked for.
    keep_errno(|| unsafe { libc::getauxval(libc::AT_BASE) }) as usize
}
