//! Where a report is written: to standard output, or to a file that has its name only once it is
//! whole.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::reason;

/// Writes a text. The error says what cannot be written.
pub(super) fn write(text: &str, to: Option<&Path>) -> Result<(), String> {
    match to {
        None => to_stdout(text),
        Some(path) => {
            to_file(text, path).map_err(|error| format!("{}: {}", path.display(), reason(&error)))
        }
    }
}

fn to_stdout(text: &str) -> Result<(), String> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The reader has seen enough, as `head` has.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("standard output: {}", reason(&error))),
    }
}

fn to_file(text: &str, path: &Path) -> std::io::Result<()> {
    let present = std::fs::metadata(path);
    if present.as_ref().is_ok_and(|present| !present.is_file() && !present.is_dir()) {
        // A device or a pipe cannot be replaced.
        return File::options().write(true).open(path)?.write_all(text.as_bytes());
    }
    // A symbolic link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let partial = partial(&path);
    let written = create(&partial).and_then(|mut file| file.write_all(text.as_bytes()));
    let moved = written.and_then(|()| std::fs::rename(&partial, &path));
    if moved.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    moved
}

fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// A name of its own in the same directory.
fn partial(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}
