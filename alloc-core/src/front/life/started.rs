//! Whether the start of the process's allocator was made, and the lock of the thread that makes it.

use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicBool, Ordering};

/// The progress of the start.
pub(crate) struct Start {
    /// Whether the options were read. They stay in force even if the start failed afterwards.
    pub(super) are_options_read: bool,
}

/// The lock of the thread that makes the start. Fork waits for it.
pub(crate) static START: RankedMutex<Start> =
    RankedMutex::new(LockRank::Pass, Start { are_options_read: false });

static STARTED: AtomicBool = AtomicBool::new(false);

/// Returns whether the start was made, so that options, arena 0 and the exit call exist.
#[inline]
pub(super) fn is_made() -> bool {
    // Acquire: pairs with the Release in `note`.
    STARTED.load(Ordering::Acquire)
}

/// Notes that the start was made.
pub(super) fn note() {
    // Release: pairs with the Acquire in `is_made`.
    STARTED.store(true, Ordering::Release);
}
