//! Where pages come from: the system, in the ways that options and kernels allow.

#[allow(unsafe_code)]
pub(crate) mod page_provider;
#[allow(unsafe_code)]
pub(crate) mod provider;
pub(crate) mod mapping;
pub(crate) mod stretches;
#[allow(unsafe_code)]
pub(crate) mod thp;
