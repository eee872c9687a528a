//! The rare modes: what they do with a block, and the state of each.

pub(crate) mod watch;
#[allow(unsafe_code)]
pub(crate) mod diversion;
pub(crate) mod until_sample;
#[allow(unsafe_code)]
pub(crate) mod fill;
#[allow(unsafe_code)]
pub(crate) mod hardened;
#[allow(unsafe_code)]
pub(crate) mod guarded;
pub(crate) mod block_size;
#[allow(unsafe_code)]
pub(crate) mod judge;
#[allow(unsafe_code)]
pub(crate) mod operators;
#[allow(unsafe_code)]
pub(crate) mod last_heap;
