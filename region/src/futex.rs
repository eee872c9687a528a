//! A word on whose lower half threads of several processes sleep until its value changes.
//!
//! For the model checker it is a word with a lock and a condition variable, so that a wake-up that
//! is never made leaves a thread asleep, which the checker reports.

#[cfg(not(loom))]
use crate::errno;
use crate::seam::AtomicU64;
#[cfg(loom)]
use crate::seam::Ordering;
use core::ops::Deref;
#[cfg(not(loom))]
use core::ptr;

/// A word of 64 bits that threads may sleep on.
#[cfg_attr(not(loom), repr(transparent))]
pub(crate) struct Futex {
    word: AtomicU64,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Deref for Futex {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        &self.word
    }
}

#[cfg(not(loom))]
impl Futex {
    /// A word with a value.
    pub(crate) const fn new(value: u64) -> Futex {
        Futex { word: AtomicU64::new(value) }
    }

    /// Sleeps while the lower half of the word is that of `value`, until a wake-up, and for at most
    /// so many nanoseconds if any are given, less than a second. May return early.
    pub(crate) fn sleep(&self, value: u64, nanoseconds: Option<i64>) {
        let time = nanoseconds.map(|tv_nsec| libc::timespec { tv_sec: 0, tv_nsec });
        self.call(libc::FUTEX_WAIT, value, time.as_ref().map_or(ptr::null(), ptr::from_ref));
    }

    /// Wakes one thread that sleeps on the word.
    pub(crate) fn wake_one(&self) {
        self.call(libc::FUTEX_WAKE, 1, ptr::null());
    }

    /// Makes a call of the system. Keeps `errno`.
    fn call(&self, operation: libc::c_int, value: u64, time: *const libc::timespec) {
        let value = value as u32;
        let lower = self.word.as_ptr().cast::<u32>();
        errno::keeping(|| {
            // SAFETY: the word is mapped, its lower half comes first, and the time is one or null.
            unsafe { libc::syscall(libc::SYS_futex, lower, operation, value, time) };
        });
    }
}

const _: () = assert!(cfg!(target_endian = "little"));

#[cfg(loom)]
impl Futex {
    pub(crate) fn new(value: u64) -> Futex {
        let sleepers = (loom::sync::Mutex::new(()), loom::sync::Condvar::new());
        Futex { word: AtomicU64::new(value), sleepers }
    }

    /// The time is up in a model only where the process that is waited for is gone. Else a wake-up
    /// has to come.
    pub(crate) fn sleep(&self, value: u64, nanoseconds: Option<i64>) {
        if nanoseconds.is_some() && !crate::owner::is_alive(value) {
            return;
        }
        let guard = self.sleepers.0.lock().unwrap();
        if self.word.load(Ordering::Relaxed) as u32 == value as u32 {
            drop(self.sleepers.1.wait(guard));
        }
    }

    pub(crate) fn wake_one(&self) {
        drop(self.sleepers.0.lock());
        self.sleepers.1.notify_one();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn errno_is_kept() {
        let file = std::fs::File::open("/no/such/file");
        let before = file.map_err(|error| error.raw_os_error());
        // The word has another value, so the call fails with EAGAIN.
        Futex::new(0).sleep(1, None);
        assert_eq!(before.err(), Some(Some(errno::get())));
    }
}
