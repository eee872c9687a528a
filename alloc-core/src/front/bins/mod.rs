//! What the fast paths touch: a thread's word, the cache that it points to, and the bins of this
//! cache.

#[allow(unsafe_code)]
pub(crate) mod cache_bin;
#[allow(unsafe_code)]
pub(crate) mod thread_cache;
#[allow(unsafe_code)]
pub(crate) mod tls;
