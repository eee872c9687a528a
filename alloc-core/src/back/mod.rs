//! Pages: where memory comes from, how runs of pages are cut, kept, merged and given back.
//!
//! ```text
//!   provider ─reserve─▶ retained ─▶ active ─free─▶ dirty ─decay─▶ muzzy ─decay─▶ retained
//!                                                    │                             ▲
//!                                                    └──── (muzzy_decay_ms 0) ─────┘
//! ```
//! Data order: [`page_provider`] (the system), [`metadata`] (our own records), [`mapping`] and
//! [`extent`] (a run of pages), [`table`] (long, written piece by piece), [`page_words`] and [`page_map`] (address →
//! record), [`class_map`] (address → bin), [`active_list`] (runs in use), [`in_hand`] (runs in no
//! list), [`spares`] (records of no run), [`extent_heap`] and [`extent_cache`] (free runs),
//! [`decay`] and [`debt`] (when to give back), [`split_merge`], [`purge_batch`] (on the way to the
//! system), [`page_counts`], [`memory`], [`page_allocator`] (all of it for one arena),
//! [`page_aging`], [`limit`], [`untouched`] (pages of slabs), [`page_settings`], [`hooks`] (the
//! program's), [`wants`], [`hooked_pages`], [`hook_calls`], [`release`] (of all of it), [`moves`]
//! (of a run's memory), [`huge`] (pages), [`dense`] (chunks in them), [`block_end`] (in one of
//! them), [`assembly`] (of unused runs) and their [`extension`], [`contents`] (of a run in use).

#[allow(unsafe_code)]
pub(crate) mod page_provider;
#[allow(unsafe_code)]
pub(crate) mod provider;
#[allow(unsafe_code)]
pub(crate) mod metadata;
pub(crate) mod mapping;
#[allow(unsafe_code)]
pub(crate) mod extent;
#[allow(unsafe_code)]
pub(crate) mod table;
#[allow(unsafe_code)]
pub(crate) mod page_words;
#[allow(unsafe_code)]
pub(crate) mod page_map;
#[allow(unsafe_code)]
pub(crate) mod class_map;
pub(crate) mod active_list;
pub(crate) mod in_hand;
#[allow(unsafe_code)]
pub(crate) mod spares;
pub(crate) mod extent_heap;
pub(crate) mod extent_cache;
pub(crate) mod decay;
pub(crate) mod debt;
pub(crate) mod split_merge;
#[allow(unsafe_code)]
pub(crate) mod purge_batch;
pub(crate) mod page_counts;
pub(crate) mod memory;
pub(crate) mod page_aging;
pub(crate) mod limit;
pub(crate) mod untouched;
pub(crate) mod page_settings;
#[allow(unsafe_code)]
pub(crate) mod page_allocator;
#[allow(unsafe_code)]
pub(crate) mod hooks;
pub(crate) mod wants;
pub(crate) mod hooked_pages;
#[allow(unsafe_code)]
pub(crate) mod hook_calls;
#[allow(unsafe_code)]
pub(crate) mod release;
#[allow(unsafe_code)]
pub(crate) mod huge;
#[allow(unsafe_code)]
pub(crate) mod dense;
pub(crate) mod block_end;
#[allow(unsafe_code)]
pub(crate) mod assembly;
#[allow(unsafe_code)]
pub(crate) mod extension;
#[allow(unsafe_code)]
pub(crate) mod moves;
#[allow(unsafe_code)]
pub(crate) mod contents;
