//! `stats.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};

/// `stats.active` (bytes): in pages that hold at least one such block.
pub const ACTIVE: Key<Read<usize>> = Key::new("stats.active");

/// `stats.allocated` (bytes): in blocks that the program holds.
pub const ALLOCATED: Key<Read<usize>> = Key::new("stats.allocated");

/// `stats.fork_abandoned` (count): blocks left behind in other threads' caches by forks.
pub const FORK_ABANDONED: Key<Read<u64>> = Key::new("stats.fork_abandoned");

/// `stats.holes` (bytes): of retained, free pages inside slabs in use.
pub const HOLES: Key<Read<usize>> = Key::new("stats.holes");

/// `stats.mapped` (bytes): in mapped extents.
pub const MAPPED: Key<Read<usize>> = Key::new("stats.mapped");

/// `stats.metadata` (bytes): of the allocator's own records.
pub const METADATA: Key<Read<usize>> = Key::new("stats.metadata");

/// `stats.metadata_edata` (bytes): of records of runs, among those.
pub const METADATA_EDATA: Key<Read<usize>> = Key::new("stats.metadata_edata");

/// `stats.metadata_rtree` (bytes): of the map of addresses, among those.
pub const METADATA_RTREE: Key<Read<usize>> = Key::new("stats.metadata_rtree");

/// `stats.metadata_thp` (count): huge pages asked for under records.
pub const METADATA_THP: Key<Read<usize>> = Key::new("stats.metadata_thp");

/// `stats.out_of_memory` (count): allocations that were answered NULL.
pub const OUT_OF_MEMORY: Key<Read<u64>> = Key::new("stats.out_of_memory");

/// `stats.resident` (bytes): in pages that are physically there, at most.
pub const RESIDENT: Key<Read<usize>> = Key::new("stats.resident");

/// `stats.retained` (bytes): of address space kept for later without physical pages.
pub const RETAINED: Key<Read<usize>> = Key::new("stats.retained");

/// `stats.zero_reallocs` (count): calls of realloc(p, 0) with a block until now, without a new
/// epoch.
pub const ZERO_REALLOCS: Key<Read<usize>> = Key::new("stats.zero_reallocs");

#[path = "stats_arenas.rs"]
pub mod arenas;

/// `stats.background_thread.*`
pub mod background_thread {
    use crate::key::{Key, Read};

    /// `stats.background_thread.num_runs` (count): passes that background threads made.
    pub const NUM_RUNS: Key<Read<u64>> = Key::new("stats.background_thread.num_runs");

    /// `stats.background_thread.num_threads` (count): background threads that run.
    pub const NUM_THREADS: Key<Read<usize>> = Key::new("stats.background_thread.num_threads");

    /// `stats.background_thread.run_interval` (ns): mean time between two of those passes.
    pub const RUN_INTERVAL: Key<Read<u64>> = Key::new("stats.background_thread.run_interval");
}

/// `stats.guarded.*`
pub mod guarded {
    use crate::key::{Key, Read};

    /// `stats.guarded.failed` (count): requests that were to get one and got an ordinary block.
    pub const FAILED: Key<Read<u64>> = Key::new("stats.guarded.failed");

    /// `stats.guarded.live` (count): guarded samples in use.
    pub const LIVE: Key<Read<u64>> = Key::new("stats.guarded.live");

    /// `stats.guarded.made` (count): guarded samples handed out.
    pub const MADE: Key<Read<u64>> = Key::new("stats.guarded.made");
}

#[path = "stats_mutexes.rs"]
pub mod mutexes;

/// `stats.remote.*`
pub mod remote {
    use crate::key::{Key, Read};

    /// `stats.remote.frees` (count): blocks freed into slabs of another cache or of a bin.
    pub const FREES: Key<Read<u64>> = Key::new("stats.remote.frees");

    /// `stats.remote.pending_bytes` (bytes): in such blocks that their slabs have yet to take in.
    pub const PENDING_BYTES: Key<Read<usize>> = Key::new("stats.remote.pending_bytes");
}

/// `stats.rss.*`
pub mod rss {
    use crate::key::{Key, Read};

    /// `stats.rss.allocated` (bytes): in blocks that the program has, rounded up to their classes.
    pub const ALLOCATED: Key<Read<usize>> = Key::new("stats.rss.allocated");

    /// `stats.rss.dirty` (bytes): in unused pages with memory.
    pub const DIRTY: Key<Read<usize>> = Key::new("stats.rss.dirty");

