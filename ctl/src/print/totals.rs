//! The whole process: bytes, threads, where the memory is, what work was done, locks.
use super::Choice;
use super::keys::{as_number, branch, number};
use super::mutexes;
use super::table;
use crate::row::Row;
use crate::writer::Writer;

/// Branches of `stats` that jemalloc does not have, and their titles in the text.
const OWN: [(&str, &str); 4] = [
    ("rss", "Where the memory is:\n"),
    ("thread_caches", "Thread caches:\n"),
    ("remote", "Blocks freed by other threads:\n"),
    ("work", ""),
];

/// Whether a row of `stats` is among what was chosen.
pub(super) fn takes(choice: Choice, row: &Row) -> bool {
    match row.components().nth(1) {
        Some(b"mutexes") => !choice.omits(b'x'),
        Some(name) if OWN.iter().any(|(own, _)| own.as_bytes() == name) => !choice.omits(b'w'),
        _ => true,
    }
}

/// Prints them.
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
        OWN.iter().filter(|(name, _)| *name != "work").for_each(|own| amounts(writer, own));
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

/// The keys of a branch of our own, a line each: bytes in full and for reading, others as they are.
fn amounts(writer: &mut Writer, &(name, title): &(&str, &str)) {
    let rows = branch(&[b"stats", name.as_bytes()]);
    let key = |row: &&&'static Row| row.access.reader().is_some();
    if rows.iter().any(|row| key(&row)) {
        writer.text(title);
    }
    for row in rows.iter().filter(key) {
        let Some(Ok(value)) = row.access.reader().map(|read| read(&[])) else { continue };
        let name = row.name.as_bytes().get("stats.".len() + name.len() + 1..).unwrap_or_default();
        writer.text("  ");
        writer.left_bytes(name, 24);
        // What is negative is a credit.
        match value {
            crate::Value::Ssize(value) if value < 0 => {
                writer.repeat(b' ', 4);
                writer.signed(value as i64);
            }
            value => writer.right_number(as_number(value), 16),
        }
        if row.unit == crate::Unit::Bytes {
            writer.text("  ");
            table::size(writer, as_number(value));
        } else {
            table::unit(writer, row.unit);
        }
        writer.text("\n");
    }
}

/// Deeds in a line.
const DEEDS: usize = 5;

/// How often the slow paths did what, without what never happened.
fn work(writer: &mut Writer) {
    let rows = branch(&[b"stats", b"work"]);
    let counted = rows.iter().filter_map(|row| {
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
