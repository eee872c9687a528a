//! `stats.*` of the whole process, from the published snapshot.
use crate::row::Row;
use crate::row_macros::ro;
use crate::snapshot;

/// A row of bytes.
macro_rules! stat {
    ($field:ident, $help:literal) => {
        ro!(
            concat!("stats.", stringify!($field)),
            Size,
            Bytes,
            |_| snapshot::current().totals.$field,
            $help
        )
    };
}

/// These keys.
pub static ROWS: &[Row] = &[
    stat!(allocated, "in blocks that the program holds"),
    stat!(active, "in pages that hold at least one such block"),
    stat!(metadata, "of the allocator's own records"),
    stat!(resident, "in pages that are physically there, at most"),
    stat!(mapped, "in mapped extents"),
    stat!(retained, "of address space kept for later without physical pages"),
    ro!(
        "stats.background_thread.num_threads",
        Size,
        Count,
        |_| snapshot::current().totals.background_threads,
        "background threads that run"
    ),
    ro!(
        "stats.background_thread.num_runs",
        U64,
        Count,
        |_| snapshot::current().totals.background_runs,
        "passes that background threads made"
    ),
    ro!(
        "stats.background_thread.run_interval",
        U64,
        Nanoseconds,
        |_| snapshot::current().totals.background_interval,
        "mean time between two of those passes"
    ),
];