    /// `stats.rss.metadata` (bytes): of the allocator's records.
    pub const METADATA: Key<Read<usize>> = Key::new("stats.rss.metadata");

    /// `stats.rss.muzzy` (bytes): in unused pages, memory perhaps gone.
    pub const MUZZY: Key<Read<usize>> = Key::new("stats.rss.muzzy");

    /// `stats.rss.not_ours` (bytes): in physical memory for the rest of the process.
    pub const NOT_OURS: Key<Read<usize>> = Key::new("stats.rss.not_ours");

    /// `stats.rss.ours` (bytes): in physical memory for this allocator.
    pub const OURS: Key<Read<usize>> = Key::new("stats.rss.ours");

    /// `stats.rss.process` (bytes): in physical memory for the process.
    pub const PROCESS: Key<Read<usize>> = Key::new("stats.rss.process");

    /// `stats.rss.remote` (bytes): in blocks freed by other threads that their slabs have yet to
    /// take in.
    pub const REMOTE: Key<Read<usize>> = Key::new("stats.rss.remote");

    /// `stats.rss.slab_free` (bytes): in slabs, not in blocks in use.
    pub const SLAB_FREE: Key<Read<usize>> = Key::new("stats.rss.slab_free");

    /// `stats.rss.thread_caches` (bytes): in thread caches.
    pub const THREAD_CACHES: Key<Read<usize>> = Key::new("stats.rss.thread_caches");

    /// `stats.rss.untouched` (bytes): credit: pages among all these without memory.
    pub const UNTOUCHED: Key<Read<isize>> = Key::new("stats.rss.untouched");
}

/// `stats.thread_caches.*`
pub mod thread_caches {
    use crate::key::{Key, Read};

    /// `stats.thread_caches.bytes` (bytes): in thread caches.
    pub const BYTES: Key<Read<usize>> = Key::new("stats.thread_caches.bytes");

    /// `stats.thread_caches.count` (count): threads that have a cache.
    pub const COUNT: Key<Read<u32>> = Key::new("stats.thread_caches.count");

    /// `stats.thread_caches.kept_bytes` (bytes): in thread caches, of large blocks that threads
    /// keep.
    pub const KEPT_BYTES: Key<Read<usize>> = Key::new("stats.thread_caches.kept_bytes");

    /// `stats.thread_caches.requests` (count): requests that thread caches served.
    pub const REQUESTS: Key<Read<u64>> = Key::new("stats.thread_caches.requests");
}

/// `stats.work.*`
pub mod work {
    use crate::key::{Key, Read};

    /// `stats.work.caches_emptied` (count): caches of threads that did nothing, whose blocks were
    /// taken back.
    pub const CACHES_EMPTIED: Key<Read<u64>> = Key::new("stats.work.caches_emptied");

    /// `stats.work.call_futex_wait` (count): system calls futex to wait.
    pub const CALL_FUTEX_WAIT: Key<Read<u64>> = Key::new("stats.work.call_futex_wait");

    /// `stats.work.call_futex_wake` (count): system calls futex to wake.
    pub const CALL_FUTEX_WAKE: Key<Read<u64>> = Key::new("stats.work.call_futex_wake");

    /// `stats.work.call_madvise` (count): system calls madvise.
    pub const CALL_MADVISE: Key<Read<u64>> = Key::new("stats.work.call_madvise");

    /// `stats.work.call_mmap` (count): system calls mmap.
    pub const CALL_MMAP: Key<Read<u64>> = Key::new("stats.work.call_mmap");

    /// `stats.work.call_mprotect` (count): system calls mprotect.
    pub const CALL_MPROTECT: Key<Read<u64>> = Key::new("stats.work.call_mprotect");

    /// `stats.work.call_mremap` (count): system calls mremap.
    pub const CALL_MREMAP: Key<Read<u64>> = Key::new("stats.work.call_mremap");

    /// `stats.work.call_munmap` (count): system calls munmap.
    pub const CALL_MUNMAP: Key<Read<u64>> = Key::new("stats.work.call_munmap");

    /// `stats.work.cas_retries` (count): compare-exchanges of remote frees repeated because of
    /// others.
    pub const CAS_RETRIES: Key<Read<u64>> = Key::new("stats.work.cas_retries");

    /// `stats.work.flush_groups` (count): groups in those batches: of one slab, or of one word of
    /// somebody else's.
    pub const FLUSH_GROUPS: Key<Read<u64>> = Key::new("stats.work.flush_groups");

