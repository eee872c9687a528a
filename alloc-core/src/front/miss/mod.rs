//! The slow paths of malloc and free, for calls that the fast paths cannot serve.

#[allow(unsafe_code)]
pub(crate) mod limit_callback;
pub(crate) mod retry;
pub(crate) mod out_of_memory;
#[allow(unsafe_code)]
pub(crate) mod sampled;
#[allow(unsafe_code)]
pub(crate) mod recorded;
#[allow(unsafe_code)]
pub(crate) mod diverted;
#[allow(unsafe_code)]
pub(crate) mod large_blocks;
#[allow(unsafe_code)]
pub(crate) mod small;
#[allow(unsafe_code)]
pub(crate) mod watched;
#[allow(unsafe_code)]
pub(crate) mod sealed;
#[allow(unsafe_code)]
pub(crate) mod counted;
#[allow(unsafe_code)]
pub(crate) mod take;
#[allow(unsafe_code)]
pub(crate) mod give;
