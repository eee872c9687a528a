//! What the fast paths touch: a thread's word, the cache that it names, and the bins in it.

#[allow(unsafe_code)]
pub(crate) mod cache_bin;
#[allow(unsafe_code)]
pub(crate) mod thread_cache;
#[allow(unsafe_code)]
pub(crate) mod tls;
