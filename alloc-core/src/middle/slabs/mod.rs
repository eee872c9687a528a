//! Slabs: their free blocks, remote frees and lists, and the queue of a bin.

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
pub(crate) mod slab_record;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod slab;
#[cfg(not(loom))]
pub(crate) mod slab_list;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod transfer_cache;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod wiped;
