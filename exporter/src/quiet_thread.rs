//! Threads of the exporter. They have a name, a small stack, and all signals blocked, so that the
//! program's handlers run on the program's threads.
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of stack. They are address space, of which only the used part has memory.
const STACK: usize = 512 << 10;
/// The standard library's record of a thread is smaller than this.
const RECORD: usize = 256;
/// The pause between two looks at whether a thread has ended.
const LOOK: Duration = Duration::from_micros(200);

/// A thread that runs. A thread that is not joined goes on alone.
pub(crate) struct Quiet {
    thread: Option<JoinHandle<()>>,
    /// Disconnects when the thread ends.
    ended: Mutex<Receiver<()>>,
    process: u32,
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Quiet> {
    let (alive, ended) = channel::<()>();
    // Boxed, so that one function of the standard library starts all of them. Otherwise it has as
    // many, and recordings name one of those that are alike.
    let run: Box<dyn FnOnce() + Send> = Box::new(move || {
        let _alive = alive;
        run();
    });
    let thread = begin(name, run)?;
    Ok(Quiet { thread: Some(thread), ended: Mutex::new(ended), process: std::process::id() })
}

/// Runs a function on such a thread, and waits for what it returns. The calling thread keeps no
/// memory of it. A panic goes on in the calling thread. Returns `None` if the thread still runs
/// after `patience`. It goes on alone then, and drops its result itself.
pub(crate) fn result_of<T: Send + 'static>(
    name: &str,
    patience: Option<Duration>,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let thread = begin(name, run)?;
    // Asks again and again, because a channel would leave memory in the calling thread.
    let begun = Instant::now();
    while let Some(patience) = patience
        && !thread.is_finished()
    {
        if begun.elapsed() >= patience {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
    Ok(Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic))))
}

fn begin<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    find_memory()?;
    let _blocked = Blocked::all();
    Builder::new().name(name.into()).stack_size(STACK).spawn(run)
}

/// Makes sure that there is memory for the record of a thread. The standard library takes it from
/// the C library, past the allocator of the program, and ends the process if there is none. A block
/// of each size that it may have is requested and freed, so the next request gets that.
fn find_memory() -> io::Result<()> {
    for size in (16..=RECORD).step_by(16) {
        let mut block = Vec::<u8>::new();
        block.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        black_box(&mut block);
    }
    Ok(())
}

impl Quiet {
    /// Waits until the thread has ended, at most for `patience`, because it may hang in the
    /// allocator. Returns `false` if it still runs, or is of the process that this one was forked
    /// from.
    pub(crate) fn join(&mut self, patience: Duration) -> bool {
        if self.process != std::process::id() {
            std::mem::forget(self.thread.take());
            return false;
        }
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            return false;
        }
        self.thread.take().is_none_or(|thread| thread.join().is_ok())
    }
}

/// Blocks all signals of this thread, and of threads that it starts, until this value is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Blocked {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the call fills the set.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are on this stack frame, and the first one was filled.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: `pthread_sigmask` has filled the set.
        Blocked(unsafe { before.assume_init() })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mask of blocked signals, as the system reports it.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }

    #[test]
    fn signals_are_blocked_there_and_nowhere_else() {
        let before = blocked();
        let thread = spawn("lumalloc-test", || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            assert_eq!(name, "lumalloc-test\n");
            // SIGKILL and SIGSTOP cannot be blocked, and the C library uses two signals itself.
            let open = (1 << 8) | (1 << 18) | (1 << 31) | (1 << 32);
            assert_eq!(blocked() | open, u64::MAX, "{:x}", blocked());
        });
        assert!(thread.unwrap().join(Duration::from_secs(60)));
        let open = (1 << 8) | (1 << 18) | (1 << 31) | (1 << 32);
        let result = result_of("lumalloc-test", None, move || blocked() | open);
        assert_eq!(result.unwrap(), Some(u64::MAX));
        assert_eq!(blocked(), before);
    }

    #[test]
    fn a_result_that_does_not_come_is_not_waited_for() {
        let (end, ended) = channel::<()>();
        let (dropped, is_dropped) = channel::<()>();
        let run = move || {
            let _ = ended.recv();
            dropped
        };
        let result = result_of("lumalloc-test", Some(Duration::from_millis(1)), run);
        assert!(result.unwrap().is_none());
        drop(end);
        assert!(is_dropped.recv().is_err(), "the thread drops its result");
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(result_of("lumalloc-test", hour, || 7).unwrap(), Some(7));
    }
}
