//! `vm.*`: the names of vmalloc(3).
use crate::row::Row;
use crate::row_macros::{ro, rw};
use crate::snapshot;
use lumalloc::control;

/// These keys.
pub static ROWS: &[Row] = &[
    rw!(
        "vm.regmax",
        Unsigned,
        Count,
        |_| control::regmax(),
        |_, regmax| {
            control::set_regmax(regmax);
            Ok(())
        },
        "most automatic arenas beside the first; those that exist stay"
    ),
    ro!(
        "vm.stat.n_region",
        Unsigned,
        Count,
        |_| snapshot::current().totals.arenas_open,
        "arenas that have been made"
    ),
    ro!(
        "vm.stat.n_open",
        U64,
        Count,
        |_| snapshot::current().totals.n_open,
        "entries into arenas that did not wait"
    ),
    ro!(
        "vm.stat.n_lock",
        U64,
        Count,
        |_| snapshot::current().totals.n_lock,
        "entries into arenas that waited"
    ),
    ro!(
        "vm.stat.n_probe",
        U64,
        Count,
        |_| snapshot::current().totals.n_probe,
        "entries that searched for a free arena"
    ),
    ro!(
        "vm.stat.s_busy",
        Size,
        Bytes,
        |_| snapshot::current().totals.allocated,
        "in blocks that the program holds"
    ),
    ro!(
        "vm.stat.s_free",
        Size,
        Bytes,
        |_| snapshot::current().totals.mapped.saturating_sub(snapshot::current().totals.allocated),
        "of the extent, not in such blocks"
    ),
    ro!(
        "vm.stat.extent",
        Size,
        Bytes,
        |_| snapshot::current().totals.mapped,
        "taken from the system, the allocator's own records among it"
    ),
];
