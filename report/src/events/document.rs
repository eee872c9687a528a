//! What every JSON document of a recording begins with.

use serde_json::{Map, Value as Json, json};

use super::names::Names;

/// Returns a document with these members, after those that each document has. `end` is when the
/// recording ends.
pub(super) fn document<const MEMBERS: usize>(
    names: &Names<'_>,
    end: u64,
    members: [(&str, Json); MEMBERS],
) -> Json {
    let recording = names.recording();
    let process = recording.process();
    let damage = recording.damage().map(|error| error.to_string());
    let notes = recording.notes().into_iter().chain(damage);
    let warnings: Vec<String> = notes.chain(names.notes().iter().cloned()).collect();
    let all = [
        ("version", json!(1)),
        ("pid", json!(process.pid)),
        ("program", json!(process.program)),
        ("allocator", json!(process.allocator)),
        ("start", json!(recording.microseconds(process.start))),
        ("end", json!(recording.microseconds(end))),
        ("dropped", json!(recording.dropped())),
        ("warnings", json!(warnings)),
    ];
    let all = all.into_iter().chain(members);
    Json::Object(all.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}
