//! The lifetimes as a table and as JSON.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::document::document;
use super::lifetimes::{Lifetimes, Lives, Options};
use super::names::Names;
use super::stop::Stop;
use super::texts::{bytes, duration, title};
use crate::terminal::json_text;
use crate::views::{Table, stack_lines};

/// What the columns mean.
const MEANINGS: &str = "\
other   freed by another thread than the one that allocated
next    freed by the next event of the same thread: temporary for heaptrack
soon    freed by the same thread with at most one other allocation of it in between: temporary
        for memray
<1ms    freed blocks by their ages, up to 10 s and more
";

/// Writes a table of how long blocks live.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn lifetimes(
    names: &mut Names<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let recording = names.recording();
    let found = Lifetimes::new(names, options)?;
    writeln!(out, "{}", title(recording))?;
    let total = &found.total;
    let [allocated, live] = [total.bytes, total.live_bytes].map(bytes);
    writeln!(out, "  allocated  {allocated} in {} allocations", total.allocations)?;
    writeln!(out, "  live       {live} in {} blocks", total.live)?;
    let old = recording.old_blocks().len();
    writeln!(out, "  not shown  blocks that are older than the recording: {old}")?;
    let what = options.by.heading();
    writeln!(out, "\n{what} by allocations\n{}", table(&found, options.top).text())?;
    if let Some(rest) = found.rows.len().checked_sub(options.top).filter(|rest| *rest > 0) {
        writeln!(out, "  and {rest} more\n")?;
    }
    Ok(write!(out, "{MEANINGS}")?)
}

fn table(found: &Lifetimes, top: usize) -> Table {
    let header = [
        "allocations",
        "bytes",
        "live",
        "other",
        "next",
        "soon",
        "median",
        "<1ms",
        "<100ms",
        "<10s",
        ">=10s",
    ];
    let mut table = Table::new(header.map(str::to_owned).to_vec());
    for (lines, lives) in found.rows.iter().take(top) {
        let mut cells = vec![lives.allocations.to_string(), bytes(lives.bytes)];
        cells.extend([lives.live, lives.by_other, lives.next, lives.soon].map(|it| it.to_string()));
        cells.push(lives.median().map_or("-".to_owned(), duration));
        cells.extend(lives.classes.map(|count| count.to_string()));
        table.row(cells, stack_lines(lines));
    }
    table
}

/// Writes one document. The members are described in `docs/heap-monitor.md`.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn lifetimes_json(
    names: &mut Names<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let recording = names.recording();
    let found = Lifetimes::new(names, options)?;
    let rows = found.rows.iter().take(options.top);
    let rows = rows.map(|(lines, lives)| {
        let mut row = numbers(lives);
        row["functions"] = json!(lines);
        row
    });
    let members = [
        ("by", json!(options.by.name())),
        ("old_blocks", json!(recording.old_blocks().len())),
        ("total", numbers(&found.total)),
        ("rows", rows.collect()),
        ("more_rows", json!(found.rows.len().saturating_sub(options.top))),
    ];
    Ok(writeln!(out, "{}", json_text(&document(names, found.end, members)))?)
}

fn numbers(lives: &Lives) -> Json {
    let [below_1ms, below_100ms, below_10s, older] = lives.classes;
    json!({
        "allocations": lives.allocations,
        "bytes": lives.bytes,
        "live": lives.live,
        "live_bytes": lives.live_bytes,
        "freed_by_other_thread": lives.by_other,
        "freed_by_next_event": lives.next,
        "freed_soon": lives.soon,
        "median_age_ns": lives.median(),
        "below_1ms": below_1ms,
        "below_100ms": below_100ms,
        "below_10s": below_10s,
        "older": older,
    })
}

#[cfg(test)]
mod tests {
    use super::super::filter::Filter;
    use super::super::groups::By;
    use super::super::recording::Recording;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    fn file() -> File {
        File::default().stack(1, &[0x101, 0x301]).stack(2, &[0x201]).old(1, &[[8, 8, 0]]).events(
            7,
            &[
                (2, Happens::New(0x10, 1024), 1),
                (130, Happens::Delete(0x10, 0), 2),
                (200, Happens::New(0x20, 1024), 1),
                (300, Happens::New(0x30, 24), 2),
            ],
        )
    }

    fn shown(
        options: &Options,
        show: impl Fn(&mut Names<'_>, &Options, &mut dyn Write) -> Result<(), Stop>,
    ) -> String {
        let recording = Recording::of(&file());
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut out = Vec::new();
        show(&mut names, options, &mut out).expect("it is shown");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_table_has_a_row_for_each_site() {
        let options = Options { filter: Filter::default(), by: By::Site, top: 1 };
        let expected = "\
/bin/x: process 22, lumalloc 0.1.0
  allocated  2.02 KiB in 3 allocations
  live       1.02 KiB in 2 blocks
  not shown  blocks that are older than the recording: 1

Sites by allocations
  allocations     bytes  live  other  next  soon  median  <1ms  <100ms  <10s  >=10s
            2  2.00 KiB     1      0     1     1  128 ns     1       0     0      0  0x100

  and 1 more

";
        assert_eq!(shown(&options, lifetimes), format!("{expected}{MEANINGS}"));
        let options = Options { by: By::Stack, top: 9, ..options };
        let stacks = shown(&options, lifetimes);
        assert!(stacks.contains("  0x100\n") && stacks.contains("    0x300\n"), "{stacks}");
        assert!(stacks.contains("\nStacks by allocations\n"), "{stacks}");
    }

    #[test]
    fn the_document_has_all_numbers() {
        let options = Options { filter: Filter::default(), by: By::Stack, top: 1 };
        let text = shown(&options, lifetimes_json);
        let json: Json = serde_json::from_str(&text).expect("JSON");
        let row = json!({
            "functions": ["0x100", "0x300"],
            "allocations": 2,
            "bytes": 2048,
            "live": 1,
            "live_bytes": 1024,
            "freed_by_other_thread": 0,
            "freed_by_next_event": 1,
            "freed_soon": 1,
            "median_age_ns": 128,
            "below_1ms": 1,
            "below_100ms": 0,
            "below_10s": 0,
            "older": 0,
        });
        assert_eq!(json["rows"], json!([row]));
        assert_eq!((&json["by"], &json["more_rows"]), (&json!("stack"), &json!(1)));
        assert_eq!((&json["total"]["allocations"], &json["pid"]), (&json!(3), &json!(22)));
    }
}
