//! Locks with ranks, and the one module by which the model checker replaces atomics.

#[cfg(not(loom))]
pub(crate) mod history;
#[cfg(not(loom))]
pub(crate) mod lock_rank;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod lock;
pub(crate) mod seam;
pub(crate) mod following;
pub(crate) mod futex;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod gate;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod helper_state;
pub(crate) mod bits;