    /// `stats.work.flushes` (count): batches of blocks that caches returned to slabs.
    pub const FLUSHES: Key<Read<u64>> = Key::new("stats.work.flushes");

    /// `stats.work.holes_given` (count): free pages inside slabs in use that were given back.
    pub const HOLES_GIVEN: Key<Read<u64>> = Key::new("stats.work.holes_given");

    /// `stats.work.lock_bin` (count): locks of arenas' bins taken.
    pub const LOCK_BIN: Key<Read<u64>> = Key::new("stats.work.lock_bin");

    /// `stats.work.lock_cache` (count): locks of thread caches taken.
    pub const LOCK_CACHE: Key<Read<u64>> = Key::new("stats.work.lock_cache");

    /// `stats.work.lock_metadata` (count): locks of the allocator's own records taken.
    pub const LOCK_METADATA: Key<Read<u64>> = Key::new("stats.work.lock_metadata");

    /// `stats.work.lock_pages` (count): locks of arenas' pages taken.
    pub const LOCK_PAGES: Key<Read<u64>> = Key::new("stats.work.lock_pages");

    /// `stats.work.lock_registry` (count): locks of the list of caches taken.
    pub const LOCK_REGISTRY: Key<Read<u64>> = Key::new("stats.work.lock_registry");

    /// `stats.work.refills_owned` (count): refills from slabs that the cache owned.
    pub const REFILLS_OWNED: Key<Read<u64>> = Key::new("stats.work.refills_owned");

    /// `stats.work.refills_shared` (count): refills from slabs that the threads of an arena share.
    pub const REFILLS_SHARED: Key<Read<u64>> = Key::new("stats.work.refills_shared");

    /// `stats.work.remote_drains` (count): slabs whose remote frees were taken in.
    pub const REMOTE_DRAINS: Key<Read<u64>> = Key::new("stats.work.remote_drains");

    /// `stats.work.remote_pushes` (count): slabs pushed on the stack of their guard.
    pub const REMOTE_PUSHES: Key<Read<u64>> = Key::new("stats.work.remote_pushes");

    /// `stats.work.remote_words` (count): atomic ORs into slabs that somebody else guards.
    pub const REMOTE_WORDS: Key<Read<u64>> = Key::new("stats.work.remote_words");

    /// `stats.work.runs_given` (count): runs of pages that came back.
    pub const RUNS_GIVEN: Key<Read<u64>> = Key::new("stats.work.runs_given");

    /// `stats.work.runs_kept` (count): large blocks that the thread freeing them kept.
    pub const RUNS_KEPT: Key<Read<u64>> = Key::new("stats.work.runs_kept");

    /// `stats.work.runs_reused` (count): large blocks served from those.
    pub const RUNS_REUSED: Key<Read<u64>> = Key::new("stats.work.runs_reused");

    /// `stats.work.runs_taken` (count): runs of pages that left an arena for a slab or a large
    /// block.
    pub const RUNS_TAKEN: Key<Read<u64>> = Key::new("stats.work.runs_taken");

    /// `stats.work.slabs_adopted` (count): slabs that caches took over from an arena.
    pub const SLABS_ADOPTED: Key<Read<u64>> = Key::new("stats.work.slabs_adopted");

    /// `stats.work.slabs_fresh` (count): slabs made of pages.
    pub const SLABS_FRESH: Key<Read<u64>> = Key::new("stats.work.slabs_fresh");

    /// `stats.work.wait_bin` (count): locks of arenas' bins found taken.
    pub const WAIT_BIN: Key<Read<u64>> = Key::new("stats.work.wait_bin");

    /// `stats.work.wait_cache` (count): locks of thread caches found taken.
    pub const WAIT_CACHE: Key<Read<u64>> = Key::new("stats.work.wait_cache");

    /// `stats.work.wait_metadata` (count): locks of the allocator's own records found taken.
    pub const WAIT_METADATA: Key<Read<u64>> = Key::new("stats.work.wait_metadata");

    /// `stats.work.wait_pages` (count): locks of arenas' pages found taken.
    pub const WAIT_PAGES: Key<Read<u64>> = Key::new("stats.work.wait_pages");

    /// `stats.work.wait_registry` (count): locks of the list of caches found taken.
    pub const WAIT_REGISTRY: Key<Read<u64>> = Key::new("stats.work.wait_registry");
}
