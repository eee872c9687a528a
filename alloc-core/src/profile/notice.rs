//! A message that is written once, if its time comes.
//!
//! It has to wait: a sink of the program may allocate, and locks may be held when its time comes.

use crate::ground::message;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A message that is written once, if its time comes.
pub(super) struct Notice {
    pub(super) text: &'static [u8],
    /// Whether its time has come.
    has_come: AtomicBool,
    /// Whether it is to be written.
    is_due: AtomicBool,
}

impl Notice {
    /// Creates a message whose time has not come.
    pub(super) const fn new(text: &'static [u8]) -> Notice {
        Notice { text, has_come: AtomicBool::new(false), is_due: AtomicBool::new(false) }
    }

    /// Lets the message be written as soon as no lock is held, if its time has not come before.
    pub(super) fn come(&self) {
        let has_come = || self.has_come.swap(true, Relaxed);
        if !self.has_come.load(Relaxed) && !has_come() {
            self.is_due.store(true, Relaxed);
        }
    }

    /// Returns whether it is to be written.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Relaxed)
    }

    /// Writes the message if it is to be written. The caller holds no lock.
    pub(super) fn tell(&self) {
        // The process goes on also under `abort:true`: nothing is wrong with it.
        if self.is_due.swap(false, Relaxed) {
            message::write(self.text);
        }
    }
}
