//! lumalloc: a memory allocator that you can see into.
//!
//! Per-thread caches sit over sharded arenas that are created on demand.
//!
//! ```text
//!              malloc(size)                 free(ptr)            dealloc(ptr, layout)
//!                   │                           │                        │
//!   front    ┌──────▼───────────────────────────▼────────────────────────▼──────┐
//!            │ thread cache: a bin (stack of pointers) for each size class      │
//!            └──────┬─ empty ───────────────────┬─ full ────────────────────────┘
//!   middle   ┌──────▼────────────┐    ┌─────────▼────────────────┐
//!            │ slabs of the cache│    │ home: own slab: plain OR │   large blocks
//!            │ or of the bin     │◀───│ other slab: atomic OR    │        │
//!            └──────┬────────────┘    └──────────────────────────┘        │
//!   back     ┌──────▼──────────────────────────────────────────────────────▼────┐
//!            │ runs of pages: active → dirty → (muzzy) → retained, by decay      │
//!            └──────┬────────────────────────────────────────────────────────────┘
//!                 mmap, madvise
//! ```
//!
//! All metadata lies out of line, and nothing on the way of malloc or free touches the block.
//! Modules are in data order, and import only from tiers above their own line here:
#![doc = include_str!("docs/life_of_an_allocation.md")]
#![cfg_attr(not(any(test, loom)), no_std)]
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(test)]
extern crate std;

#[cfg(all(doc, not(loom)))]
pub(crate) mod docs;
pub(crate) mod ground;
#[cfg(not(loom))]
pub(crate) mod back;
pub(crate) mod middle;
#[cfg(not(loom))]
pub(crate) mod front;
#[cfg(not(loom))]
pub mod observe;
#[cfg(not(loom))]
pub mod control;

#[cfg(not(loom))]
pub use control::arena_handle::{Arena, ArenaName, InArena};
#[cfg(not(loom))]
pub use front::calls::global_alloc::Lumalloc;
#[cfg(not(loom))]
pub use front::raw;
#[cfg(not(loom))]
pub use ground::units::{MAX_SIZE, PAGE};

/// The options in force. Source: jemalloc(3), `opt.*`.
#[cfg(not(loom))]
pub mod options {
    use crate::ground::conf_record;
    use core::ffi::CStr;

    pub use crate::ground::cache_limits::CacheLimits;
    pub use crate::ground::conf_check::{Problem, check, names};
    pub use crate::ground::options::{
        DlopenDeepbind, Dss, Junk, Letters, MetadataThp, Options, PercpuArena, Thp, ZeroRealloc,
    };

    /// The options in force, read now if nobody has allocated yet.
    ///
    /// ```
    /// assert_eq!(lumalloc::options::current().dirty_decay_ms, 10_000);
    /// ```
    #[must_use]
    pub fn current() -> &'static Options {
        crate::front::life::thread_begin::real_cache();
        crate::ground::options::current()
    }

    /// Where option strings were found, in the order in which they were read (the last wins), with
    /// commas: `malloc_conf`, `/etc/malloc.conf`, `MALLOC_CONF`, `LUMALLOC_CONF`,
    /// `malloc_conf_2_conf_harder`. Empty when there are none.
    ///
    /// ```
    /// use lumalloc::options::{source_text, sources};
    /// for source in sources().to_str().unwrap().split(',').filter(|source| !source.is_empty()) {
    ///     assert!(source_text(source).is_some());
    /// }
    /// assert_eq!(source_text("nowhere"), None);
    /// ```
    #[must_use]
    pub fn sources() -> &'static CStr {
        crate::front::life::thread_begin::real_cache();
        conf_record::current().sources()
    }

    /// The option string of one of [`sources`]; `None` when it is not one of them. Of all texts
    /// together, 16 KiB are kept.
    #[must_use]
    pub fn source_text(source: &str) -> Option<&'static CStr> {
        crate::front::life::thread_begin::real_cache();
        conf_record::current().text_of(source)
    }

    /// What was ignored in option strings: each message with its pair and source, as it was
    /// printed, with `; ` between them; the first 4 KiB. Empty when everything counted.
    ///
    /// ```
    /// assert_eq!(lumalloc::options::ignored(), c"");
    /// ```
    #[must_use]
    pub fn ignored() -> &'static CStr {
        crate::front::life::thread_begin::real_cache();
        conf_record::current().ignored()
    }
}

/// Where the allocator's messages go. Source: jemalloc(3), `malloc_message`.
#[cfg(not(loom))]
pub mod message {
    pub use crate::ground::message::{Sink, set_sink, write};
}

/// Who prints the statistics at each `opt.stats_interval`.
#[cfg(not(loom))]
pub mod stats_interval {
    pub use crate::ground::stats_interval::{Printer, set_printer};
}

/// What tests of other crates may turn.
#[cfg(all(not(loom), feature = "testing"))]
pub mod testing {
    pub use crate::back::system::provider::failing::Refused;

    /// Makes every `period`-th system call for pages fail; 0: none.
    pub fn fail_system_calls(period: u64) {
        fail_system_calls_of(period, Refused::All);
    }

    /// Makes every `period`-th system call of one kind fail; 0: none.
    pub fn fail_system_calls_of(period: u64, kind: Refused) {
        crate::back::system::provider::failing::SYSTEM.fail_every(period, kind);
    }

    /// Pages of all arenas that are in no list and that nobody has: whoever took them forgot them.
    pub fn forgotten_pages() -> usize {
        let forgotten = |arena: &crate::middle::arenas::arena::Arena| {
            let counts = arena.pages.lock().allocator.counts();
            counts.mapped.abs_diff(counts.sum())
        };
        crate::middle::arenas::arena_list::all().map(forgotten).sum()
    }

    /// Takes the system for one that backs all memory by huge pages (its setting `always`), or none
    /// (`never`), whatever it says. To be called first of all.
    pub fn pretend_huge_pages(always: bool) {
        crate::back::system::thp::pretend(always);
    }
}

/// The version of the library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
