//! Arenas: slabs and who guards them, remote frees, large blocks, and the choice of an arena.
//!
//! The order of the modules below is the order of the data: counts, the one lock-free protocol,
//! slabs, bins, arenas and the choice of one, what a thread cache owns, and then the ways of blocks
//! and pages between them.

#[cfg(not(loom))]
pub(crate) mod effort;
#[cfg(not(loom))]
pub(crate) mod arena_counts;
#[cfg(not(loom))]
pub(crate) mod arena_name;
#[cfg(not(loom))]
pub(crate) mod purge_gate;
#[allow(unsafe_code)]
pub(crate) mod remote_free;
#[cfg(not(loom))]
pub(crate) mod misuse;
#[cfg(not(loom))]
pub(crate) mod holes;
#[cfg(not(loom))]
pub(crate) mod fresh_pages;
#[cfg(not(loom))]
pub(crate) mod slab_lines;
#[cfg(not(loom))]
pub(crate) mod slab_links;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod slab;
#[cfg(not(loom))]
pub(crate) mod slab_list;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod transfer_cache;
#[cfg(not(loom))]
pub(crate) mod bin;
#[cfg(not(loom))]
pub(crate) mod arena_life;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena_list;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod home;
#[cfg(not(loom))]
pub(crate) mod arena_settings;
#[cfg(not(loom))]
pub(crate) mod choose_arena;
#[cfg(not(loom))]
pub(crate) mod large;
#[cfg(not(loom))]
pub(crate) mod run_cache;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod ledger;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod depot;
#[cfg(not(loom))]
pub(crate) mod neighbour;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod owner;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod slab_guard;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod last_words;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod shared_slabs;
#[cfg(not(loom))]
pub(crate) mod passing_on;
#[cfg(not(loom))]
pub(crate) mod tidy_bins;
#[cfg(not(loom))]
pub(crate) mod shared_refill;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod owned_slabs;
#[cfg(not(loom))]
pub(crate) mod visit;
#[cfg(not(loom))]
pub(crate) mod give_back;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod parking;
#[cfg(not(loom))]
pub(crate) mod idle_owner;
#[cfg(not(loom))]
pub(crate) mod uncached;
#[cfg(not(loom))]
pub(crate) mod reserve;
#[cfg(not(loom))]
pub(crate) mod arena_hooks;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod arena_end;
#[cfg(not(loom))]
pub(crate) mod hole_pass;
#[cfg(not(loom))]
pub(crate) mod decay_pass;
