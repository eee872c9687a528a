//! Thread caches as the slow paths see them: façades, real caches and thread records.

#[allow(unsafe_code)]
pub(crate) mod facade;
pub(crate) mod volume;
pub(crate) mod cold_bin;
pub(crate) mod caches_of_thread;
pub(crate) mod drawn_at;
#[allow(unsafe_code)]
mod word_of_thread;
#[allow(unsafe_code)]
pub(crate) mod thread;
#[allow(unsafe_code)]
pub(crate) mod emptied;
#[allow(unsafe_code)]
pub(crate) mod real_cache;
pub(crate) mod current;
#[allow(unsafe_code)]
pub(crate) mod registry;
pub(crate) mod switch;
#[allow(unsafe_code)]
pub(crate) mod emptying;
pub(crate) mod rousing;
pub(crate) mod callback_scope;
