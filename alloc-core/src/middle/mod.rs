//! Arenas: slabs and their guards, remote frees, large blocks, and the choice of an arena.
//!
//! The order of the modules below is the order of the data: counts, the one lock-free protocol,
//! slabs, bins, arenas and the choice of one, what a thread cache owns, and then the paths of
//! blocks and pages between them.

#[cfg(not(loom))]
pub(crate) mod events;
#[cfg(not(loom))]
pub(crate) mod handed_out;
#[cfg(not(loom))]
pub(crate) mod arena_counts;
#[cfg(not(loom))]
mod learned_depth;
pub(crate) mod slabs;
pub(crate) mod arenas;
#[cfg(not(loom))]
pub(crate) mod owners;
#[cfg(not(loom))]
pub(crate) mod blocks;
#[cfg(not(loom))]
pub(crate) mod passes;
