//! Aging of unused pages until they are given back, and counts and bounds of pages.

pub(crate) mod decay;
pub(crate) mod growth_purge;
pub(crate) mod held;
pub(crate) mod page_aging;
pub(crate) mod page_counts;
pub(crate) mod refusals;
pub(crate) mod soft_limit;
pub(crate) mod limit;
