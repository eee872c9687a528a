//! The paths of blocks between caches and slabs.

#[allow(unsafe_code)]
pub(crate) mod slab_guard;
pub(crate) mod slab_hold;
#[allow(unsafe_code)]
pub(crate) mod empty_blocks;
#[allow(unsafe_code)]
pub(crate) mod misuse_report;
pub(crate) mod block_arena;
#[allow(unsafe_code)]
pub(crate) mod shared_slabs;
pub(crate) mod transfer_moves;
pub(crate) mod tidy_bins;
pub(crate) mod shared_refill;
#[allow(unsafe_code)]
pub(crate) mod owned_drain;
pub(crate) mod before_growth;
pub(crate) mod owned_slabs;
pub(crate) mod give_back;
#[allow(unsafe_code)]
pub(crate) mod overflow_moves;
pub(crate) mod uncached;
