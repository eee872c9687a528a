//! Who pins memory, as JSON.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::document::document;
use super::dump_json::one;
use super::names::Names;
use super::pages::PageSize;
use super::pins::{Holding, Kept, Options, Pins};
use super::recording::Recording;
use super::stop::Stop;
use crate::terminal::json_text;

/// Writes one document. The members are described in `docs/heap-monitor.md`.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn pins_json(
    names: &mut Names<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let recording = names.recording();
    let found = Pins::new(names, options)?;
    let rows = found.rows.iter().take(options.top).map(|(lines, row)| {
        let mut row = numbers(row, options.page);
        row["functions"] = json!(lines);
        row
    });
    let emptiest = found.emptiest.iter().map(|it| kept(it, recording, names, found.end));
    let emptiest: Json = emptiest.collect();
    let members = [
        ("by", json!(options.by.name())),
        ("page_size", json!(options.page.bytes())),
        ("old_blocks", json!(recording.old_blocks().len())),
        ("total", numbers(&found.total, options.page)),
        ("shown", numbers(&found.shown, options.page)),
        ("rows", rows.collect()),
        ("more_rows", json!(found.rows.len().saturating_sub(options.top))),
        ("emptiest", emptiest),
    ];
    Ok(writeln!(out, "{}", json_text(&document(names, found.end, members)))?)
}

fn numbers(holding: &Holding, page: PageSize) -> Json {
    json!({
        "blocks": holding.blocks,
        "bytes": holding.bytes,
        "touched_pages": holding.touched,
        "pinned_pages": holding.pages,
        "pinned_bytes": page.bytes_of(holding.pages),
        "filled_bytes": holding.filled,
    })
}

fn kept(kept: &Kept, recording: &Recording, names: &mut Names<'_>, end: u64) -> Json {
    let blocks = kept.blocks.iter().map(|(block, _)| one(recording, names, block, None, end));
    json!({
        "address": format!("{:#x}", kept.address),
        "pinned_bytes": kept.bytes,
        "bytes": kept.whole,
        "blocks": blocks.collect::<Json>(),
        "more_blocks": kept.more,
    })
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Filter, Old};
    use super::super::groups::By;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    #[test]
    fn the_document_has_all_numbers() {
        let new = |time, address, size, site| (time, Happens::New(address, size), site);
        let events = [new(2, 0x1800, 32, 1), new(1003, 0x2ff0, 32, 1), new(1004, 0x9000, 64, 2)];
        let file = File::default()
            .stack(1, &[0x101, 0x301])
            .stack(2, &[0x201])
            .old(1, &[[0x1000, 64, 0]])
            .events(7, &events)
            .end(5003, 0);
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let filter = Filter { old: Old::Excluded, ..Filter::default() };
        let page = PageSize::default();
        let options = Options { filter, by: By::Stack, top: 1, page, emptiest: 1 };
        let mut out = Vec::new();
        pins_json(&mut names, &options, &mut out).expect("it is shown");
        let json: Json = serde_json::from_slice(&out).expect("JSON");
        let numbers = |[blocks, bytes, touched, pages, filled]: [u64; 5]| {
            json!({
                "blocks": blocks, "bytes": bytes, "touched_pages": touched, "pinned_pages": pages,
                "pinned_bytes": pages * 4096, "filled_bytes": filled,
            })
        };
        let mut row = numbers([2, 64, 3, 2, 32]);
        row["functions"] = json!(["0x100", "0x300"]);
        let block = json!({
            "address": "0x2ff0", "size": 32, "type": "notype", "old": false, "age": 4,
            "allocation": {
                "thread": "22-7", "time": 759537687000001u64, "stack": ["0x100", "0x300"],
            },
            "deletion": null,
        });
        let kept = json!({
            "address": "0x2000", "pinned_bytes": 8192, "bytes": 32, "blocks": [block],
            "more_blocks": 0,
        });
        assert_eq!(json["total"], numbers([4, 192, 4, 4, 192]));
        assert_eq!(json["shown"], numbers([3, 128, 4, 3, 96]));
        assert_eq!((&json["rows"], &json["more_rows"]), (&json!([row]), &json!(1)));
        assert_eq!(json["emptiest"], json!([kept]));
        assert_eq!((&json["by"], &json["page_size"]), (&json!("stack"), &json!(4096)));
        assert_eq!((&json["old_blocks"], &json["pid"]), (&json!(1), &json!(22)));
    }
}
