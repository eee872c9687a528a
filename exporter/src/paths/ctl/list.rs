//! The list of every key with its description.
use super::allow;
use crate::answer::{Answer, body};
use crate::asked::Asked;
use crate::format::{Bad, Format};
use crate::namespace::{walk, word};
use lumalloc_namespace::{Door, Fact, Type, facts};
use serde_json::{Map, Value as Json};
use std::fmt::Write;

/// Answers `GET /ctl`.
pub(super) fn list(asked: &Asked) -> Result<Answer, Bad> {
    let format = Format::of(asked, Format::Json)?;
    let text = match format {
        Format::Json => {
            let all = facts().iter().map(|row| Json::Object(described(row)));
            format!("{}\n", Json::Array(all.collect()))
        }
        Format::Text => table(),
    };
    Ok(body(format.kind(), text))
}

/// Describes a key without asking the allocator.
pub(super) fn described(row: &'static Fact) -> Map<String, Json> {
    let mut told = Map::new();
    let mut tell = |name: &str, value: Json| drop(told.insert(name.into(), value));
    tell("name", row.name.into());
    tell("type", row.kind.c_name().to_string_lossy().into());
    if let Door::Ask(input) | Door::Create(input) = row.door
        && input != Type::Void
    {
        tell("input", input.c_name().to_string_lossy().into());
    }
    tell("unit", row.unit.name().to_string_lossy().into());
    tell("access", row.access.to_string_lossy().into());
    tell("stability", row.stability.name().to_string_lossy().into());
    tell("help", row.help.to_string_lossy().into());
    tell("get", walk::is_told(row).into());
    tell("post", is_posted(row).into());
    told
}

/// Whether `POST` is taken, and has an effect in this build.
fn is_posted(row: &'static Fact) -> bool {
    row.door != Door::Absent && allow::check(row).is_ok()
}

/// Returns a table with a line for each key.
fn table() -> String {
    let mut text = String::from("name  type  unit  access  stability  get  post  help\n");
    for row in facts() {
        let get = if walk::is_told(row) { "get" } else { "-" };
        let post = if is_posted(row) { "post" } else { "-" };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  {}  {}  {}  {}  {get}  {post}  {}",
            row.name,
            row.kind.c_name().to_string_lossy(),
            row.unit.name().to_string_lossy(),
            row.access.to_string_lossy(),
            row.stability.name().to_string_lossy(),
            row.help.to_string_lossy()
        );
    }
    text
}

/// Returns a value as text: of a key only its value, of an action one word.
pub(super) fn plain(value: &Json) -> String {
    match value.get("value") {
        Some(value) => format!("{}\n", word(value)),
        None => "done\n".into(),
    }
}
