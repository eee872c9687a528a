//! Classes, locks and slow paths in detail, over all arenas, including destroyed ones.
use crate::metrics::family::Source::{Class, Each, Sum};
use crate::metrics::family::{Def, counter, gauge};
use crate::metrics::group::Group;
use crate::metrics::kinds::Classes;
use crate::metrics::kinds::Unit;

/// Returns a gauge by small class.
const fn bin(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    gauge(name, unit, Group::Bins, Class(Classes::Bins, keys))
}

/// Returns a counter by small class.
const fn bin_counts(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    counter(name, unit, Group::Bins, Class(Classes::Bins, keys))
}

/// Returns a gauge by class of runs.
const fn runs(name: &'static str, unit: Unit, keys: &'static [&'static str]) -> Def {
    gauge(name, unit, Group::Extents, Class(Classes::Extents, keys))
}

/// Returns a counter of the slow paths.
const fn work(name: &'static str, keys: &'static [&'static str]) -> Def {
    counter(name, Unit::None, Group::Engine, Sum(keys))
}

pub(super) static BINS: &[Def] = &[
    bin("lumalloc_bin_slab_bytes", Unit::Bytes, &["arenas.bin.<i>.slab_size"])
        .says("Bytes of a slab of the class."),
    bin("lumalloc_bin_slab_blocks", Unit::None, &["arenas.bin.<i>.nregs"])
        .says("Blocks in a slab of the class."),
    bin("lumalloc_bin_blocks", Unit::None, &["stats.arenas.4096.bins.<j>.curregs"]),
    bin("lumalloc_bin_cached_blocks", Unit::None, &["stats.arenas.4096.bins.<j>.cached"])
        .says("Blocks in thread caches, among those out of slabs."),
    bin("lumalloc_bin_slabs", Unit::None, &["stats.arenas.4096.bins.<j>.curslabs"]),
    bin("lumalloc_bin_nonfull_slabs", Unit::None, &["stats.arenas.4096.bins.<j>.nonfull_slabs"]),
    bin_counts(
        "lumalloc_bin_allocations_total",
        Unit::None,
        &["stats.arenas.4096.bins.<j>.nrequests"],
    ),
    bin_counts("lumalloc_bin_taken_total", Unit::None, &["stats.arenas.4096.bins.<j>.nmalloc"]),
    bin_counts("lumalloc_bin_returned_total", Unit::None, &["stats.arenas.4096.bins.<j>.ndalloc"]),
    bin_counts("lumalloc_bin_refills_total", Unit::None, &["stats.arenas.4096.bins.<j>.nfills"]),
    bin_counts("lumalloc_bin_flushes_total", Unit::None, &["stats.arenas.4096.bins.<j>.nflushes"]),
    bin_counts("lumalloc_bin_slabs_made_total", Unit::None, &["stats.arenas.4096.bins.<j>.nslabs"]),
    bin_counts(
        "lumalloc_bin_slabs_adopted_total",
        Unit::None,
        &["stats.arenas.4096.bins.<j>.nreslabs"],
    ),
    bin_counts(
        "lumalloc_bin_lock_acquisitions_total",
        Unit::None,
        &["stats.arenas.4096.bins.<j>.mutex.num_ops"],
    ),
    bin_counts(
        "lumalloc_bin_lock_contended_total",
        Unit::None,
        &[
            "stats.arenas.4096.bins.<j>.mutex.num_wait",
            "stats.arenas.4096.bins.<j>.mutex.num_spin_acq",
        ],
    )
    .says("Times that the bin was found taken."),
    bin_counts(
        "lumalloc_bin_lock_wait_seconds_total",
        Unit::Seconds,
        &["stats.arenas.4096.bins.<j>.mutex.total_wait_time"],
    ),
];

pub(super) static LEXTENTS: &[Def] = &[
    gauge(
        "lumalloc_large_blocks",
        Unit::None,
        Group::Lextents,
        Class(Classes::Lextents, &["stats.arenas.4096.lextents.<j>.curlextents"]),
    )
    .says("Large blocks of the class that are out, those that threads keep among them."),
    counter(
        "lumalloc_large_allocations_total",
        Unit::None,
        Group::Lextents,
        Class(Classes::Lextents, &["stats.arenas.4096.lextents.<j>.nrequests"]),
    )
    .says("Large blocks of the class that the program asked for and got."),
    counter(
        "lumalloc_large_taken_total",
        Unit::None,
        Group::Lextents,
        Class(Classes::Lextents, &["stats.arenas.4096.lextents.<j>.nmalloc"]),
    )
    .says("Large blocks of the class that left an arena."),
    counter(
        "lumalloc_large_returned_total",
        Unit::None,
        Group::Lextents,
        Class(Classes::Lextents, &["stats.arenas.4096.lextents.<j>.ndalloc"]),
    )
    .says("Large blocks of the class that came back."),
];

pub(super) static EXTENTS: &[Def] = &[
    runs("lumalloc_dirty_extents", Unit::None, &["stats.arenas.4096.extents.<j>.ndirty"]),
    runs(
        "lumalloc_dirty_extent_bytes",
        Unit::Bytes,
        &["stats.arenas.4096.extents.<j>.dirty_bytes"],
    ),
    runs("lumalloc_muzzy_extents", Unit::None, &["stats.arenas.4096.extents.<j>.nmuzzy"]),
    runs(
        "lumalloc_muzzy_extent_bytes",
        Unit::Bytes,
        &["stats.arenas.4096.extents.<j>.muzzy_bytes"],
    )
    .says("Bytes in unused runs, memory perhaps gone."),
    runs("lumalloc_retained_extents", Unit::None, &["stats.arenas.4096.extents.<j>.nretained"]),
    runs(
        "lumalloc_retained_extent_bytes",
        Unit::Bytes,
        &["stats.arenas.4096.extents.<j>.retained_bytes"],
    )
    .says("Bytes in runs without memory."),
];

/// The source of one number for every lock.
macro_rules! every_lock {
    ($field:literal) => {
        Each(
            "lock",
            &[
                ("arenas", &[concat!("stats.mutexes.arenas.", $field)]),
                ("background_thread", &[concat!("stats.mutexes.background_thread.", $field)]),
                ("base", &[concat!("stats.arenas.4096.mutexes.base.", $field)]),
                ("ctl", &[concat!("stats.mutexes.ctl.", $field)]),
                ("extents", &[concat!("stats.arenas.4096.mutexes.extents_dirty.", $field)]),
                ("max_per_bg_thd", &[concat!("stats.mutexes.max_per_bg_thd.", $field)]),
                ("tcache_list", &[concat!("stats.arenas.4096.mutexes.tcache_list.", $field)]),
                ("thread_caches", &[concat!("stats.mutexes.thread_caches.", $field)]),
            ],
        )
    };
}

pub(super) static MUTEXES: &[Def] = &[
    counter(
        "lumalloc_mutex_acquisitions_total",
        Unit::None,
        Group::Mutexes,
        every_lock!("num_ops"),
    )
    .says("Times that the lock was taken."),
    counter("lumalloc_mutex_blocked_total", Unit::None, Group::Mutexes, every_lock!("num_wait"))
        .says("Times that taking the lock had to block."),
    counter("lumalloc_mutex_spun_total", Unit::None, Group::Mutexes, every_lock!("num_spin_acq"))
        .says("Times that spinning for the lock was enough."),
    counter(
        "lumalloc_mutex_owner_switches_total",
        Unit::None,
        Group::Mutexes,
        every_lock!("num_owner_switch"),
    )
    .says("Times that the taker of the lock changed."),
    counter(
        "lumalloc_mutex_wait_seconds_total",
        Unit::Seconds,
        Group::Mutexes,
        every_lock!("total_wait_time"),
    )
    .says("Time that threads were blocked for the lock."),
    gauge(
        "lumalloc_mutex_longest_wait_seconds",
        Unit::Seconds,
        Group::Mutexes,
        every_lock!("max_wait_time"),
    )
    .says("Longest time that a thread was blocked for the lock, since the last reset."),
    gauge(
        "lumalloc_mutex_most_waiting_threads",
        Unit::None,
        Group::Mutexes,
        every_lock!("max_num_thds"),
    )
    .says("Most threads that waited for the lock at once, since the last reset."),
];

pub(super) static ENGINE: &[Def] = &[
    work("lumalloc_flush_groups_total", &["stats.work.flush_groups"])
        .says("Groups in batches that caches returned: of one slab, or of one word of another's."),
    work("lumalloc_remote_words_total", &["stats.work.remote_words"]),
    work("lumalloc_remote_pushes_total", &["stats.work.remote_pushes"]),
    work("lumalloc_remote_drains_total", &["stats.work.remote_drains"]),
    work("lumalloc_remote_retries_total", &["stats.work.cas_retries"]),
    work("lumalloc_runs_kept_total", &["stats.work.runs_kept"]),
    work("lumalloc_runs_reused_total", &["stats.work.runs_reused"])
        .says("Large blocks served from those that threads kept."),
    work("lumalloc_runs_taken_total", &["stats.work.runs_taken"]),
    work("lumalloc_runs_given_total", &["stats.work.runs_given"]),
];
