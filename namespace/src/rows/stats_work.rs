//! `stats.work.*`: how often the slow paths did each kind of work, from the published snapshot.
use crate::row::Spec;
use crate::row_macros::ro;
use crate::snapshot;

/// A row of one counter.
macro_rules! work {
    ($field:ident, $help:literal) => {
        ro!(
            concat!("stats.work.", stringify!($field)),
            U64,
            Count,
            |_| snapshot::current().totals.work.$field,
            $help
        )
    };
}

/// The rows of `stats.work.*`.
pub static ROWS: &[Spec] = &[
    work!(refills_owned, "refills from slabs that the cache owned"),
    work!(refills_shared, "refills from slabs that the threads of an arena share"),
    work!(slabs_adopted, "slabs that caches took over from an arena"),
    work!(slabs_fresh, "slabs made of pages"),
    work!(flushes, "batches of blocks that caches returned to slabs"),
    work!(flush_groups, "groups in those batches: of one slab, or of one word of somebody else's"),
    work!(remote_words, "atomic ORs into slabs that somebody else guards"),
    work!(remote_pushes, "slabs pushed on the stack of their guard"),
    work!(remote_drains, "slabs whose remote frees were taken in"),
    work!(cas_retries, "compare-exchanges of remote frees repeated because of others"),
    work!(runs_kept, "large blocks that the thread freeing them kept"),
    work!(runs_reused, "large blocks served from those"),
    work!(holes_given, "free pages inside slabs in use that were given back"),
    work!(caches_emptied, "caches of threads that did nothing, whose blocks were taken back"),
    work!(runs_taken, "runs of pages that left an arena for a slab or a large block"),
    work!(runs_given, "runs of pages that came back"),
    work!(lock_cache, "locks of thread caches taken"),
    work!(wait_cache, "locks of thread caches found taken"),
    work!(lock_bin, "locks of arenas' bins taken"),
    work!(wait_bin, "locks of arenas' bins found taken"),
    work!(lock_pages, "locks of arenas' pages taken"),
    work!(wait_pages, "locks of arenas' pages found taken"),
    work!(lock_registry, "locks of the list of caches taken"),
    work!(wait_registry, "locks of the list of caches found taken"),
    work!(lock_metadata, "locks of the allocator's own records taken"),
    work!(wait_metadata, "locks of the allocator's own records found taken"),
    work!(call_mmap, "system calls mmap"),
    work!(call_munmap, "system calls munmap"),
    work!(call_madvise, "system calls madvise"),
    work!(call_mprotect, "system calls mprotect"),
    work!(call_mremap, "system calls mremap"),
    work!(call_futex_wait, "system calls futex to wait"),
    work!(call_futex_wake, "system calls futex to wake"),
];
