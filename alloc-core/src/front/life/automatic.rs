//! What the library does by itself, by default, so that unused memory goes back: it starts the
//! background thread for a time. Where no thread can be started, the threads of the program give
//! unused memory back when they free ([`trim`](super::trim)).

use super::may_start::{self, MayStart};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the background thread is started for a time when much memory is unused.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether it would be, but no thread can be started in this process.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns whether the background thread is started for a time when much memory is unused.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Sets whether it is.
pub(super) fn set(on: bool) {
    IS_ON.store(on, Relaxed);
    IS_REFUSED.store(false, Relaxed);
}

/// Notes that no thread can be started in this process.
pub(super) fn note_no_threads() {
    if IS_ON.swap(false, Relaxed) {
        IS_REFUSED.store(true, Relaxed);
    }
}

/// Notes that the system refused a thread with this error.
pub(super) fn note_refusal(error: c_int) {
    if !may_start::note_refusal(error) {
        note_no_threads();
    }
}

/// Returns whether a thread of the program may give back what is unused if no other thread will.
pub(super) fn may_trim() -> bool {
    is_on() || IS_REFUSED.load(Relaxed)
}

/// Returns whether no other thread will, because none can be started.
pub(super) fn is_left_to_callers() -> bool {
    IS_REFUSED.load(Relaxed) || (is_on() && may_start::may_start() == MayStart::Never)
}
