//! Between bins and slabs: the arrays of bins, refill, overflow, collection, and the limits of a
//! thread.

pub(crate) mod layouts;
pub(crate) mod countdown;
#[allow(unsafe_code)]
pub(crate) mod arrays;
#[allow(unsafe_code)]
pub(crate) mod flush;
#[allow(unsafe_code)]
pub(crate) mod freed_samples;
#[allow(unsafe_code)]
pub(crate) mod suspects;
#[allow(unsafe_code)]
pub(crate) mod suspects_elsewhere;
pub(crate) mod collection;
#[allow(unsafe_code)]
pub(crate) mod refill;
pub(crate) mod thread_limits;
