//! Where pages come from: the system, in the ways that options and kernels allow.

#[allow(unsafe_code)]
pub(crate) mod page_provider;
#[allow(unsafe_code)]
pub(crate) mod provider;
pub(crate) mod mapping;
#[allow(unsafe_code)]
pub(crate) mod thp;
