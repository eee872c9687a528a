//! The part that never changes during execution: version, build, options, constants.
use super::keys::{self, Key, branch};
use super::table;
use crate::key_table::Row;
use crate::writer::Writer;

/// Options whose current value is that of another key. Both are shown, as in jemalloc.
const PRESENT: [(&str, &str); 3] = [
    ("opt.background_thread", "background_thread"),
    ("opt.dirty_decay_ms", "arenas.dirty_decay_ms"),
    ("opt.muzzy_decay_ms", "arenas.muzzy_decay_ms"),
];

/// Constants, with jemalloc's wording.
const CONSTANTS: [(&str, &str); 7] = [
    ("Arenas: ", "arenas.narenas"),
    ("Quantum size: ", "arenas.quantum"),
    ("Page size: ", "arenas.page"),
    ("Maximum thread-cached size class: ", "arenas.tcache_max"),
    ("Number of bin size classes: ", "arenas.nbins"),
    ("Number of thread-cache bin size classes: ", "arenas.nhbins"),
    ("Number of large size classes: ", "arenas.nlextents"),
];

/// Prints the general part.
pub(super) fn print(writer: &mut Writer) {
    one(writer, "Version: ", "version");
    for (title, name) in [
        ("Build-time option settings\n", "config"),
        ("Run-time option settings\n", "opt"),
        ("Profiling settings\n", "prof"),
    ] {
        let rows = branch(&[name.as_bytes()]);
        if rows.iter().any(|row| value(row).is_some()) {
            writer.text(title);
            rows.iter().for_each(|row| setting(writer, row));
        }
    }
    CONSTANTS.iter().for_each(|(title, name)| one(writer, title, name));
}

fn one(writer: &mut Writer, title: &str, name: &str) {
    if let Some(value) = Key::named(name.as_bytes()).and_then(|key| key.read()) {
        writer.text(title);
        table::value(writer, value);
        writer.text("\n");
    }
}

fn value(row: &Row) -> Option<crate::Value<'static>> {
    row.access.reader()?(&[]).ok()
}

fn setting(writer: &mut Writer, row: &Row) {
    let Some(value) = value(row) else { return };
    writer.text("  ");
    writer.text(row.name());
    writer.text(": ");
    table::value(writer, value);
    if let Some((_, present)) = PRESENT.iter().find(|(name, _)| *name == row.name())
        && let Some(value) = keys::Key::named(present.as_bytes()).and_then(|key| key.read())
    {
        writer.text(" (");
        writer.text(present);
        writer.text(": ");
        table::value(writer, value);
        writer.text(")");
    }
    writer.text("\n");
}
