//! What a caller touches: the fast paths, the thread cache, and a thread's life.
//!
//! Data order: [`tls`] (the one word), [`cache_bin`] (a stack of pointers), [`thread_cache`] (bins
//! in a row, real or façade), [`registry`] (all caches), [`thread`] (whose they are), [`switch`]
//! and [`scope`] (which of them a thread's word names), [`thread_limits`] (what they may hold),
//! [`explicit`] (caches of no thread), [`fill`], [`hardened`], [`guarded`] (rare modes), [`facade`]
//! and [`modes`] (where they are applied), [`refill`] (between bins and slabs), [`thread_life`],
//! [`process_life`], [`fork`], [`background`] (who purges), [`limit_callback`], [`retry`] (before
//! it fails), [`slow`] and [`missed`] (what the fast paths call when they cannot), [`raw`] (malloc,
//! free, realloc), [`zeroed`] (blocks that read zero), [`growth`] (room for what grows), [`flags`]
//! (the `*allocx` family), [`global_alloc`].

#[allow(unsafe_code)]
pub(crate) mod tls;
#[allow(unsafe_code)]
pub(crate) mod cache_bin;
#[allow(unsafe_code)]
pub(crate) mod thread_cache;
#[allow(unsafe_code)]
pub(crate) mod registry;
#[allow(unsafe_code)]
pub(crate) mod thread;
pub(crate) mod switch;
pub(crate) mod scope;
pub(crate) mod thread_limits;
#[allow(unsafe_code)]
pub(crate) mod explicit;
#[allow(unsafe_code)]
pub(crate) mod fill;
#[allow(unsafe_code)]
pub(crate) mod hardened;
#[allow(unsafe_code)]
pub(crate) mod guarded;
#[allow(unsafe_code)]
pub(crate) mod facade;
#[allow(unsafe_code)]
pub(crate) mod modes;
#[allow(unsafe_code)]
pub(crate) mod refill;
#[allow(unsafe_code)]
pub(crate) mod thread_life;
#[allow(unsafe_code)]
pub(crate) mod process_life;
#[allow(unsafe_code)]
pub(crate) mod fork;
pub(crate) mod background;
#[allow(unsafe_code)]
pub(crate) mod limit_callback;
pub(crate) mod retry;
#[allow(unsafe_code)]
pub(crate) mod slow;
#[allow(unsafe_code)]
pub(crate) mod missed;
#[allow(unsafe_code)]
pub mod raw;
#[allow(unsafe_code)]
pub(crate) mod zeroed;
#[allow(unsafe_code)]
pub(crate) mod growth;
#[allow(unsafe_code)]
pub(crate) mod flags;
#[allow(unsafe_code)]
pub(crate) mod global_alloc;
