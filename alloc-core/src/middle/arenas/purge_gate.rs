//! The gate that purges outside the decay pass go through, so that a fork meets none half done: the
//! pages of one would be in nobody's hands in the child.
//!
//! With `dirty_decay_ms:0` any thread purges what it has just freed, many at a time and perhaps
//! under the lock of its cache or of a bin. So a fork does not take a lock: it closes the gate and
//! waits until those inside have left; who finds it closed leaves its pages to the next purge.

use crate::ground::os;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const CLOSED: u32 = 1 << 31;

/// How many threads are inside, and whether the gate is closed.
pub(crate) struct PurgeGate(AtomicU32);

/// The gate of this process.
pub(crate) static GATE: PurgeGate = PurgeGate::new();

/// The right to purge. Dropping it leaves.
#[must_use]
pub(crate) struct Inside<'a>(&'a PurgeGate);

impl PurgeGate {
    const fn new() -> PurgeGate {
        PurgeGate(AtomicU32::new(0))
    }

    /// Goes in. `None`: it is closed.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        // Acquire: pairs with the Release in `open`.
        let before = self.0.fetch_add(1, Ordering::Acquire);
        let inside = Inside(self);
        (before & CLOSED == 0).then_some(inside)
    }

    /// Closes it, and waits until nobody is inside. One thread at a time.
    pub(crate) fn close(&self) {
        let mut now = self.0.fetch_or(CLOSED, Ordering::Relaxed) | CLOSED;
        while now != CLOSED {
            os::futex_wait(&self.0, now);
            now = self.0.load(Ordering::Relaxed);
        }
        // Acquire: pairs with the Release in `drop`: what those inside did is seen.
        core::sync::atomic::fence(Ordering::Acquire);
    }

    /// Opens it again.
    pub(crate) fn open(&self) {
        // Release: pairs with the Acquire in `enter`.
        self.0.fetch_and(!CLOSED, Ordering::Release);
    }

    /// Opens it in a forked child, where nobody else is left.
    pub(crate) fn open_in_child(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `close`.
        if self.0.0.fetch_sub(1, Ordering::Release) > CLOSED {
            os::futex_wake_one(&self.0.0);
        }
    }
}

/// An arena with hooks has freed pages that are to go at once, or a purge was put off.
static HOOKED_DUE: AtomicBool = AtomicBool::new(false);

/// Notes that pages of an arena with hooks are to go as soon as no lock is held.
pub(in crate::middle) fn note_hooked_due() {
    HOOKED_DUE.store(true, Ordering::Relaxed);
}

/// Whether that was noted.
#[inline]
pub(crate) fn is_hooked_due() -> bool {
    HOOKED_DUE.load(Ordering::Relaxed)
}

/// Forgets it: the pages go now.
pub(in crate::middle) fn take_hooked_due() {
    HOOKED_DUE.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn sanit_closing_waits_for_those_inside_and_keeps_others_out() {
        static CLOSED_NOW: AtomicBool = AtomicBool::new(false);
        static TESTED: PurgeGate = PurgeGate::new();
        let gate = &TESTED;
        let (first, second) = (gate.enter().unwrap(), gate.enter().unwrap());
        let closer = std::thread::spawn(move || {
            gate.close();
            CLOSED_NOW.store(true, Ordering::Relaxed);
        });
        // Closed from the first moment for those who come, but not done.
        while gate.enter().is_some() {
            std::thread::yield_now();
        }
        drop(first);
        assert!(!CLOSED_NOW.load(Ordering::Relaxed), "one is still inside");
        drop(second);
        closer.join().unwrap();
        assert!(gate.enter().is_none());
        gate.open();
        assert!(gate.enter().is_some());
        assert_eq!(gate.0.load(Ordering::Relaxed), 0);
    }
}
