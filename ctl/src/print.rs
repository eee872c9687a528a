//! `malloc_stats_print`: the statistics as text for people, or as JSON with jemalloc's key
//! structure.
//!
//! Both are made from the table: a key appears as soon as it has a row under one of the printed
//! branches.
use crate::row::Row;
use crate::snapshot;
use crate::tree::{self, INDEX};
use crate::value::{Unit, Value};
use crate::writer::Writer;
use lumalloc::observe::Totals;

/// What the letters of `malloc_stats_print`'s `opts` choose. Unknown letters are ignored; letters
/// for parts that do not exist (`m d a b l x e h`) have nothing to omit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// `J`: JSON.
    pub json: bool,
    /// `g`: without the general part, which never changes during execution.
    pub omit_general: bool,
}

impl Choice {
    /// Reads the letters.
    pub fn from_letters(letters: &[u8]) -> Self {
        Choice { json: letters.contains(&b'J'), omit_general: letters.contains(&b'g') }
    }

    /// Whether a row is printed. The general part is version, build and options; keys of threads
    /// and single arenas are never printed.
    fn takes(self, row: &Row) -> bool {
        let general = match row.components().next() {
            Some(b"stats") => false,
            Some(b"version" | b"config" | b"opt" | b"arenas") => true,
            _ => return false,
        };
        let indexed = row.components().any(|component| component.first() == Some(&INDEX));
        let omitted = indexed || general && self.omit_general;
        !omitted && row.access.reader().is_some()
    }
}

/// Takes a new snapshot and prints it.
pub fn print(writer: &mut Writer, choice: Choice) {
    let snapshot = snapshot::refresh();
    if choice.json {
        print_json(writer, choice);
    } else {
        print_text(writer, choice, &snapshot.totals);
    }
}

/// The rows that a choice takes, with their values.
fn values(choice: Choice) -> impl Iterator<Item = (&'static Row, Value<'static>)> {
    let readable = tree::rows().iter().filter(move |row| choice.takes(row)).copied();
    readable.filter_map(|row| Some((row, row.access.reader()?(&[]).ok()?)))
}

/// `{"jemalloc":{"version":…,"opt":{…},"arenas":{…},"stats":{…}}}`
fn print_json(writer: &mut Writer, choice: Choice) {
    writer.text("{\"jemalloc\":{");
    let mut above: Option<&Row> = None;
    for (row, value) in values(choice) {
        let shared = above.map_or(0, |above| shared_branches(above, row));
        if let Some(above) = above {
            writer.repeat(b'}', branches(above).saturating_sub(shared));
            writer.text(",");
        }
        let mut components = row.components().skip(shared).peekable();
        while let Some(component) = components.next() {
            writer.text("\"");
            writer.bytes(component);
            writer.text(if components.peek().is_some() { "\":{" } else { "\":" });
        }
        write_value(writer, value);
        above = Some(row);
    }
    writer.repeat(b'}', above.map_or(0, branches));
    writer.text("}}\n");
}

/// How many objects enclose a key.
fn branches(row: &Row) -> usize {
    row.components().count().saturating_sub(1)
}

/// How many enclosing objects two keys share.
fn shared_branches(a: &Row, b: &Row) -> usize {
    let most = branches(a).min(branches(b));
    let both = a.components().zip(b.components()).take(most);
    both.take_while(|(a, b)| a == b).count()
}

/// Text in the order and wording of jemalloc, as far as the names exist.
fn print_text(writer: &mut Writer, choice: Choice, totals: &Totals) {
    writer.text("___ Begin lumalloc statistics ___\n");
    for (row, value) in values(choice) {
        if row.components().next() == Some(b"stats") {
            continue;
        }
        writer.text(if branches(row) > 0 { "  " } else { "" });
        writer.text(row.name);
        writer.text(": ");
        write_value(writer, value);
        writer.text(unit_suffix(row.unit));
        writer.text("\n");
    }
    let omit_general = Choice { omit_general: true, ..choice };
    let bytes = values(omit_general).filter(|(row, _)| branches(row) == 1);
    for (at, (row, value)) in bytes.enumerate() {
        write_heading(writer, row.components().last().unwrap_or_default(), at == 0);
        write_value(writer, value);
    }
    writer.text("\n");
    print_activity(writer, totals);
    print_work(writer, omit_general);
    writer.text("--- End lumalloc statistics ---\n");
}

/// `Allocated: ` at the head of the line, `, active: ` within it.
fn write_heading(writer: &mut Writer, name: &[u8], first: bool) {
    if first && let Some((initial, rest)) = name.split_first() {
        writer.bytes(&[initial.to_ascii_uppercase()]);
        writer.bytes(rest);
    } else {
        writer.text(", ");
        writer.bytes(name);
    }
    writer.text(": ");
}

