//! `POST /dump`: writes the current statistics, as text and as JSON, to the configured directory,
//! and with the profiler the heap profile.
//!
//! Both files of statistics are of one snapshot. All files are made anew: an existing file or link
//! is never written to. A file has its name once it is whole. Until then `.tmp` follows the name. A
//! file that could not be written completely is removed.
use crate::answer::{Answer, JSON, body, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::format::only;
use crate::heap_profile;
use crate::namespace::Namespace;
use crate::paths::stats::{JSON_OF_ARENA, TEXT_OF_ARENA, printed_text};
use hyper::StatusCode;
use lumalloc_ctl::Value;
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of one file.
const LARGEST: usize = 64 << 20;
/// The most dumps and recordings of one process in the directory.
const MOST: usize = 64;
/// How often a snapshot is taken at most, if others replace it.
const TRIES: usize = 3;

/// Why nothing was written.
#[derive(Debug)]
pub(super) enum Failure {
    NoDirectory,
    TooMany(PathBuf),
    TooLarge(usize),
    NoSnapshot,
    NoMemory,
    Profile(heap_profile::Failure),
    File(PathBuf, io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoDirectory => to.write_str(
                "no directory is configured for files: name one with dumps:DIRECTORY in \
                 LUMALLOC_EXPORTER, --dump-directory of lumalloc serve, or dump_directory of \
                 the builder",
            ),
            Failure::TooMany(directory) => write!(
                to,
                "{MOST} dumps of this process lie in {}: remove some first",
                directory.display()
            ),
            Failure::TooLarge(bytes) => {
                write!(to, "the statistics have {bytes} bytes; {LARGEST} are written at most")
            }
            Failure::NoSnapshot => to.write_str("no snapshot can be taken"),
            Failure::NoMemory => to.write_str("there is no memory for the statistics"),
            Failure::Profile(failure) => failure.fmt(to),
            Failure::File(path, error) => write!(to, "cannot write {}: {error}", path.display()),
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        let status = match failure {
            Failure::Profile(failure) => return failure.into(),
            Failure::NoDirectory => StatusCode::CONFLICT,
            Failure::TooMany(_) | Failure::TooLarge(_) => StatusCode::INSUFFICIENT_STORAGE,
            Failure::NoSnapshot | Failure::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
            Failure::File(..) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        line(status, failure)
    }
}

/// Answers `POST /dump`.
pub(crate) fn dump(context: &Context, asked: &Asked) -> Answer {
    if let Err(bad) = only(asked, &[]) {
        return bad.into();
    }
    let directory = context.settings.load().dump_directory.clone();
    match write_all(context, directory.as_deref()) {
        Ok(names) => body(JSON, format!("{names}\n")),
        Err(failure) => failure.into(),
    }
}

/// Writes the files, and returns their paths by what they are. If one fails, none stays.
fn write_all(context: &Context, directory: Option<&Path>) -> Result<Json, Failure> {
    let stem = new_name(directory)?;
    let profile = profile(context.namespace)?;
    if !context.memory.has_for_arenas(TEXT_OF_ARENA + JSON_OF_ARENA) {
        return Err(Failure::NoMemory);
    }
    let [text, json] = printed(context.namespace)?;
    let [text, json] = [text, json].map(|text| Some(text.into_bytes()));
    let files = [("text", "txt", text), ("json", "json", json), ("profile", "pb.gz", profile)];
    let mut written: Vec<PathBuf> = Vec::new();
    let mut names = serde_json::Map::new();
    for (what, end, bytes) in files {
        let path = bytes.as_ref().map(|_| stem.with_added_extension(end));
        if let (Some(path), Some(bytes)) = (&path, bytes) {
            write(path, &bytes).inspect_err(|_| written.iter().for_each(|path| remove(path)))?;
            written.push(path.clone());
        }
        names.insert(what.to_owned(), json!(path.map(|path| path.to_string_lossy().into_owned())));
    }
    Ok(Json::Object(names))
}

/// The heap profile for pprof, if the process has one.
fn profile(namespace: &dyn Namespace) -> Result<Option<Vec<u8>>, Failure> {
    match heap_profile::compressed(namespace) {
        Ok(profile) => Ok(Some(profile)),
        Err(heap_profile::Failure::Off) => Ok(None),
        Err(failure) => Err(Failure::Profile(failure)),
    }
}

/// Returns the beginning of a path in the directory that no file has yet.
pub(super) fn new_name(directory: Option<&Path>) -> Result<PathBuf, Failure> {
    /// The first moment of this process. An earlier process of its number left earlier files, as
    /// the first process of a container did that was started again.
    static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
    let directory = directory.ok_or(Failure::NoDirectory)?;
    let now = millis();
    let first = FIRST.fetch_min(now, Relaxed).min(now);
    let prefix = format!("lumalloc.{}.", std::process::id());
    if count(directory, &prefix, first)? >= MOST {
        return Err(Failure::TooMany(directory.into()));
    }
    Ok(directory.join(format!("{prefix}{now}.{}", number())))
}

/// Counts the dumps and recordings of this process in the directory, each of which may have several
/// files: `<prefix><milliseconds>.<number>.<end>`.
fn count(directory: &Path, prefix: &str, first: u64) -> Result<usize, Failure> {
    let failed = |error| Failure::File(directory.into(), error);
    let files = fs::read_dir(directory).map_err(failed)?.filter_map(Result::ok);
    let stem = |file: fs::DirEntry| {
        let name = file.file_name().into_string().ok()?;
        let mut parts = name.strip_prefix(prefix)?.split('.');
        let millis = parts.next()?.parse::<u64>().ok().filter(|millis| *millis >= first)?;
        Some((millis, parts.next()?.to_owned()))
    };
    Ok(files.filter_map(stem).collect::<HashSet<_>>().len())
}

/// Returns the text and the JSON of one snapshot.
fn printed(namespace: &dyn Namespace) -> Result<[String; 2], Failure> {
    let none = |_| Failure::NoSnapshot;
    let epoch = namespace.find("epoch").map_err(none)?;
    let text = |letters| printed_text(namespace, letters).map_err(|_| Failure::NoMemory);
    let mut left = TRIES;
    loop {
        namespace.write(&epoch, Value::U64(1)).map_err(none)?;
        let before = namespace.read(&epoch).map_err(none)?;
        let both = [text(c"s")?, text(c"Js")?];
        left -= 1;
        if left == 0 || namespace.read(&epoch).map_err(none)? == before {
            return Ok(both);
        }
    }
}

/// Returns the milliseconds since 1970.
fn millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Returns a number that was not used before.
fn number() -> u64 {
    static DUMPS: AtomicU64 = AtomicU64::new(0);
    DUMPS.fetch_add(1, Relaxed)
}

/// Writes a file that does not exist yet. It has its name once it is whole.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.len() > LARGEST {
        return Err(Failure::TooLarge(bytes.len()));
    }
    let failed = |error| Failure::File(path.into(), error);
    let unfinished = path.with_added_extension("tmp");
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&unfinished);
    let mut file = file.map_err(failed)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.and_then(|()| give_name(&unfinished, path)).map_err(|error| {
        remove(&unfinished);
        failed(error)
    })
}

/// Gives a file its name, which no other file has. A link at this path exists, too.
fn give_name(unfinished: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Ok(()) => fs::remove_file(unfinished),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The file system has no hard links.
        Err(_) => fs::rename(unfinished, path),
    }
}

/// Removes an incomplete file. If that fails too, nothing more can be done.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
#[path = "dump_test.rs"]
mod tests;
