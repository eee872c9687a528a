//! lumalloc: a memory allocator whose state can be inspected.
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
//!            │ slabs of the cache│    │ own slab: plain OR       │   large blocks
//!            │ or of the bin     │◀───│ other slab: atomic OR    │        │
//!            └──────┬────────────┘    └──────────────────────────┘        │
//!   back     ┌──────▼──────────────────────────────────────────────────────▼────┐
//!            │ runs of pages: active → dirty → (muzzy) → retained, by decay      │
//!            └──────┬────────────────────────────────────────────────────────────┘
//!                 mmap, madvise
//! ```
//!
//! All metadata is stored outside the blocks, and neither malloc nor free touches the block itself.
//! A tier imports only from the tiers that are declared above it in `lib.rs`.
#![doc = include_str!("docs/life_of_an_allocation.md")]
#![cfg_attr(not(any(test, loom)), no_std)]
#![cfg_attr(loom, allow(dead_code, unused_imports))]

#[cfg(test)]
extern crate std;

#[cfg(all(test, not(loom)))]
#[path = "../../tests/src/not_tried.rs"]
mod not_tried;

#[cfg(all(doc, not(loom)))]
pub(crate) mod docs;
pub(crate) mod ground;
pub(crate) mod back;
#[cfg(not(loom))]
pub(crate) mod profile;
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
        DlopenDeepbind, Dss, Junk, Letters, MetadataThp, Options, PercpuArena, ProfFormat, Thp,
        ZeroRealloc,
    };

    /// Returns the options in force. They are read now if no thread has allocated yet.
    ///
    /// ```
    /// assert_eq!(lumalloc::options::current().dirty_decay_ms, 10_000);
    /// ```
    #[must_use]
    pub fn current() -> &'static Options {
        crate::front::life::thread_begin::real_cache();
        crate::ground::options::current()
    }

    /// Returns the sources of option strings, separated by commas, in the order in which they were
    /// read (the last wins): `malloc_conf`, `/etc/malloc.conf`, `MALLOC_CONF`, `LUMALLOC_CONF`,
    /// `malloc_conf_2_conf_harder`. Empty if there are none.
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

    /// Returns the option string of one of [`sources`], or `None` if `source` is not one of them.
    /// At most 16 KiB of all option strings together are kept.
    #[must_use]
    pub fn source_text(source: &str) -> Option<&'static CStr> {
        crate::front::life::thread_begin::real_cache();
        conf_record::current().text_of(source)
    }

    /// Returns the messages about ignored parts of option strings, separated by `; `. Each message
    /// names its pair and source, as it was printed. Only the first 4 KiB are kept. Empty if
    /// nothing was ignored.
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
    pub use crate::ground::warning::{warn, warned};
}

/// The lock of the C library's list of streams, for handlers of `pthread_atfork` that take locks
/// for which allocation waits.
#[cfg(not(loom))]
pub mod stream_list {
    pub use crate::ground::stream_list::{release, release_in_child, take};
}

/// The handlers of fork.
#[cfg(not(loom))]
pub mod fork {
    pub use crate::front::life::fork::register;
}

/// System calls on files that `malloc` and `free` may make too: none is a point of cancellation.
#[cfg(not(loom))]
pub mod system_calls {
    pub use crate::ground::raised_signals::{without_signals, write_all, write_stderr};
    pub use crate::ground::system_calls::{
        close, duplicate_high, fallocate, getrandom, identity, nanosleep, open,
        open_beside_streams, pread, pwrite, read, write,
    };
}

/// Files of `/proc` about this process, also once its first thread has ended.
#[cfg(not(loom))]
pub mod own_files {
    pub use crate::ground::own_files::{CLOCKS, MAPS, MEMORY, NAMESPACE, PROGRAM};
}

/// Sorting for code that must not panic.
#[cfg(not(loom))]
pub mod sorting {
    pub use crate::ground::heap_sort::heap_sort;
}

/// The functions that print the statistics at each `opt.stats_interval`, and write a heap profile
/// at each `opt.lg_prof_interval` or after so many samples.
#[cfg(not(loom))]
pub mod intervals {
    pub use crate::ground::intervals::{
        Action, profiles_maxima, set_maximum_profiler, set_printer, set_profiler,
        set_profiles_maxima, set_sample_action,
    };
}

/// Checks of all structures, for tests.
#[cfg(all(not(loom), feature = "checks"))]
pub mod checks {
    /// Ends the process if a structure of the allocator contradicts itself: lists and the counts of
    /// their members, the bits of slabs, and the runs of each state.
    pub fn all() {
        crate::middle::passes::check_pass::check_all();
    }
}

/// Switches for the tests of other crates.
#[cfg(all(not(loom), feature = "testing"))]
pub mod testing {
    pub use crate::back::system::provider::failing::Refused;

    /// Makes every `period`-th system call for pages fail. With 0 none fails.
    pub fn fail_system_calls(period: u64) {
        fail_system_calls_of(period, Refused::All);
    }

    /// Makes every `period`-th system call of one kind fail. With 0 none fails.
    pub fn fail_system_calls_of(period: u64, kind: Refused) {
        crate::back::system::provider::failing::SYSTEM.fail_every(period, kind);
    }

    /// Returns how many mapped pages of all arenas are neither in a list nor in use. Such pages
    /// were leaked by the allocator.
    pub fn forgotten_pages() -> usize {
        let forgotten = |arena: &crate::middle::arenas::arena::Arena| {
            let counts = arena.pages.lock().allocator.counts();
            counts.mapped.abs_diff(counts.sum())
        };
        crate::middle::arenas::arena_list::all().map(forgotten).sum()
    }

    /// Pretends that the system backs all memory by huge pages (`always`) or none (`never`),
    /// whatever its setting. Must be the first call of all.
    pub fn pretend_huge_pages(always: bool) {
        crate::back::system::thp::pretend(always);
    }
}

/// The version of the library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
