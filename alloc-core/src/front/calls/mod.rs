//! The calls of the program: malloc, free, realloc and related functions, with the fast paths.

#[allow(unsafe_code)]
pub(crate) mod malloc;
#[allow(unsafe_code)]
pub(crate) mod free;
#[allow(unsafe_code)]
pub(crate) mod query;
#[allow(unsafe_code)]
pub(crate) mod realloc;
#[allow(unsafe_code)]
pub(crate) mod zeroed;
#[allow(unsafe_code)]
pub(crate) mod growth;
#[allow(unsafe_code)]
pub(crate) mod flags;
pub mod raw;
#[allow(unsafe_code)]
pub(crate) mod global_alloc;
