//! Implementations of [`super::page_provider::PageProvider`].

pub(crate) mod dss;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod failing;
#[cfg(test)]
pub(crate) mod fixed;
pub(crate) mod mmap;
pub(crate) mod system;
