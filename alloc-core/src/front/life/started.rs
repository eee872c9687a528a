//! Whether the start of the process's allocator was made, and the lock of whoever makes it.

use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicBool, Ordering};

/// How far the start has come.
pub(crate) struct Start {
    /// The options were read. They stay as they are, also where the start then failed.
    pub(super) are_options_read: bool,
}

/// One thread makes the start. Fork waits for it.
pub(crate) static START: RankedMutex<Start> =
    RankedMutex::new(LockRank::Pass, Start { are_options_read: false });

static STARTED: AtomicBool = AtomicBool::new(false);

/// Whether it was made: options, arena 0 and the exit call are there.
#[inline]
pub(super) fn is_made() -> bool {
    // Acquire: pairs with the Release in `note`.
    STARTED.load(Ordering::Acquire)
}

/// Notes that it was made.
pub(super) fn note() {
    // Release: pairs with the Acquire in `is_made`.
    STARTED.store(true, Ordering::Release);
}
