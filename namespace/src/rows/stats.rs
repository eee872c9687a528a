//! `stats.*` of the whole process, from the published snapshot.
use crate::row::Spec;
use crate::row_macros::{act, mutex_rows, ro};
use crate::snapshot;
use lumalloc::observe::{self, MutexStats, ProcessMutexes};

/// A row from the totals.
macro_rules! stat {
    ($name:literal, $kind:ident, $unit:ident, $field:ident, $help:literal) => {
        ro!(
            concat!("stats.", $name),
            $kind,
            $unit,
            |_| snapshot::read(|published| published.totals().$field),
            $help
        )
    };
}

/// A row that counts guarded samples.
macro_rules! guarded {
    ($field:ident, $help:literal) => {
        ro!(
            concat!("stats.guarded.", stringify!($field)),
            U64,
            Count,
            |_| snapshot::read(|published| published.totals().guarded.$field),
            $help
        )
    };
}

/// The rows of `stats.*` for the process, but for its locks.
pub static ROWS: &[Spec] = &[
    stat!("allocated", Size, Bytes, allocated, "in blocks that the program holds"),
    stat!("active", Size, Bytes, active, "in pages that hold at least one such block"),
    stat!("metadata", Size, Bytes, metadata, "of the allocator's own records"),
    stat!("metadata_edata", Size, Bytes, metadata_edata, "of records of runs, among those"),
    stat!("metadata_rtree", Size, Bytes, metadata_rtree, "of the map of addresses, among those"),
    stat!("metadata_thp", Size, Count, metadata_thp, "huge pages asked for under records"),
    stat!("resident", Size, Bytes, resident, "in pages that are physically there, at most"),
    stat!("mapped", Size, Bytes, mapped, "in mapped extents"),
    stat!(
        "retained",
        Size,
        Bytes,
        retained,
        "of address space kept for later without physical pages"
    ),
    stat!("holes", Size, Bytes, holes, "of retained, free pages inside slabs in use"),
    ro!(
        "stats.zero_reallocs",
        Size,
        Count,
        |_| observe::zero_reallocs() as usize,
        "calls of realloc(p, 0) with a block until now, without a new epoch"
    ),
    stat!("out_of_memory", U64, Count, out_of_memory, "allocations that were answered NULL"),
    stat!(
        "background_thread.num_threads",
        Size,
        Count,
        background_threads,
        "background threads that run"
    ),
    stat!(
        "background_thread.num_runs",
        U64,
        Count,
        background_runs,
        "passes that background threads made"
    ),
    stat!(
        "background_thread.run_interval",
        U64,
        Nanoseconds,
        background_interval,
        "mean time between two of those passes"
    ),
    guarded!(made, "guarded samples handed out"),
    guarded!(live, "guarded samples in use"),
    guarded!(failed, "requests that were to get one and got an ordinary block"),
    act!(
        "stats.mutexes.reset",
        |_| {
            snapshot::reset_mutexes();
            Ok(())
        },
        "sets the statistics of all locks to zero"
    ),
];

/// The statistics of one lock of the process.
fn one(of: fn(&ProcessMutexes) -> MutexStats) -> MutexStats {
    snapshot::read(|published| of(published.detail().mutexes()))
}

mutex_rows!(
    BACKGROUND_THREAD,
    "stats.mutexes.background_thread",
    "start and stop of the background thread",
    |_| Ok(one(|mutexes| mutexes.background_thread))
);
mutex_rows!(MAX_PER_BG_THD, "stats.mutexes.max_per_bg_thd", "the pass of decay", |_| Ok(one(
    |mutexes| mutexes.decay_pass
)));
mutex_rows!(CTL, "stats.mutexes.ctl", "the namespace", |_| Ok(snapshot::read(|published| {
    *published.mutex()
})));
mutex_rows!(
    PROF,
    "stats.mutexes.prof",
    "the profiler (always 0: it has no lock that allocations wait for)",
    |_| Ok(MutexStats::default())
);
mutex_rows!(REGISTRY, "stats.mutexes.thread_caches", "the list of thread caches", |_| Ok(one(
    |mutexes| mutexes.registry
)));
mutex_rows!(ARENAS, "stats.mutexes.arenas", "the making of arenas", |_| Ok(one(
    |mutexes| mutexes.arenas
)));
