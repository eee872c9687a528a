//! Records of runs of pages, and the map from addresses to them.

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
