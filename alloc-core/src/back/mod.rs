//! Pages: where memory comes from, how runs of pages are cut, kept, merged and given back.
//!
//! ```text
//!   provider ─reserve─▶ retained ─▶ active ─free─▶ dirty ─decay─▶ muzzy ─decay─▶ retained
//!                                                    │                             ▲
//!                                                    └──── (muzzy_decay_ms 0) ─────┘
//! ```
//! The order of the modules below is the order of the data: where pages come from, the records of
//! runs, the page map, the lists of free runs, huge pages, when memory goes back, and the allocator
//! of one arena's pages, which owns all of it.

#[allow(unsafe_code)]
pub(crate) mod page_provider;
#[allow(unsafe_code)]
pub(crate) mod provider;
pub(crate) mod mapping;
#[allow(unsafe_code)]
pub(crate) mod thp;
#[allow(unsafe_code)]
pub(crate) mod metadata;
#[allow(unsafe_code)]
pub(crate) mod extent;
pub(crate) mod active_list;
#[allow(unsafe_code)]
pub(crate) mod table;
#[allow(unsafe_code)]
pub(crate) mod page_words;
#[allow(unsafe_code)]
pub(crate) mod class_map;
#[allow(unsafe_code)]
pub(crate) mod page_map;
pub(crate) mod in_hand;
pub(crate) mod neighbours;
pub(crate) mod in_use;
#[allow(unsafe_code)]
pub(crate) mod spares;
pub(crate) mod extent_heap;
pub(crate) mod extent_cache;
#[allow(unsafe_code)]
pub(crate) mod chunk_notes;
#[allow(unsafe_code)]
pub(crate) mod huge;
#[allow(unsafe_code)]
pub(crate) mod contents;
pub(crate) mod growth;
#[allow(unsafe_code)]
pub(crate) mod source;
pub(crate) mod free_runs;
pub(crate) mod decay;
pub(crate) mod debt;
pub(crate) mod page_aging;
pub(crate) mod page_counts;
pub(crate) mod limit;
pub(crate) mod untouched;
pub(crate) mod huge_end;
pub(crate) mod memory;
#[allow(unsafe_code)]
pub(crate) mod moves;
pub(crate) mod block_end;
#[allow(unsafe_code)]
pub(crate) mod extension;
#[allow(unsafe_code)]
pub(crate) mod assembly;
pub(crate) mod dense;
pub(crate) mod fresh;
#[allow(unsafe_code)]
pub(crate) mod hooks;
#[allow(unsafe_code)]
pub(crate) mod hook_calls;
pub(crate) mod wants;
pub(crate) mod hooked_pages;
#[allow(unsafe_code)]
pub(crate) mod purge_batch;
#[allow(unsafe_code)]
pub(crate) mod release;
#[allow(unsafe_code)]
pub(crate) mod page_allocator;
