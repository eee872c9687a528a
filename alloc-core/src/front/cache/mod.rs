//! Thread caches as the slow ways know them: what stands behind the word of a thread.

#[allow(unsafe_code)]
pub(crate) mod facade;
#[allow(unsafe_code)]
pub(crate) mod thread;
#[allow(unsafe_code)]
pub(crate) mod real_cache;
pub(crate) mod current;
#[allow(unsafe_code)]
pub(crate) mod registry;
pub(crate) mod switch;
pub(crate) mod callback_scope;