/// How often the slow paths did what, without what never happened.
fn print_work(writer: &mut Writer, choice: Choice) {
    writer.text("Work:");
    for (row, value) in values(choice).filter(|(row, _)| is_work(row)) {
        if value == Value::U64(0) {
            continue;
        }
        writer.text(" ");
        writer.bytes(row.components().last().unwrap_or_default());
        writer.text(" ");
        write_value(writer, value);
    }
    writer.text("\n");
}

fn is_work(row: &Row) -> bool {
    row.components().nth(1) == Some(b"work")
}

/// What the totals say beside the bytes.
fn print_activity(writer: &mut Writer, totals: &Totals) {
    let counts = [
        ("Arenas open: ", u64::from(totals.arenas_open)),
        (", thread caches: ", u64::from(totals.thread_caches)),
        (", remote frees: ", totals.remote_frees),
        (", dirty: ", totals.dirty as u64),
        (", purges: ", totals.purges),
        (", pages purged: ", totals.purged_pages),
        ("\nArena locks: taken at once: ", totals.n_open),
        (", searched for: ", totals.n_probe),
        (", waited for: ", totals.n_lock),
        ("\nBackground threads: ", totals.background_threads as u64),
        (", num_runs: ", totals.background_runs),
        (", run_interval: ", totals.background_interval),
    ];
    for (heading, count) in counts {
        writer.text(heading);
        writer.number(count);
    }
    writer.text(unit_suffix(Unit::Nanoseconds));
    writer.text("\n");
}

fn unit_suffix(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => " bytes",
        Unit::Milliseconds => " ms",
        Unit::Nanoseconds => " ns",
        Unit::Pages => " pages",
        Unit::None | Unit::Count | Unit::Log2 => "",
    }
}

/// A value as JSON and the text write it; texts of this namespace hold nothing that JSON would
/// escape.
fn write_value(writer: &mut Writer, value: Value<'_>) {
    match value {
        Value::Bool(value) => writer.text(if value { "true" } else { "false" }),
        Value::Unsigned(value) | Value::U32(value) => writer.number(u64::from(value)),
        Value::U64(value) => writer.number(value),
        Value::Size(value) => writer.number(value as u64),
        Value::Ssize(value) => writer.signed(value as i64),
        Value::I64(value) => writer.signed(value),
        Value::Pointer(value) => writer.number(value.addr() as u64),
        Value::Str(value) => {
            writer.text("\"");
            writer.c_text(value);
            writer.text("\"");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::tests::collected;

    fn printed(letters: &str) -> std::string::String {
        collected(|writer| print(writer, Choice::from_letters(letters.as_bytes())))
    }

    #[test]
    fn json_has_every_chosen_key_and_balanced_braces() {
        let json = printed("J");
        assert!(json.starts_with("{\"jemalloc\":{\"version\":\""), "{json}");
        assert_eq!(json.matches('{').count(), json.matches('}').count(), "{json}");
        for key in [
            "\"opt\":{\"abort\":",
            "\"arenas\":{\"narenas\":",
            "},\"stats\":{\"allocated\":",
            ",\"retained\":",
        ] {
            assert!(json.contains(key), "{key} is not in {json}");
        }
        for wrong in [",}", "{,", "}\"", "{}", "epoch", "purge", "tcache.flush"] {
            assert!(!json.contains(wrong), "{wrong} is in {json}");
        }
    }

    #[test]
    fn the_general_part_can_be_omitted() {
        assert!(printed("Jg").starts_with("{\"jemalloc\":{\"stats\":{\"allocated\":"));
        let text = printed("g");
        assert!(text.starts_with("___ Begin lumalloc statistics ___\nAllocated: "), "{text}");
        assert!(text.ends_with("--- End lumalloc statistics ---\n"), "{text}");
        assert!(printed("").contains("  opt.dirty_decay_ms: "));
        let work = text.lines().find(|line| line.starts_with("Work: ")).expect("the work");
        let calls = work.split_once(" call_mmap ").expect("calls").1;
        assert!(calls.split(' ').next().unwrap().parse::<u64>().unwrap() > 0, "{work}");
        assert!(!work.contains("call_mremap"), "what never happened: {work}");
        let background = "\nBackground threads: 0, num_runs: 0, run_interval: 0 ns\nWork:";
        assert!(text.contains(background), "{text}");
    }

    #[test]
    fn unknown_letters_are_ignored() {
        assert_eq!(Choice::from_letters(b"mdablxehZ?"), Choice::default());
    }

    #[test]
    fn printing_takes_a_new_snapshot() {
        let before = snapshot::current().epoch;
        printed("");
        assert!(snapshot::current().epoch > before);
    }
}
