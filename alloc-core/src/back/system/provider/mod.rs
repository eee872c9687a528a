//! Implementations of [`super::page_provider::PageProvider`].

mod tried;
pub(crate) mod dss;
#[cfg(test)]
pub(crate) mod fixed;
pub(crate) mod mmap;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod failing;
pub(crate) mod system;
pub(crate) mod low_pages;
