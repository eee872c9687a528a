//! The state of the background thread, in a page of its own, which the system zeroes in a forked
//! child.
//!
//! The thread does not exist there. The fork handlers say so too, but they do not run for a child
//! that is made by `clone` or by the system call itself. Zero is OFF, so such a child never waits
//! for a thread that it does not have. The child of a vfork shares its parent's memory, and so the
//! state.

use crate::ground::os;
use crate::ground::sync::helper_state::{HelperState, State};
use crate::ground::units::PAGE;

/// The state, and nothing else in its page.
#[repr(C, align(4096))]
struct OwnPage(HelperState);

const _: () = assert!(size_of::<OwnPage>() == PAGE && State::Off as u32 == 0);

static STATE: OwnPage = OwnPage(HelperState::new());

/// Returns the state.
#[inline]
pub(super) fn get() -> &'static HelperState {
    &STATE.0
}

/// Has the page zeroed in children from now on. Called before the thread is started. A system with
/// larger pages, or one that refuses, leaves it as it is.
pub(super) fn zero_in_children() {
    if os::system_page() == PAGE {
        let page = (&raw const STATE).cast_mut().cast();
        // SAFETY: the page holds the state alone, for which all-zero bytes are a valid value.
        os::keep_errno(|| unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) });
    }
}
