//! `/ctl` and `/ctl/<name>`: the namespace, which can be read and, within bounds, written.
//!
//! | request | answer |
//! |---|---|
//! | `GET /ctl` | every key: name, type, unit, access, help, whether `GET` and `POST` are taken |
//! | `GET /ctl/arenas.page` | the description of one key, with its value |
//! | `GET /ctl/arena.0` | an object of all values below a branch |
//! | `POST /ctl/arena.0.purge` | triggers the key |
//! | `POST /ctl/limit.soft` with a JSON value | writes it; returns the values before and after |
//! | `POST /ctl/limit.hard?force=1` | writes the limit, even if more than that is held |
//!
//! Statistics (`stats.*`, `vm.stat.*`, `vm.region.*`) are current: a new snapshot is taken for each
//! request.
mod allow;
mod list;
mod refusal;
mod suggest;

use crate::answer::{Answer, body, no_memory};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::{Bad, Format, bad, only, or_refused};
use crate::namespace::walk::{self, ARENA_NAME};
use crate::namespace::{Namespace, Target, row_of};
use crate::query;
use lumalloc_ctl::json::with_value;
use lumalloc_ctl::{Error, Value};
use lumalloc_namespace::{Door, Fact};
use refusal::Refusal;
use serde_json::{Value as Json, json};
use std::ffi::CString;

/// The prefix of the paths of all keys.
const BASE: &str = "/ctl/";
/// The key of the hard limit. [`HARD_FORCED`] is written if the limit may be below what is held.
const HARD: &str = "limit.hard";
const HARD_FORCED: &str = "limit.hard_forced";
/// The longest name that is looked up. No key has a longer one, and it is not sent back.
const LONGEST: usize = 128;
/// The most bytes of one arena below `stats.arenas` in both formats. Arenas that have blocks of ten
/// size classes have 35 and 80 KiB.
const JSON_OF_ARENA: usize = 48 << 10;
const TEXT_OF_ARENA: usize = 96 << 10;

/// Answers `GET /ctl`.
pub(crate) fn list(_: &Context, asked: &Asked) -> Answer {
    or_refused(only(asked, &["format"]).and_then(|()| list::list(asked)))
}

/// Answers `GET /ctl/<name>`.
pub(crate) fn read(context: &Context, asked: &Asked) -> Answer {
    let read = || -> Result<Answer, Refusal> {
        only(asked, &["format"])?;
        let name = name(asked)?;
        if name.is_empty() {
            return Ok(list::list(asked)?);
        }
        let format = Format::of(asked, Format::Json)?;
        refresh(context.namespace, &name);
        match row_of(&name) {
            Some(row) => Ok(written(format, &described(context.namespace, row, &name)?)),
            None => branch(context, &name, format),
        }
    };
    or_refused(read())
}

/// Answers `POST /ctl/<name>`.
pub(crate) fn write(context: &Context, asked: &Asked) -> Answer {
    let write = || -> Result<Answer, Refusal> {
        let name = name(asked)?;
        let parameters = ["format", "force"];
        only(asked, if name == HARD { &parameters } else { &parameters[..1] })?;
        let format = Format::of(asked, Format::Json)?;
        let done = write_one(context, &name, is_forced(asked)?, asked.body())?;
        Ok(written(format, &done))
    };
    or_refused(write())
}

/// Whether a limit may be set below what is held.
fn is_forced(asked: &Asked) -> Result<bool, Bad> {
    match query::values(asked.uri().query(), "force").next().as_deref() {
        None | Some("0") => Ok(false),
        Some("1") => Ok(true),
        Some(other) => Err(bad(format_args!("force is 0 or 1, not {other:?}"))),
    }
}

/// Returns the name in a path.
fn name(asked: &Asked) -> Result<String, Refusal> {
    let name = query::decode(asked.uri().path().strip_prefix(BASE).unwrap_or_default());
    if name.len() > LONGEST { Err(Refusal::LongName(name.len())) } else { Ok(name) }
}

/// Takes a snapshot for a name of statistics.
fn refresh(namespace: &dyn Namespace, name: &str) {
    let is_statistic = name == "stats" || name == "vm" || is_of_snapshot(name);
    if is_statistic && let Ok(epoch) = namespace.find("epoch") {
        // The write cannot be refused. If it were, the previous snapshot would be read.
        let _ = namespace.write(&epoch, Value::U64(1));
    }
}

