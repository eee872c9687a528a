//! Unused runs of pages: they are taken, cut, merged and filed.

pub(crate) mod in_hand;
pub(crate) mod access;
pub(crate) mod neighbours;
pub(crate) mod in_use;
#[allow(unsafe_code)]
pub(crate) mod spares;
mod cut;
pub(crate) mod extent_heap;
pub(crate) mod extent_cache;
#[allow(unsafe_code)]
pub(crate) mod chunk_notes;
#[allow(unsafe_code)]
pub(crate) mod huge;
#[allow(unsafe_code)]
pub(crate) mod contents;
pub(crate) mod growth;
pub(crate) mod reserved;
#[allow(unsafe_code)]
pub(crate) mod source;
pub(crate) mod waiting;
pub(crate) mod free_runs;
#[allow(unsafe_code)]
pub(crate) mod low_runs;
