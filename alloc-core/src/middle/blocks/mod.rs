//! The paths of blocks between caches and slabs.

#[allow(unsafe_code)]
pub(crate) mod slab_guard;
#[allow(unsafe_code)]
pub(crate) mod last_words;
#[allow(unsafe_code)]
pub(crate) mod shared_slabs;
pub(crate) mod passing_on;
pub(crate) mod tidy_bins;
pub(crate) mod shared_refill;
#[allow(unsafe_code)]
pub(crate) mod owned_slabs;
pub(crate) mod visit;
pub(crate) mod give_back;
#[allow(unsafe_code)]
pub(crate) mod parking;
pub(crate) mod uncached;
