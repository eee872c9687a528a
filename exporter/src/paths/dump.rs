//! `POST /dump`: writes the current statistics, as text and as JSON, to the configured directory.
//!
//! Both files are of one snapshot. They are made anew: an existing file or link is never written
//! to. A file that could not be written completely is removed.
use crate::answer::{Answer, JSON, body, line};
use crate::context::Context;
use crate::format::only;
use crate::namespace::Namespace;
use crate::paths::stats::printed_text;
use crate::routes::Asked;
use hyper::StatusCode;
use lumalloc_ctl::Value;
use serde_json::json;
use std::ffi::CStr;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of one file.
const LARGEST: usize = 64 << 20;
/// The most dumps of one process in the directory.
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
    File(PathBuf, io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoDirectory => to.write_str(
                "no directory is configured for dumps: see dump_directory of the builder, and \
                 dumps:DIRECTORY in LUMALLOC_EXPORTER",
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
            Failure::File(path, error) => write!(to, "cannot write {}: {error}", path.display()),
        }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        let status = match failure {
            Failure::NoDirectory => StatusCode::NOT_FOUND,
            Failure::TooMany(_) | Failure::TooLarge(_) => StatusCode::INSUFFICIENT_STORAGE,
            Failure::NoSnapshot => StatusCode::SERVICE_UNAVAILABLE,
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
    match write_both(context.namespace, directory.as_deref()) {
        Ok([text, json]) => {
            let names = json!({ "text": text.to_string_lossy(), "json": json.to_string_lossy() });
            body(JSON, format!("{names}\n"))
        }
        Err(failure) => failure.into(),
    }
}

fn write_both(
    namespace: &dyn Namespace,
    directory: Option<&Path>,
) -> Result<[PathBuf; 2], Failure> {
    let stem = new_name(directory)?;
    let [text, json] = printed(namespace).ok_or(Failure::NoSnapshot)?;
    let paths = ["txt", "json"].map(|end| stem.with_added_extension(end));
    write(&paths[0], text.as_bytes())?;
    write(&paths[1], json.as_bytes()).inspect_err(|_| remove(&paths[0]))?;
    Ok(paths)
}

/// Returns the beginning of a path in the directory that no file has yet.
pub(super) fn new_name(directory: Option<&Path>) -> Result<PathBuf, Failure> {
    let directory = directory.ok_or(Failure::NoDirectory)?;
    let prefix = format!("lumalloc.{}.", std::process::id());
    if count(directory, &prefix)? >= 2 * MOST {
        return Err(Failure::TooMany(directory.into()));
    }
    Ok(directory.join(format!("{prefix}{}", moment())))
}

/// Counts the files of this process in the directory.
fn count(directory: &Path, prefix: &str) -> Result<usize, Failure> {
    let failed = |error| Failure::File(directory.into(), error);
    let files = fs::read_dir(directory).map_err(failed)?.filter_map(Result::ok);
    let is_ours =
        |file: &fs::DirEntry| file.file_name().as_encoded_bytes().starts_with(prefix.as_bytes());
    Ok(files.filter(is_ours).count())
}

/// Returns the text and the JSON of one snapshot.
fn printed(namespace: &dyn Namespace) -> Option<[String; 2]> {
    const AGAIN: [&CStr; 2] = [c"s", c"Js"];
    let epoch = namespace.find("epoch").ok()?;
    let mut left = TRIES;
    loop {
        namespace.write(&epoch, Value::U64(1)).ok()?;
        let before = namespace.read(&epoch).ok()?;
        let both = AGAIN.map(|letters| printed_text(namespace, letters));
        left -= 1;
        if left == 0 || namespace.read(&epoch).ok()? == before {
            return Some(both);
        }
    }
}

/// Returns a name that was not used before: milliseconds since 1970, and a number.
fn moment() -> String {
    static DUMPS: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{}", since.as_millis(), DUMPS.fetch_add(1, Relaxed))
}

/// Writes a file that does not exist yet.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.len() > LARGEST {
        return Err(Failure::TooLarge(bytes.len()));
    }
    let failed = |error| Failure::File(path.into(), error);
    let mut options = OpenOptions::new();
    // A link at this path exists, too.
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        remove(path);
        failed(error)
    })
}

/// Removes an incomplete file. If that fails too, nothing more can be done.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
#[path = "dump_test.rs"]
mod tests;
