//! The entry points of the allocator: the fast paths, the thread caches, and the life of threads.
//!
//! The modules are in data order: [`bins`] (the word of a thread, and the bins of the fast paths),
//! [`modes`] (what the rare modes do with a block), [`cache`] (thread caches, façades and threads),
//! [`supply`] (between bins and slabs), [`life`] (of the process, of threads, across a fork),
//! [`miss`] (what the fast paths call when they cannot serve a call), [`calls`] (malloc, free and
//! realloc).

pub(crate) mod bins;
pub(crate) mod modes;
pub(crate) mod cache;
pub(crate) mod supply;
pub(crate) mod life;
pub(crate) mod miss;
pub(crate) mod calls;

pub use calls::raw;
