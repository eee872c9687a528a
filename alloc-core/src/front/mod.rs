//! What a caller touches: the fast paths, the thread cache, and a thread's life.
//!
//! Data order: [`bins`] (the word of a thread, and the bins that the fast paths touch), [`modes`]
//! (what rare modes ask of a block), [`cache`] (thread caches and façades, and whose they are),
//! [`supply`] (between bins and slabs), [`life`] (of the process, of threads, across a fork),
//! [`miss`] (what the fast paths call when they cannot), [`calls`] (malloc, free and realloc).

pub(crate) mod bins;
pub(crate) mod modes;
pub(crate) mod cache;
pub(crate) mod supply;
pub(crate) mod life;
pub(crate) mod miss;
pub(crate) mod calls;

pub use calls::raw;
