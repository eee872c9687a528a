//! The analyser's findings as JSON.

use std::io::Write;

use serde_json::{Value as Json, json};

use super::analysis::{Analysis, Anomaly, Options};
use super::choice::kind;
use super::decoder::Event;
use super::document::document;
use super::ledger::Block;
use super::names::Names;
use super::recording::Recording;
use super::stop::Stop;
use crate::terminal::json_text;

/// Writes one document. The members are described in `docs/heap-monitor.md`.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn dump_json(
    names: &mut Names<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let recording = names.recording();
    let analysis = Analysis::new(names, options)?;
    let anomalies = analysis.anomalies.iter().map(|it| anomaly(recording, names, it));
    let messages = recording.messages().iter().map(
        |message| json!({ "time": recording.microseconds(message.time), "text": message.text }),
    );
    let anomalies: Json = anomalies.collect();
    let unlisted = analysis.unlisted.iter().map(|it| {
        json!({
            "address": format!("{:#x}", it.address),
            "deletion": event(recording, names, it),
        })
    });
    let unlisted: Json = unlisted.collect();
    let members = [
        ("allocations", json!(analysis.allocations)),
        ("deletions", json!(analysis.deletions)),
        ("old_blocks", json!(recording.old_blocks().len())),
        ("deleted_unseen", json!(analysis.deleted_unseen)),
        ("messages", messages.collect()),
        ("anomalies", anomalies),
        ("more_anomalies", json!(analysis.more_anomalies)),
        ("unlisted", unlisted),
        ("more_unlisted", json!(analysis.more_unlisted)),
    ];
    // There may be so many blocks that they are not put together first.
    let head = json_text(&document(names, analysis.end, members));
    write!(out, "{},\"blocks\":[", head.strip_suffix('}').unwrap_or(&head))?;
    let live = analysis.live.iter().map(|block| (block, None, analysis.end));
    let deleted = analysis.deleted.iter();
    let deleted = deleted.map(|(block, deletion)| (block, Some(deletion), deletion.time));
    for (place, (block, deletion, end)) in live.chain(deleted).enumerate() {
        let separator = if place == 0 { "" } else { "," };
        let block = json_text(&one(recording, names, block, deletion, end));
        write!(out, "{separator}{block}")?;
    }
    Ok(writeln!(out, "]}}")?)
}

fn event(recording: &Recording, names: &Names<'_>, event: &Event) -> Json {
    json!({
        "thread": recording.thread(event.thread),
        "time": recording.microseconds(event.time),
        "stack": names.functions(event.stack).collect::<Vec<_>>(),
    })
}

/// One block, with its deletion if it has one.
pub(super) fn one(
    recording: &Recording,
    names: &mut Names<'_>,
    block: &Block,
    deletion: Option<&Event>,
    end: u64,
) -> Json {
    let kind = kind(block, deletion, names);
    let age = block.age(end, recording) / 1000;
    json!({
        "address": format!("{:#x}", block.address),
        "size": block.size,
        "type": &*kind,
        "old": block.is_old(),
        "age": (!block.is_old()).then_some(age),
        "allocation": block.allocation().map(|it| event(recording, names, it)),
        "deletion": deletion.map(|it| event(recording, names, it)),
    })
}

fn anomaly(recording: &Recording, names: &Names<'_>, anomaly: &Anomaly) -> Json {
    let (kind, block, first, second) = match anomaly {
        Anomaly::BadAddress(event) => ("bad address", None, None, event),
        Anomaly::InsideBlock(block, event) => ("inner address", Some(block), None, event),
        Anomaly::DoubleDeletion(block, first, second) => {
            ("double deletion", block.as_ref(), Some(first), second)
        }
        Anomaly::LiveAddress(block, second) => ("live address", Some(block), None, second),
    };
    let allocation = block.and_then(Block::allocation);
    json!({
        "kind": kind,
        "address": format!("{:#x}", second.address),
        "allocation": allocation.map(|it| event(recording, names, it)),
        "deletion": first.map(|it| event(recording, names, it)),
        "event": event(recording, names, second),
    })
}

#[cfg(test)]
mod tests {
    use super::super::filter::Filter;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    #[test]
    fn everything_is_there() {
        let file = File::default()
            .stack(1, &[0x101, 0x201])
            .old(2000, &[[0x50, 64, 0]])
            .events(
                7,
                &[
                    (3000, Happens::New(0x10, 24), 1),
                    (9000, Happens::Delete(0x10, 1), 0),
                    (9500, Happens::Delete(0x10, 1), 1),
                    (9600, Happens::Delete(0x70, 1), 0),
                ],
            )
            .message(9900, "double free\u{9b}");
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let options = Options { filter: Filter::default(), deleted: 100 };
        let mut out = Vec::new();
        dump_json(&mut names, &options, &mut out).expect("a dump");
        let text = std::str::from_utf8(&out).expect("text");
        assert!(text.contains("\"double free\\u009b\"") && !text.contains('\u{9b}'), "{text}");
        let json: Json = serde_json::from_slice(&out).expect("JSON");
        let allocation =
            json!({ "thread": "22-7", "time": 759537687000003u64, "stack": ["0x100", "0x200"] });
        let deletion = json!({ "thread": "22-7", "time": 759537687000009u64, "stack": [] });
        let expected = json!({
            "version": 1,
            "pid": 22,
            "program": "/bin/x",
            "allocator": "lumalloc 0.1.0",
            "start": 759537687000000u64,
            "end": 759537687000009u64,
            "dropped": 0,
            "warnings": recording.notes(),
            "allocations": 1,
            "deletions": 3,
            "old_blocks": 1,
            "deleted_unseen": 0,
            "messages": [{ "time": 759537687000009u64, "text": "double free\u{9b}" }],
            "anomalies": [{
                "kind": "double deletion",
                "address": "0x10",
                "allocation": allocation,
                "deletion": deletion,
                "event": {
                    "thread": "22-7", "time": 759537687000009u64, "stack": ["0x100", "0x200"]
                },
            }],
            "more_anomalies": 0,
            "unlisted": [{ "address": "0x70", "deletion": deletion }],
            "more_unlisted": 0,
            "blocks": [
                {
                    "address": "0x50", "size": 64, "type": "novtbl", "old": true, "age": null,
                    "allocation": null, "deletion": null,
                },
                {
                    "address": "0x10", "size": 24, "type": "notype", "old": false, "age": 6,
                    "allocation": allocation, "deletion": deletion,
                },
            ],
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_document_without_blocks_is_whole() {
        let recording = Recording::of(&File::default().end(1, 0));
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let options = Options { filter: Filter::default(), deleted: 100 };
        let mut out = Vec::new();
        dump_json(&mut names, &options, &mut out).expect("a dump");
        let json: Json = serde_json::from_slice(&out).expect("JSON");
        assert_eq!((&json["blocks"], &json["anomalies"]), (&json!([]), &json!([])));
    }
}
