//! Locks with ranks, and the one seam through which the model checker sees our atomics.

#[cfg(not(loom))]
pub(crate) mod history;
#[cfg(not(loom))]
pub(crate) mod lock_rank;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod lock;
pub(crate) mod seam;
