//! Locks with ranks, and the one module by which the model checker replaces atomics.

pub(crate) mod seam;
pub(crate) mod futex;
pub(crate) mod history;
pub(crate) mod exempt_thread;
pub(crate) mod lock_rank;
#[allow(unsafe_code)]
pub(crate) mod lock;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod takeover_lock;
#[cfg(not(loom))]
pub(crate) mod wait;
#[cfg(not(loom))]
pub(crate) mod aside;
pub(crate) mod following;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod gate;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod helper_state;
pub(crate) mod bits;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod number_stack;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod published;
