//! Records of runs of pages, and the map from addresses to them.

#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod extent;
#[cfg(not(loom))]
pub(crate) mod active_list;
pub(crate) mod writable;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod table;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod page_words;
#[cfg_attr(loom, allow(unsafe_code))]
pub(crate) mod reach;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod class_map;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub(crate) mod page_map;
