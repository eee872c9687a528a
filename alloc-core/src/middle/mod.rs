//! Arenas: slabs and who guards them, remote frees, large blocks, and the choice of an arena.
//!
//! Data order: [`effort`] (counts), [`remote_free`] (the one lock-free protocol), [`slab`] (an
//! extent cut into blocks), [`fresh_pages`] (of a slab), [`slab_lines`], [`slab_list`], [`holes`]
//! (a slab's free pages), [`transfer_cache`] (blocks that threads pass on), [`bin`] (one class of
//! one arena), [`slab_guard`] (where remote frees go), [`arena_counts`], [`arena_name`],
//! [`arena`], [`uncached`], [`reserve`], [`arena_list`] (all of them), [`arena_settings`],
//! [`arena_hooks`], [`arena_end`] (reset and destroy), [`choose_arena`], [`ledger`] (who was given
//! what), [`owner`] (what a thread cache owns), [`idle_owner`], [`visit`] (its lock in another's
//! hands), [`misuse`] (last words), [`give_back`] (blocks on their way home), [`depot`] (blocks
//! that a thread keeps beyond its bins), [`large`], [`run_cache`] (large blocks that a thread
//! keeps), [`decay_pass`].

#[cfg(not(loom))]
pub(crate) mod effort;
#[allow(unsafe_code)]
pub(crate) mod remote_free;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod slab;
#[cfg(not(loom))]
pub(crate) mod fresh_pages;
#[cfg(not(loom))]
pub(crate) mod slab_lines;
#[cfg(not(loom))]
pub(crate) mod slab_list;
#[cfg(not(loom))]
pub(crate) mod holes;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod transfer_cache;
#[cfg(not(loom))]
pub(crate) mod bin;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod slab_guard;
#[cfg(not(loom))]
pub(crate) mod arena_counts;
#[cfg(not(loom))]
pub(crate) mod arena_name;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena;
#[cfg(not(loom))]
pub(crate) mod uncached;
#[cfg(not(loom))]
pub(crate) mod reserve;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena_list;
#[cfg(not(loom))]
pub(crate) mod arena_settings;
#[cfg(not(loom))]
pub(crate) mod arena_hooks;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena_end;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod choose_arena;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod owner;
#[cfg(not(loom))]
pub(crate) mod idle_owner;
#[cfg(not(loom))]
pub(crate) mod misuse;
#[cfg(not(loom))]
pub(crate) mod visit;
#[cfg(not(loom))]
pub(crate) mod give_back;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod depot;
#[cfg(not(loom))]
pub(crate) mod purge_gate;
#[cfg(not(loom))]
pub(crate) mod large;
#[cfg(not(loom))]
pub(crate) mod run_cache;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod ledger;
#[cfg(not(loom))]
pub(crate) mod decay_pass;
