//! Locks: how often each was taken, and how long threads waited for it.
use super::keys::{self, Key, branch};
use super::table::{self, Cell, Column};
use crate::key_table::Row;
use crate::tree::MAX_DEPTH;
use crate::value::Value;
use crate::writer::Writer;

/// The counters under each lock's name.
const COUNTERS: [&str; 7] = [
    "num_ops",
    "num_wait",
    "num_spin_acq",
    "num_owner_switch",
    "total_wait_time",
    "max_wait_time",
    "max_num_thds",
];

/// The titles and widths of jemalloc.
pub(super) const COLUMNS: [Column; 12] = [
    ("n_lock_ops", 16),
    ("(#/sec)", 8),
    ("n_waiting", 16),
    ("(#/sec)", 8),
    ("n_spin_acq", 16),
    ("(#/sec)", 8),
    ("n_owner_switch", 16),
    ("(#/sec)", 8),
    ("total_wait_ns", 16),
    ("(#/sec)", 10),
    ("max_wait_ns", 16),
    ("max_n_thds", 12),
];

/// The width of the names before the columns.
const NAME: usize = 21;

/// Prints a line for each lock of a branch. `arena` is the index at the third place.
pub(super) fn print(writer: &mut Writer, path: &[&[u8]], arena: usize, uptime: u64) {
    let rows = branch(path);
    if rows.is_empty() {
        return;
    }
    writer.repeat(b' ', NAME);
    table::titles(writer, &COLUMNS, 0);
    let mut mib = [0; MAX_DEPTH];
    if let Some(place) = mib.get_mut(2) {
        *place = arena;
    }
    let name = |row: &Row| row.components().nth(path.len());
    for first in rows.iter().filter(|row| row.components().last() == Some(b"num_ops")) {
        let Some(lock) = name(first) else { continue };
        writer.left_bytes(lock, NAME);
        let counters = COUNTERS.map(|counter| {
            let of_lock = |row: &&Row| {
                name(row) == Some(lock) && row.components().last() == Some(counter.as_bytes())
            };
            rows.iter().find(of_lock).map_or(0, |row| read(row, &mib))
        });
        table::cells(writer, &COLUMNS, &cells(counters, uptime));
        writer.text("\n");
    }
}

fn read(row: &Row, mib: &[usize; MAX_DEPTH]) -> u64 {
    let mib = mib.get(..row.components().count()).unwrap_or_default();
    let value: Option<Value<'_>> = row.access.reader().and_then(|read| read(mib).ok());
    value.map_or(0, keys::as_number)
}

/// The keys of the counters of one lock, whose branch this is.
pub(super) fn keys_below(branch: &str) -> [Option<Key>; 7] {
    keys::keys(branch, COUNTERS)
}

/// The counters of a lock as cells of [`COLUMNS`].
pub(super) fn cells(counters: [u64; 7], uptime: u64) -> [Cell; 7] {
    let [counts @ .., longest, threads] = counters;
    let [ops, waits, spins, switches, total] = counts.map(|count| Cell::Count(count, uptime));
    [ops, waits, spins, switches, total, Cell::Number(longest), Cell::Number(threads)]
}
