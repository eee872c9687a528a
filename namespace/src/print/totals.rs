//! The whole process: bytes, threads, where the memory is, what work was done, locks.
use super::Choice;
use super::keys::{as_number, number};
use super::mutexes;
use super::table;
use crate::key_table::{self, Row};
use crate::value::{Unit, Value};
use crate::writer::Writer;

/// Branches that jemalloc does not have, and their titles in the text.
const OWN: [(&str, &str); 6] = [
    ("stats.rss", "Where the memory is:\n"),
    ("stats.thread_caches", "Thread caches:\n"),
    ("stats.remote", "Blocks freed by other threads:\n"),
    ("stats.guarded", "Guarded samples:\n"),
    ("vm.stat", "Arenas, as vmstat counts them:\n"),
    ("limit", "Limits:\n"),
];

/// The branch of the work of the slow paths. jemalloc does not have it either.
const WORK: &str = "stats.work";

/// Whether a row of `stats` belongs to a chosen part.
pub(super) fn takes(choice: Choice, row: &Row) -> bool {
    let own = OWN.iter().map(|(own, _)| *own).chain([WORK]);
    if own.into_iter().any(|own| is_at_or_below(row, own)) {
        return !choice.omits(b'w');
    }
    row.components().nth(1) != Some(b"mutexes") || !choice.omits(b'x')
}

/// Prints the totals of the process.
pub(super) fn print(writer: &mut Writer, choice: Choice) {
    line(
        writer,
        &[
            ("Allocated: ", "stats.allocated"),
            (", active: ", "stats.active"),
            (", metadata: ", "stats.metadata"),
            (" (n_thp ", "stats.metadata_thp"),
            ("), resident: ", "stats.resident"),
            (", mapped: ", "stats.mapped"),
            (", retained: ", "stats.retained"),
        ],
    );
    writer.text("\n");
    line(writer, &[("Count of realloc(non-null-ptr, 0) calls: ", "stats.zero_reallocs")]);
    writer.text("\n");
    line(
        writer,
        &[
            ("Background threads: ", "stats.background_thread.num_threads"),
            (", num_runs: ", "stats.background_thread.num_runs"),
            (", run_interval: ", "stats.background_thread.run_interval"),
        ],
    );
    writer.text(" ns\n");
    if !choice.omits(b'w') {
        OWN.iter().for_each(|own| amounts(writer, own));
        work(writer);
    }
    if !choice.omits(b'x') {
        let uptime = number("stats.arenas.0.uptime");
        mutexes::print(writer, &[b"stats", b"mutexes"], 0, uptime);
    }
}

fn line(writer: &mut Writer, parts: &[(&str, &str)]) {
    for (title, name) in parts {
        writer.text(title);
        writer.number(number(name));
    }
}

/// Prints one of the [`OWN`] branches or keys, one line per key: bytes in full and in a readable
/// unit, other values as they are, and the help text.
fn amounts(writer: &mut Writer, &(branch, title): &(&str, &str)) {
    let mut title = Some(title);
    for row in key_table::rows().iter().filter(|row| is_at_or_below(row, branch)) {
        let Some(Ok(value)) = row.access.reader().map(|read| read(&[])) else { continue };
        title.take().into_iter().for_each(|title| writer.text(title));
        let leaf = row.name().as_bytes().get(branch.len() + 1..);
        writer.text("  ");
        writer.left_bytes(leaf.unwrap_or_else(|| row.components().last().unwrap_or_default()), 24);
        amount(writer, row.unit, value);
        writer.c_text(row.help());
        writer.text("\n");
    }
}

fn amount(writer: &mut Writer, unit: Unit, value: Value<'_>) {
    match value {
        // Such a value may be negative.
        Value::Ssize(value) => writer.right_signed(value as i64, 16),
        Value::Str(_) | Value::Bool(_) => {
            table::value(writer, value);
            return writer.text("  ");
        }
        value => writer.right_number(as_number(value), 16),
    }
    if unit == Unit::Bytes {
        table::right_size(writer, value, SIZE);
        writer.text("  ");
    } else {
        table::unit(writer, unit);
        writer.text("  ");
    }
}

fn is_at_or_below(row: &Row, branch: &str) -> bool {
    let rest = row.name().as_bytes().strip_prefix(branch.as_bytes());
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'.')))
}

/// The width of sizes in a readable unit.
const SIZE: usize = 13;

/// Counters in a line.
const DEEDS: usize = 5;

/// Prints how often the slow paths did each kind of work, without the kinds that never happened.
fn work(writer: &mut Writer) {
    let rows = key_table::rows().iter().filter(|row| is_at_or_below(row, WORK));
    let counted = rows.filter_map(|row| {
        let count = as_number(row.access.reader()?(&[]).ok()?);
        (count > 0).then_some((row.components().last()?, count))
    });
    writer.text("Work:");
    for (place, (deed, count)) in counted.enumerate() {
        if place > 0 && place % DEEDS == 0 {
            writer.text("\n     ");
        }
        writer.text(" ");
        writer.bytes(deed);
        writer.text(" ");
        writer.number(count);
    }
    writer.text("\n");
}