/// Answers with the values below a branch.
fn branch(context: &Context, name: &str, format: Format) -> Result<Answer, Refusal> {
    let bytes = match format {
        Format::Json => JSON_OF_ARENA,
        Format::Text => TEXT_OF_ARENA,
    };
    let is_long = matches!(name, "stats" | "stats.arenas");
    if is_long && !context.memory.has_for_arenas(bytes) {
        return Ok(no_memory());
    }
    match walk::below(context.namespace, name, format) {
        Ok(Some(text)) => Ok(body(format.kind(), text)),
        Ok(None) => Err(Refusal::unknown(name)),
        Err(_) => Ok(no_memory()),
    }
}

/// Returns the description of a key with its value.
fn described(namespace: &dyn Namespace, row: &'static Fact, name: &str) -> Result<Json, Refusal> {
    let target = found(namespace, row, name)?;
    if !walk::is_told(row) {
        return Err(Refusal::not_told(row));
    }
    let value = walk::value(namespace, &target).map_err(|error| Refusal::read(row, error))?;
    let mut told = list::described(row);
    told.insert("name".into(), name.into());
    told.insert("value".into(), value);
    Ok(Json::Object(told))
}

fn is_of_snapshot(name: &str) -> bool {
    ["stats.", "vm.stat", "vm.region"].iter().any(|begin| name.starts_with(begin))
}

/// Finds the key of a row with its indices.
fn found(namespace: &dyn Namespace, row: &'static Fact, name: &str) -> Result<Target, Refusal> {
    namespace.find(name).map_err(|_| Refusal::no_index(row, name))
}

/// Triggers or writes a key, and returns the outcome.
fn write_one(context: &Context, name: &str, force: bool, body: &[u8]) -> Result<Json, Refusal> {
    let namespace = context.namespace;
    let Some(row) = row_of(name) else {
        return Err(match walk::is_branch(namespace, name) {
            true => Refusal::Branch(name.into()),
            false => Refusal::unknown(name),
        });
    };
    allow::check(row)?;
    let target = found(namespace, row, name)?;
    allow::check_arena(&target, context.memory.arena())?;
    let given = given(row, body)?;
    if row.door == Door::Trigger {
        if !given.is_null() {
            return Err(Refusal::TakesNothing(row));
        }
        namespace.act(&target).map_err(|error| Refusal::act(row, error))?;
        return Ok(json!({ "name": name, "done": true }));
    }
    let before = walk::value(namespace, &target).ok();
    let mut written = target;
    if force {
        written = found(namespace, row, HARD_FORCED)?;
        written.row = row;
    }
    write_value(namespace, &written, &given)?;
    let after = walk::value(namespace, &target).ok();
    Ok(json!({ "name": name, "before": before, "value": after }))
}

/// Returns the value in a body: the body itself, or the `value` of an object.
fn given(row: &'static Fact, body: &[u8]) -> Result<Json, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Json::Null);
    }
    match serde_json::from_slice(body) {
        Ok(Json::Object(mut object)) => match object.remove("value") {
            Some(value) if object.is_empty() => Ok(value),
            _ => Err(Refusal::Object(row)),
        },
        Ok(value) => Ok(value),
        Err(error) => Err(Refusal::NotJson(row, error.to_string())),
    }
}

fn write_value(namespace: &dyn Namespace, target: &Target, given: &Json) -> Result<(), Refusal> {
    let row = target.row;
    let outcome = if row.name == ARENA_NAME {
        let text = given.as_str().and_then(|text| CString::new(text).ok());
        let index = target.mib().get(1).and_then(|&index| u32::try_from(index).ok());
        let index = index.ok_or(Refusal::write(row, Error::NoEntry, given))?;
        allow::check_name(row, given.as_str().unwrap_or_default())?;
        text.map(|text| namespace.set_arena_name(index, &text))
    } else {
        with_value(row.kind, given, |value| namespace.write(target, value))
    };
    outcome
        .ok_or_else(|| Refusal::WrongType(row, given.clone()))?
        .map_err(|error| refused(namespace, row, error, given))
}

/// Returns why a value is refused, with the bytes held if they are the reason.
fn refused(namespace: &dyn Namespace, row: &'static Fact, error: Error, given: &Json) -> Refusal {
    let held = namespace.find("limit.held").and_then(|held| namespace.read(&held));
    match (error, held) {
        (Error::Busy, Ok(Value::Size(held))) => Refusal::BelowHeld(row, given.clone(), held),
        _ => Refusal::write(row, error, given),
    }
}

/// Returns an answer with a value. As text, it holds only the value that was asked for.
fn written(format: Format, value: &Json) -> Answer {
    let text = match format {
        Format::Json => format!("{value}\n"),
        Format::Text => list::plain(value),
    };
    body(format.kind(), text)
}

#[cfg(test)]
#[path = "ctl_test.rs"]
mod tests;
