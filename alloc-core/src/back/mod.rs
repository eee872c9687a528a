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

pub(crate) mod system;
#[allow(unsafe_code)]
pub(crate) mod metadata;
pub(crate) mod map;
pub(crate) mod runs;
pub(crate) mod aging;
pub(crate) mod placement;
pub(crate) mod hooked;
#[allow(unsafe_code)]
pub(crate) mod purge_batch;
#[allow(unsafe_code)]
pub(crate) mod release;
#[allow(unsafe_code)]
pub(crate) mod page_allocator;
