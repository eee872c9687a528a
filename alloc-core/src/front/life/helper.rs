//! The state of the background thread, in a page of its own, which the system zeroes in a forked
//! child.
//!
//! The thread does not exist there. The fork handlers say so too, but they do not run for a child
//! that is made by `clone` or by the system call itself. Zero is OFF, so such a child never waits
//! for a thread that it does not have. Where the system does not zero the page, such a child looks
//! which process it is. The child of a vfork shares its parent's memory, and so the state.

use super::may_start;
use crate::ground::os;
use crate::ground::sync::helper_state::{HelperState, State};
use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The state, and nothing else in its page.
#[repr(C, align(4096))]
struct OwnPage(HelperState);

const _: () = assert!(size_of::<OwnPage>() == PAGE && State::Off as u32 == 0);

static STATE: OwnPage = OwnPage(HelperState::new());

/// Whether a child that is made by `clone` has the state of its parent.
static IS_INHERITED: AtomicBool = AtomicBool::new(false);

/// The [`os::thread_address`] of the thread. 0: none runs.
static THREAD: AtomicUsize = AtomicUsize::new(0);

/// Notes that the calling thread is the background thread, or that there is none.
pub(super) fn note_thread(is_this: bool) {
    THREAD.store(if is_this { os::thread_address() } else { 0 }, Relaxed);
}

/// Returns whether the calling thread is the background thread.
pub(crate) fn is_this_thread() -> bool {
    THREAD.load(Relaxed) == os::thread_address() && may_start::is_own_process()
}

/// Returns the state.
#[inline]
pub(super) fn get() -> &'static HelperState {
    &STATE.0
}

/// Has the page zeroed in children from now on, if the system can do so. Called before the thread
/// is started.
pub(super) fn zero_in_children() {
    IS_INHERITED.store(!is_zeroed_in_children(), Relaxed);
}

/// Returns `false` if the system refuses, or has larger pages.
fn is_zeroed_in_children() -> bool {
    let page = (&raw const STATE).cast_mut().cast();
    // SAFETY: the page holds the state alone, for which all-zero bytes are a valid value.
    let advise = || unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) };
    os::system_page() == PAGE && os::keep_errno(advise) == 0
}

/// Returns whether the state is that of the parent of this process, and so of a thread that does
/// not exist here.
pub(super) fn is_of_parent() -> bool {
    IS_INHERITED.load(Relaxed) && !may_start::is_own_process()
}

/// Wakes the thread out of one kind of sleep. Sets OFF if it does not exist here.
#[cold]
#[inline(never)]
pub(super) fn wake(from: State) {
    if is_of_parent() { STATE.0.set(State::Off) } else { STATE.0.wake(from) }
}

/// Stops the thread, if it exists here, and waits until it has ended. OFF afterwards.
pub(super) fn stop() {
    if is_of_parent() { STATE.0.set(State::Off) } else { STATE.0.stop() }
}
