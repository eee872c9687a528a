//! Keys by name, as JSON values.
use super::error::CtlError;
use super::key::{explain, wrong_type};
use crate::tree_walk::{self, Branch};
use lumalloc_namespace::entry::Entry;
use lumalloc_namespace::error::Error;
use lumalloc_namespace::key_table;
use lumalloc_namespace::tree::{self, Mib};
use lumalloc_namespace::value::{Type, Value as Plain};
use serde_json::{Map, Value};
use std::ffi::CString;

/// Reads a key by its name, or a branch with all that can be read below it. Of an index in a
/// branch, the numbers from 0 on are read.
///
/// Numbers and pointers become JSON numbers, texts strings. Keys without a value are left out of a
/// branch.
///
/// # Errors
/// [`CtlError::NoSuchName`]; for a single key also the errors of reading it.
///
/// ```
/// use lumalloc_ctl::read_json;
/// assert_eq!(read_json("arenas.bin.1.size").unwrap(), 16);
/// assert_eq!(read_json("arenas.bin.1").unwrap()["nregs"], 4096);
/// assert!(read_json("opt").unwrap()["dirty_decay_ms"].is_i64());
/// let error = read_json("stats.alocated").unwrap_err();
/// assert_eq!(error.to_string(), "no key is named \"stats.alocated\"");
/// ```
pub fn read_json(name: &str) -> Result<Value, CtlError> {
    if let Ok(mib) = tree::complete(name.as_bytes()) {
        if let Ok(entry) = Entry::find(mib.as_slice()) {
            let value = entry.read().map_err(|error| explain(entry.row, "read", error))?;
            return Ok(to_json(value));
        }
        if let Some(branch) = tree_walk::branch(mib.as_slice()) {
            return Ok(read_branch(branch, mib));
        }
    }
    Err(CtlError::NoSuchName { name: name.into() })
}

/// Reads all keys below a node that can be read.
fn read_branch(branch: Branch, mib: Mib) -> Value {
    let mut object = Map::new();
    for (name, number) in branch.children(mib.as_slice()) {
        let Some(below) = mib.with(number) else { continue };
        if let Ok(entry) = Entry::find(below.as_slice()) {
            if let Ok(value) = entry.read() {
                object.insert(name, to_json(value));
            }
        } else if let Some(branch) = tree_walk::branch(below.as_slice()) {
            match read_branch(branch, below) {
                Value::Object(below) if below.is_empty() => {}
                below => drop(object.insert(name, below)),
            }
        }
    }
    Value::Object(object)
}

/// A value as JSON: numbers, texts, booleans; a pointer is a number.
///
/// ```
/// use lumalloc_ctl::{Value, json::to_json};
/// assert_eq!(to_json(Value::Ssize(-1)), serde_json::json!(-1));
/// ```
#[must_use]
pub fn to_json(value: Plain<'_>) -> Value {
    match value {
        Plain::Bool(value) => value.into(),
        Plain::Unsigned(value) | Plain::U32(value) => value.into(),
        Plain::U64(value) => value.into(),
        Plain::I64(value) => value.into(),
        Plain::Size(value) => value.into(),
        Plain::Ssize(value) => value.into(),
        Plain::Str(text) => text.to_string_lossy().into(),
        Plain::Pointer(value) => value.addr().into(),
    }
}

/// Writes a key by its name. `Null` triggers an action.
///
/// # Errors
/// [`CtlError::NoSuchName`], [`CtlError::WrongType`], and the errors of the key.
///
/// ```
/// use lumalloc_ctl::write_json;
/// use serde_json::Value;
/// write_json("epoch", &1.into()).unwrap();
/// write_json("arena.0.purge", &Value::Null).unwrap();
/// let error = write_json("background_thread", &"on".into()).unwrap_err();
/// assert_eq!(error.to_string(), "background_thread: its type is bool, not \"on\" (EINVAL)");
/// let error = write_json("version", &"2".into()).unwrap_err();
/// assert_eq!(error.to_string(), "version: cannot write it: its access is r- (EPERM)");
/// ```
pub fn write_json(name: &str, value: &Value) -> Result<(), CtlError> {
    let unknown = |_| CtlError::NoSuchName { name: name.into() };
    let mib = tree::complete(name.as_bytes()).map_err(unknown)?;
    let entry = Entry::find(mib.as_slice()).map_err(unknown)?;
    if let (lumalloc_namespace::Access::Trigger(act), Value::Null) = (entry.row.access, value) {
        return act(entry.mib).map_err(|error| explain(entry.row, "do", error));
    }
    if entry.row.access.writer().is_none() {
        return Err(explain(entry.row, "write", Error::NotPermitted));
    }
    with_value(entry.row.kind, value, |value| entry.write(value))
        .ok_or_else(|| wrong_type(entry.row, value.to_string()))?
        .map_err(|error| explain(entry.row, "write", error))
}

/// Hands JSON to `take` as a value of a type. Returns `None` if the JSON is of another type or does
/// not fit. Pointers are not made from JSON.
///
/// ```
/// use lumalloc_ctl::{Type, Value, json::with_value};
/// let is_five = |value: Value| value == Value::Unsigned(5);
/// assert_eq!(with_value(Type::Unsigned, &5.into(), is_five), Some(true));
/// assert_eq!(with_value(Type::Unsigned, &(-5).into(), is_five), None);
/// ```
pub fn with_value<R>(kind: Type, value: &Value, take: impl FnOnce(Plain<'_>) -> R) -> Option<R> {
    let text = value.as_str().and_then(|text| CString::new(text).ok());
    let unsigned = value.as_u64();
    let signed = value.as_i64();
    let u32 = unsigned.and_then(|number| u32::try_from(number).ok());
    let value = match kind {
        Type::Bool => value.as_bool().map(Plain::Bool),
        Type::Unsigned => u32.map(Plain::Unsigned),
        Type::U32 => u32.map(Plain::U32),
        Type::U64 => unsigned.map(Plain::U64),
        Type::I64 => signed.map(Plain::I64),
        Type::Size => unsigned.and_then(|number| usize::try_from(number).ok()).map(Plain::Size),
        Type::Ssize => signed.and_then(|number| isize::try_from(number).ok()).map(Plain::Ssize),
        Type::Str => text.as_deref().map(Plain::Str),
        Type::Void | Type::Pointer(_) | Type::Layout(_) => None,
    };
    value.map(take)
}

/// The names of all keys, `<i>` for an index.
///
/// ```
/// assert!(lumalloc_ctl::json::names().contains(&"stats.allocated".to_string()));
/// ```
#[must_use]
pub fn names() -> Vec<String> {
    key_table::rows().iter().map(|row| row.name().into()).collect()
}
