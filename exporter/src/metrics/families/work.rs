//! Allocations, and the work that they caused in the allocator.
use crate::metrics::family::Source::{Each, Made, Sum};
use crate::metrics::family::{Def, counter, histogram};
use crate::metrics::group::Group::{Locks, Purging, Traffic, Work};
use crate::metrics::kinds::Unit;
use crate::metrics::made;

const REQUESTS: &[&str] =
    &["stats.arenas.4096.small.nrequests", "stats.arenas.4096.large.nrequests"];
const BY_CLASS: &[&str] = &[
    "arenas.nbins",
    "arenas.nlextents",
    "arenas.bin.0.size",
    "arenas.lextent.0.size",
    "stats.arenas.4096.bins.0.nrequests",
    "stats.arenas.4096.lextents.0.nrequests",
];

pub(super) static TRAFFIC: &[Def] = &[
    counter("lumalloc_allocations_total", Unit::None, Traffic, Sum(REQUESTS))
        .says("Blocks that the program asked for and got, but those of 0 bytes."),
    counter(
        "lumalloc_deallocations_total",
        Unit::None,
        Traffic,
        Made(
            &[],
            made::deallocations,
            &[
                "stats.arenas.4096.small.nrequests",
                "stats.arenas.4096.large.nrequests",
                "vm.stat.n_busy",
            ],
        ),
    )
    .says("Blocks that the program gave back; large ones that threads keep count when they leave."),
    histogram(
        "lumalloc_allocation_size_bytes",
        Unit::Bytes,
        Traffic,
        Made(&[], made::sizes, BY_CLASS),
    )
    .says("Allocations by the usable size of the block."),
    counter(
        "lumalloc_deallocation_bytes_total",
        Unit::Bytes,
        Traffic,
        Made(
            &[],
            made::deallocated_bytes,
            &[
                "arenas.bin.0.size",
                "arenas.lextent.0.size",
                "stats.arenas.4096.bins.0.nrequests",
                "stats.arenas.4096.lextents.0.nrequests",
                "stats.allocated",
            ],
        ),
    )
    .says("Usable bytes of the blocks that the program gave back."),
    counter("lumalloc_out_of_memory_total", Unit::None, Traffic, Sum(&["stats.out_of_memory"])),
    counter("lumalloc_soft_limit_reached_total", Unit::None, Traffic, Sum(&["limit.soft_reached"])),
    counter("lumalloc_hard_limit_reached_total", Unit::None, Traffic, Sum(&["limit.hard_reached"])),
    counter("lumalloc_zero_reallocs_total", Unit::None, Traffic, Sum(&["stats.zero_reallocs"])),
    counter("lumalloc_fork_abandoned_total", Unit::None, Traffic, Sum(&["stats.fork_abandoned"])),
    counter("lumalloc_guarded_samples_total", Unit::None, Traffic, Sum(&["stats.guarded.made"]))
        .says("Allocations that were put between guard pages."),
    counter("lumalloc_guarded_failures_total", Unit::None, Traffic, Sum(&["stats.guarded.failed"]))
        .says("Allocations that were due for guard pages and got none."),
    counter("lumalloc_remote_frees_total", Unit::None, Traffic, Sum(&["stats.remote.frees"])),
    counter(
        "lumalloc_thread_cache_requests_total",
        Unit::None,
        Traffic,
        Sum(&["stats.thread_caches.requests"]),
    ),
];

pub(super) static WORK: &[Def] = &[
    counter(
        "lumalloc_refills_total",
        Unit::None,
        Work,
        Each(
            "slabs",
            &[("owned", &["stats.work.refills_owned"]), ("shared", &["stats.work.refills_shared"])],
        ),
    )
    .says("Refills of thread caches, by whose slabs they came from."),
    counter("lumalloc_flushes_total", Unit::None, Work, Sum(&["stats.work.flushes"])),
    counter("lumalloc_slabs_made_total", Unit::None, Work, Sum(&["stats.work.slabs_fresh"])),
    counter("lumalloc_slabs_adopted_total", Unit::None, Work, Sum(&["stats.work.slabs_adopted"])),
    counter(
        "lumalloc_arena_entries_total",
        Unit::None,
        Work,
        Each("entry", &[("at_once", &["vm.stat.n_open"]), ("waited", &["vm.stat.n_lock"])]),
    )
    .says("Entries into arenas, by whether they waited."),
    counter("lumalloc_arena_probes_total", Unit::None, Work, Sum(&["vm.stat.n_probe"])),
    counter(
        "lumalloc_system_calls_total",
        Unit::None,
        Work,
        Each(
            "call",
            &[
                ("mmap", &["stats.work.call_mmap"]),
                ("munmap", &["stats.work.call_munmap"]),
                ("madvise", &["stats.work.call_madvise"]),
                ("mprotect", &["stats.work.call_mprotect"]),
                ("mremap", &["stats.work.call_mremap"]),
                ("futex_wait", &["stats.work.call_futex_wait"]),
                ("futex_wake", &["stats.work.call_futex_wake"]),
            ],
        ),
    )
    .says("System calls that the allocator made."),
];

