//! `vm.*`: the names of vmalloc(3).
use crate::row::Row;
use crate::row_macros::{ro, rw};
use crate::snapshot::{self, Published};
use lumalloc::control;
use lumalloc::observe::BINS;

/// A row from the published snapshot.
macro_rules! stat {
    ($name:literal, $kind:ident, $unit:ident, $look:expr, $help:literal) => {
        ro!(concat!("vm.stat.", $name), $kind, $unit, |_| snapshot::read($look), $help)
    };
}

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
    stat!("n_region", Unsigned, Count, |published| published.totals().arenas_open, "arenas made"),
    stat!(
        "n_open",
        U64,
        Count,
        |published| published.totals().n_open,
        "entries into arenas that did not wait"
    ),
    stat!(
        "n_lock",
        U64,
        Count,
        |published| published.totals().n_lock,
        "entries into arenas that waited"
    ),
    stat!(
        "n_probe",
        U64,
        Count,
        |published| published.totals().n_probe,
        "entries that searched for a free arena"
    ),
    stat!(
        "n_busy",
        U64,
        Count,
        busy_blocks,
        "blocks that the program holds, and large ones that threads keep"
    ),
    stat!(
        "s_busy",
        Size,
        Bytes,
        |published| published.totals().allocated,
        "in blocks that the program holds"
    ),
    stat!(
        "s_free",
        Size,
        Bytes,
        |published| published.totals().mapped.saturating_sub(published.totals().allocated),
        "of the extent, not in such blocks"
    ),
    stat!(
        "extent",
        Size,
        Bytes,
        |published| published.totals().mapped,
        "taken from the system, the allocator's own records among it"
    ),
];

/// Blocks of all arenas together, without those in thread caches; large ones that a thread keeps
/// are not told apart.
fn busy_blocks(published: &Published) -> u64 {
    let Some(all) = published.arena(control::ARENAS_ALL as usize) else { return 0 };
    let small: usize = all.bins.iter().take(BINS).map(|bin| bin.curregs).sum();
    let cached: usize = all.bins.iter().map(|bin| bin.cached).sum();
    let large: usize = all.lextents.iter().map(|class| class.curlextents).sum();
    (small + large).saturating_sub(cached) as u64
}
