//! Pages: where memory comes from, how runs of pages are cut, kept, merged and given back.
//!
//! ```text
//!   provider ─reserve─▶ retained ─▶ active ─free─▶ dirty ─decay─▶ muzzy ─decay─▶ retained
//!                                                    │                             ▲
//!                                                    └──── (muzzy_decay_ms 0) ─────┘
//! ```
//! The modules below are in the order of the data: where pages come from, the records of runs, the
//! page map, the lists of free runs, huge pages, when memory goes back, and the allocator of one
//! arena's pages, which owns all of it.

#[cfg(not(loom))]
pub(crate) mod system;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod metadata;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod record_table;
pub(crate) mod map;
#[cfg(not(loom))]
pub(crate) mod runs;
#[cfg(not(loom))]
pub(crate) mod aging;
#[cfg(not(loom))]
pub(crate) mod placement;
#[cfg(not(loom))]
pub(crate) mod hooked;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod purge_batch;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod release;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod page_allocator;
