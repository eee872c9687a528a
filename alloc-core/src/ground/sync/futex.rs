//! A word that threads sleep on until its value changes.
//!
//! For the model checker it is a word with a lock and a condition variable, so that a wake-up that
//! is never made leaves a thread asleep, which the checker reports.

use super::seam::AtomicU32;
#[cfg(loom)]
use super::seam::Ordering;
use core::ops::Deref;

/// A 32-bit word that threads may sleep on.
pub(crate) struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Deref for Futex {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(not(loom))]
impl Futex {
    /// A word with a value.
    pub(crate) const fn new(value: u32) -> Futex {
        Futex { word: AtomicU32::new(value) }
    }

    /// Sleeps while the word has this value, until a wake-up, and for at most so many milliseconds
    /// if any are given. May return early.
    pub(crate) fn sleep(&self, value: u32, millis: Option<u64>) {
        crate::ground::os::futex_wait_for(&self.word, value, millis);
    }

    /// Wakes one thread that sleeps on the word.
    pub(crate) fn wake_one(&self) {
        crate::ground::os::futex_wake_one(&self.word);
    }
}

#[cfg(loom)]
impl Futex {
    pub(crate) fn new(value: u32) -> Futex {
        Futex {
            word: AtomicU32::new(value),
            sleepers: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    /// The time is never up in a model: a wake-up has to come.
    pub(crate) fn sleep(&self, value: u32, _millis: Option<u64>) {
        let guard = self.sleepers.0.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.sleepers.1.wait(guard));
        }
    }

    pub(crate) fn wake_one(&self) {
        drop(self.sleepers.0.lock());
        self.sleepers.1.notify_one();
    }
}
