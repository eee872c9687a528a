//! Arenas: each single one, the destroyed ones together, and all merged.
use super::keys::{self, Key, keys, number, numbers};
use super::table::{self, Cell, Column};
use super::{Choice, classes, mutexes};
use crate::key_table::Row;
use crate::value::Value;
use crate::writer::Writer;
use lumalloc::control;
use lumalloc::control::arenas::{self, NAME_BYTES};

/// Which arenas are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All arenas together.
    Merged,
    /// All destroyed arenas together.
    Destroyed,
    /// The arena with this index.
    Single(usize),
}

impl Which {
    /// The index that stands for these arenas in names.
    pub(super) fn index(self) -> usize {
        match self {
            Which::Merged => control::ARENAS_ALL as usize,
            Which::Destroyed => control::ARENAS_ALL as usize + 1,
            Which::Single(index) => index,
        }
    }

    /// The name of a single arena.
    pub(super) fn name(self) -> Option<[u8; NAME_BYTES]> {
        let Which::Single(index) = self else { return None };
        arenas::name(u32::try_from(index).ok()?)
    }
}

/// The part of a name before its NUL.
pub(super) fn until_nul(name: &[u8]) -> &[u8] {
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Whether a row below an arena is about locks.
pub(super) fn is_of_locks(row: &Row) -> bool {
    row.components().skip(3).any(|component| matches!(component, b"mutexes" | b"mutex"))
}

/// Calls `visit` for the chosen arenas: for the merged ones only if there is more than one arena or
/// single arenas are omitted, as in jemalloc.
pub(super) fn each(choice: Choice, mut visit: impl FnMut(Which)) {
    let Some(initialized) = Key::named(b"arena.0.initialized") else { return };
    let exists = |index| matches!(initialized.at(1, index).read(), Some(Value::Bool(true)));
    let has_statistics = Key::named(b"stats.arenas.0.nthreads").is_some();
    if !has_statistics {
        return;
    }
    let arenas =
        || (0..usize::try_from(number("arenas.narenas")).unwrap_or(0)).filter(|i| exists(*i));
    if !choice.omits(b'm') && (choice.omits(b'a') || arenas().nth(1).is_some()) {
        visit(Which::Merged);
    }
    if !choice.omits(b'd') && exists(Which::Destroyed.index()) {
        visit(Which::Destroyed);
    }
    if !choice.omits(b'a') {
        arenas().for_each(|index| visit(Which::Single(index)));
    }
}

/// Prints the chosen arenas.
pub(super) fn print_all(writer: &mut Writer, choice: Choice) {
    each(choice, |which| {
        match which {
            Which::Merged => writer.text("Merged arenas stats:\n"),
            Which::Destroyed => writer.text("Destroyed arenas stats:\n"),
            Which::Single(index) => {
                writer.text("arenas[");
                writer.number(index as u64);
                writer.text("]:\n");
            }
        }
        if let Some(name) = which.name() {
            writer.text("name: ");
            writer.bytes(until_nul(&name));
            writer.text("\n");
        }
        print(writer, choice, which.index());
    });
}

/// The branch in which names are looked up. The index of the arena is put in later.
pub(super) const BRANCH: &str = "stats.arenas.0.";

fn print(writer: &mut Writer, choice: Choice, arena: usize) {
    let key = |leaf: &str| Key::below(BRANCH, leaf).map(|key| key.at(2, arena));
    let uptime = key("uptime").map_or(0, |key| key.number());
    for (title, leaf) in [
        ("assigned threads: ", "nthreads"),
        ("uptime: ", "uptime"),
        ("dss allocation precedence: ", "dss"),
    ] {
        if let Some(value) = key(leaf).and_then(|key| key.read()) {
            writer.text(title);
            table::value(writer, value);
            writer.text("\n");
        }
    }
    decay(writer, arena);
    operations(writer, arena, uptime);
    bytes(writer, arena);
    if !choice.omits(b'x') {
        mutexes::print(writer, &[b"stats", b"arenas", b"<", b"mutexes"], arena, uptime);
    }
    classes::print(writer, choice, arena, uptime);
}

const DECAY: [Column; 6] = [
    ("decaying:", 9),
    ("time", 6),
    ("npages", 13),
    ("sweeps", 13),
    ("madvises", 13),
    ("purged", 13),
];

fn decay(writer: &mut Writer, arena: usize) {
    table::titles(writer, &DECAY, 0);
    let states = [
        ("dirty:", "dirty_decay_ms", ["pdirty", "dirty_npurge", "dirty_nmadvise", "dirty_purged"]),
        ("muzzy:", "muzzy_decay_ms", ["pmuzzy", "muzzy_npurge", "muzzy_nmadvise", "muzzy_purged"]),
    ];
    for (title, time, leaves) in states {
        let time = Key::below(BRANCH, time).and_then(|key| key.at(2, arena).read());
        let time = match time {
            Some(Value::Ssize(time)) if time >= 0 => Cell::Number(time as u64),
            _ => Cell::Text("N/A"),
        };
        let [pages, sweeps, calls, purged] = numbers(keys(BRANCH, leaves), arena, usize::MAX);
        let numbers = [pages, sweeps, calls, purged].map(Cell::Number);
        let [pages, sweeps, calls, purged] = numbers;
        table::cells(writer, &DECAY, &[Cell::Text(title), time, pages, sweeps, calls, purged]);
        writer.text("\n");
    }
}

const OPERATIONS: [Column; 11] = [
    ("allocated", 16),
    ("nmalloc", 16),
    ("(#/sec)", 10),
    ("ndalloc", 16),
    ("(#/sec)", 10),
    ("nrequests", 16),
    ("(#/sec)", 10),
    ("nfill", 16),
    ("(#/sec)", 10),
    ("nflush", 16),
    ("(#/sec)", 10),
];

/// The width of the titles before numbers.
const TITLE: usize = 21;

/// Prints what was allocated and freed, for small and large blocks.
fn operations(writer: &mut Writer, arena: usize, uptime: u64) {
    writer.repeat(b' ', TITLE);
    table::titles(writer, &OPERATIONS, 0);
    let leaves = ["allocated", "nmalloc", "ndalloc", "nrequests", "nfills", "nflushes"];
    let small = numbers(keys("stats.arenas.0.small.", leaves), arena, usize::MAX);
    let large = numbers(keys("stats.arenas.0.large.", leaves), arena, usize::MAX);
    let mut total = small;
    total.iter_mut().zip(large).for_each(|(sum, large)| *sum = sum.saturating_add(large));
    for (title, [allocated, counts @ ..]) in
        [("small:", small), ("large:", large), ("total:", total)]
    {
        writer.left_bytes(title.as_bytes(), TITLE);
        let [nmalloc, ndalloc, nrequests, nfills, nflushes] =
            counts.map(|count| Cell::Count(count, uptime));
        let allocated = Cell::Number(allocated);
        let cells = [allocated, nmalloc, ndalloc, nrequests, nfills, nflushes];
        table::cells(writer, &OPERATIONS, &cells);
        writer.text("\n");
    }
    writer.text("\n");
}

/// Prints the arena's bytes, one line per number.
fn bytes(writer: &mut Writer, arena: usize) {
    let pages = Key::below(BRANCH, "pactive").map_or(0, |key| key.at(2, arena).number());
    amount(writer, "active", pages.saturating_mul(keys::number("arenas.page")));
    for leaf in [
        "mapped",
        "retained",
        "base",
        "internal",
        "metadata_thp",
        "tcache_bytes",
        "tcache_stashed_bytes",
        "resident",
        "abandoned_vm",
        "extent_avail",
    ] {
        if let Some(value) = Key::below(BRANCH, leaf).and_then(|key| key.at(2, arena).read()) {
            amount(writer, leaf, keys::as_number(value));
        }
    }
}

fn amount(writer: &mut Writer, title: &str, value: u64) {
    writer.text(title);
    writer.left_bytes(b":", TITLE.saturating_sub(title.len()));
    writer.right_number(value, 16);
    writer.text("\n");
}