pub(super) static LOCKS: &[Def] = &[
    counter(
        "lumalloc_lock_acquisitions_total",
        Unit::None,
        Locks,
        Each(
            "rank",
            &[
                ("background", &["stats.mutexes.background_thread.num_ops"]),
                ("decay_pass", &["stats.mutexes.max_per_bg_thd.num_ops"]),
                ("registry", &["stats.work.lock_registry"]),
                ("cache", &["stats.work.lock_cache"]),
                ("arenas", &["stats.mutexes.arenas.num_ops"]),
                ("bin", &["stats.work.lock_bin"]),
                ("pages", &["stats.work.lock_pages"]),
                ("metadata", &["stats.work.lock_metadata"]),
                ("namespace", &["stats.mutexes.ctl.num_ops"]),
            ],
        ),
    )
    .says("Times that locks were taken, by what they guard."),
    counter(
        "lumalloc_lock_contended_total",
        Unit::None,
        Locks,
        Each(
            "rank",
            &[
                (
                    "background",
                    &[
                        "stats.mutexes.background_thread.num_wait",
                        "stats.mutexes.background_thread.num_spin_acq",
                    ],
                ),
                (
                    "decay_pass",
                    &[
                        "stats.mutexes.max_per_bg_thd.num_wait",
                        "stats.mutexes.max_per_bg_thd.num_spin_acq",
                    ],
                ),
                ("registry", &["stats.work.wait_registry"]),
                ("cache", &["stats.work.wait_cache"]),
                ("arenas", &["stats.mutexes.arenas.num_wait", "stats.mutexes.arenas.num_spin_acq"]),
                ("bin", &["stats.work.wait_bin"]),
                ("pages", &["stats.work.wait_pages"]),
                ("metadata", &["stats.work.wait_metadata"]),
                ("namespace", &["stats.mutexes.ctl.num_wait", "stats.mutexes.ctl.num_spin_acq"]),
            ],
        ),
    )
    .says("Times that locks were found taken, by what they guard."),
    counter(
        "lumalloc_lock_wait_seconds_total",
        Unit::Seconds,
        Locks,
        Made(
            &["rank"],
            made::lock_waits,
            &[
                "stats.mutexes.background_thread.total_wait_time",
                "stats.mutexes.max_per_bg_thd.total_wait_time",
                "stats.mutexes.thread_caches.total_wait_time",
                "stats.arenas.4096.mutexes.tcache_list.total_wait_time",
                "stats.mutexes.arenas.total_wait_time",
                "stats.arenas.4096.bins.0.mutex.total_wait_time",
                "stats.arenas.4096.mutexes.extents_dirty.total_wait_time",
                "stats.arenas.4096.mutexes.base.total_wait_time",
                "stats.mutexes.ctl.total_wait_time",
            ],
        ),
    )
    .says("Time that threads slept for locks, by what they guard."),
];

pub(super) static PURGING: &[Def] = &[
    counter(
        "lumalloc_purges_total",
        Unit::None,
        Purging,
        Each(
            "pages",
            &[
                ("dirty", &["stats.arenas.4096.dirty_npurge"]),
                ("muzzy", &["stats.arenas.4096.muzzy_npurge"]),
            ],
        ),
    )
    .says("Batches of unused pages that were given back."),
    counter(
        "lumalloc_purge_calls_total",
        Unit::None,
        Purging,
        Each(
            "pages",
            &[
                ("dirty", &["stats.arenas.4096.dirty_nmadvise"]),
                ("muzzy", &["stats.arenas.4096.muzzy_nmadvise"]),
            ],
        ),
    )
    .says("System calls that gave unused pages back."),
    counter(
        "lumalloc_purged_bytes_total",
        Unit::Bytes,
        Purging,
        Each(
            "pages",
            &[
                ("dirty", &["stats.arenas.4096.dirty_purged"]),
                ("muzzy", &["stats.arenas.4096.muzzy_purged"]),
            ],
        ),
    )
    .says("Bytes of unused pages that were given back, muzzy ones a second time."),
    counter(
        "lumalloc_slab_pages_purged_total",
        Unit::None,
        Purging,
        Sum(&["stats.work.holes_given"]),
    ),
    counter(
        "lumalloc_caches_emptied_total",
        Unit::None,
        Purging,
        Sum(&["stats.work.caches_emptied"]),
    ),
];
