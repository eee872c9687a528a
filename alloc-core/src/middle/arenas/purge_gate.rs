//! The gate that purges outside the decay pass go through, so that a fork finds none half done. The
//! pages of such a purge would be in no list in the child.
//!
//! With `dirty_decay_ms:0` any thread purges what it has just freed, many at a time and perhaps
//! under the lock of a cache or a bin. So a fork takes no lock. It closes the gate and waits until
//! the threads inside have left. A thread that finds it closed leaves its pages to the next purge.

use crate::ground::sync::gate::Gate;
use core::sync::atomic::{AtomicBool, Ordering};

/// The gate of this process.
pub(crate) static GATE: Gate = Gate::new();

/// An arena with hooks has freed pages to be given back at once, or its purge was put off.
static HOOKED_DUE: AtomicBool = AtomicBool::new(false);

/// Notes that an arena with hooks is to be purged as soon as no lock is held.
pub(in crate::middle) fn note_hooked_due() {
    HOOKED_DUE.store(true, Ordering::Relaxed);
}

/// Whether an arena with hooks is to be purged: see [`note_hooked_due`].
#[inline]
pub(crate) fn is_hooked_due() -> bool {
    HOOKED_DUE.load(Ordering::Relaxed)
}

/// Clears the note of [`note_hooked_due`], because the pages are purged now.
pub(in crate::middle) fn take_hooked_due() {
    HOOKED_DUE.store(false, Ordering::Relaxed);
}
