//! Where the memory is, as the allocator and the system count it.
use crate::metrics::family::Source::{Own, Sum};
use crate::metrics::family::{Def, counter, gauge};
use crate::metrics::group::Group::{Memory, Process};
use crate::metrics::kinds::Unit;

/// Returns a gauge of bytes.
const fn bytes(name: &'static str, keys: &'static [&'static str]) -> Def {
    gauge(name, Unit::Bytes, Memory, Sum(keys))
}

/// Returns a gauge of things.
const fn count(name: &'static str, keys: &'static [&'static str]) -> Def {
    gauge(name, Unit::None, Memory, Sum(keys))
}

/// The families of memory. The first seven add up to the resident bytes: allocated, slab free,
/// remote pending, thread caches, dirty, muzzy, metadata.
pub(super) static MEMORY: &[Def] = &[
    bytes("lumalloc_allocated_bytes", &["stats.allocated"]),
    bytes("lumalloc_slab_free_bytes", &["stats.rss.slab_free"])
        .says("Bytes in slabs, not in blocks in use."),
    bytes("lumalloc_remote_pending_bytes", &["stats.rss.remote"]),
    bytes("lumalloc_thread_cache_bytes", &["stats.thread_caches.bytes"]),
    bytes("lumalloc_dirty_bytes", &["stats.rss.dirty"]),
    bytes("lumalloc_muzzy_bytes", &["stats.rss.muzzy"]),
    bytes("lumalloc_metadata_bytes", &["stats.metadata"]),
    bytes("lumalloc_resident_bytes", &["stats.resident"]),
    bytes("lumalloc_active_bytes", &["stats.active"])
        .says("Bytes in pages that hold at least one block, in use or cached."),
    bytes("lumalloc_mapped_bytes", &["stats.mapped"]),
    bytes("lumalloc_retained_bytes", &["stats.retained"]),
    bytes("lumalloc_abandoned_bytes", &["stats.arenas.4096.abandoned_vm"]),
    bytes("lumalloc_metadata_extent_bytes", &["stats.metadata_edata"])
        .says("Bytes of records of runs of pages, among the metadata."),
    bytes("lumalloc_metadata_map_bytes", &["stats.metadata_rtree"])
        .says("Bytes of the map of addresses, among the metadata."),
    count("lumalloc_metadata_huge_pages", &["stats.metadata_thp"]),
    bytes("lumalloc_thread_cache_kept_bytes", &["stats.thread_caches.kept_bytes"])
        .says("Bytes in large blocks that threads keep, among those in thread caches."),
    bytes("lumalloc_thread_cache_stashed_bytes", &["stats.arenas.4096.tcache_stashed_bytes"])
        .says("Bytes in quarantine, among those in thread caches."),
    count("lumalloc_blocks", &["vm.stat.n_busy"]),
    count("lumalloc_guarded_blocks", &["stats.guarded.live"])
        .says("Blocks between guard pages that are there now."),
    count("lumalloc_arenas", &["vm.stat.n_region"]),
    count("lumalloc_threads", &["stats.thread_caches.count"]),
    count("lumalloc_spare_extents", &["stats.arenas.4096.extent_avail"]),
    count("lumalloc_background_threads", &["stats.background_thread.num_threads"]),
    counter(
        "lumalloc_background_runs_total",
        Unit::None,
        Memory,
        Sum(&["stats.background_thread.num_runs"]),
    ),
    gauge(
        "lumalloc_background_run_interval_seconds",
        Unit::Seconds,
        Memory,
        Sum(&["stats.background_thread.run_interval"]),
    )
    .says("Mean time between two passes of background threads."),
];

pub(super) static PROCESS: &[Def] = &[
    gauge("lumalloc_process_resident_bytes", Unit::Bytes, Process, Own(&[]))
        .says("Bytes of the process in physical memory, as the system says."),
    gauge("lumalloc_heap_resident_bytes", Unit::Bytes, Process, Sum(&["stats.rss.ours"]))
        .says("Bytes in physical memory for this allocator: the system is asked page by page."),
    gauge("lumalloc_process_foreign_bytes", Unit::Bytes, Process, Sum(&["stats.rss.not_ours"]))
        .says("Bytes of the process in physical memory that are not this allocator's."),
    gauge("lumalloc_residence_age_seconds", Unit::Seconds, Process, Own(&[])).says(
        "How long ago the system was asked for the two before: that takes at most a thousandth \
         of the time.",
    ),
];
