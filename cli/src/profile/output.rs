//! Where a report is written: to standard output, or to a file that has its name only once it is
//! whole.

use std::fs::{File, Metadata, Permissions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use lumalloc_report::terminal::escaped;
use serde::Serialize;

use super::descriptor;
use super::unfinished::Unfinished;
use crate::failure::reason;
use crate::standard_streams;

/// As many symbolic links as Linux follows.
const MOST_LINKS: usize = 40;

/// Writes a text. The error says what cannot be written.
pub(super) fn write(text: &str, to: Option<&Path>) -> Result<(), String> {
    stream(to, |out| Ok(out.write_all(text.as_bytes())?))
}

/// Why a text is not written to its end.
pub(crate) enum Stop {
    /// It cannot be made: the message.
    Input(String),
    /// It cannot be written.
    Output(std::io::Error),
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

/// Writes a text as it is made. The error says what went wrong.
pub(crate) fn stream(
    to: Option<&Path>,
    make: impl FnOnce(&mut dyn Write) -> Result<(), Stop>,
) -> Result<(), String> {
    let (written, name) = match to {
        None => (to_stdout(make), "standard output".to_owned()),
        Some(path) => (to_file(path, make), path.display().to_string()),
    };
    written.map_err(|stop| match stop {
        Stop::Input(message) => message,
        Stop::Output(error) => format!("{name}: {}", reason(&error)),
    })
}

/// Writes a value as JSON to standard output, or else the text that `text` makes of it. The error
/// says what went wrong.
pub(crate) fn json_or(
    json: bool,
    value: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), String> {
    stream(None, |out| {
        if !json {
            return Ok(text(out)?);
        }
        let value = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
        Ok(writeln!(out, "{}", escaped(value))?)
    })
}

fn to_stdout(make: impl FnOnce(&mut dyn Write) -> Result<(), Stop>) -> Result<(), Stop> {
    match standard_streams::output().map_err(Stop::Output).and_then(|out| make_into(out, make)) {
        // The reader has seen enough, as `head` has.
        Err(Stop::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn to_file(path: &Path, make: impl FnOnce(&mut dyn Write) -> Result<(), Stop>) -> Result<(), Stop> {
    // A new file in place of a redirected one would lose what others write to it.
    if let Some(number) = links(path).find_map(|path| descriptor::of(&path)) {
        return make_into(descriptor::open(number)?, make);
    }
    let present = std::fs::metadata(path);
    if present.as_ref().is_ok_and(|present| !present.is_file() && !present.is_dir()) {
        // A device or a pipe cannot be replaced.
        return make_into(File::options().write(true).open(path)?, make);
    }
    if path.is_dir() {
        return Err(Stop::Output(ErrorKind::IsADirectory.into()));
    }
    // The file that a link leads to need not be there yet. The link stays one.
    let path = links(path).last().unwrap_or_else(|| path.to_owned());
    let unfinished = Unfinished::beside(&path)?;
    if let Ok(present) = present {
        // Nothing is written yet that somebody else could read.
        let _ = alike(unfinished.file(), &present);
    }
    make_into(unfinished.file(), make)?;
    Ok(unfinished.finish(&path)?)
}

fn make_into(
    out: impl Write,
    make: impl FnOnce(&mut dyn Write) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut out = BufWriter::new(out);
    let made = make(&mut out);
    // What was made before an error is written too.
    let flushed = out.flush();
    made?;
    Ok(flushed?)
}

/// Refuses an output that would replace what is read: paths, and what they are.
pub(crate) fn check<'a>(
    output: Option<&Path>,
    inputs: impl Iterator<Item = (&'a PathBuf, &'a str)>,
) -> Result<(), String> {
    // A link to a file is that file. A device is written to, and not replaced.
    let file = |path: &Path| {
        let status = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some((status.dev(), status.ino()))
    };
    let Some(output) = output.and_then(file) else { return Ok(()) };
    let mut inputs = inputs.filter(|(input, _)| file(input) == Some(output));
    inputs.next().map_or(Ok(()), |(input, what)| {
        Err(format!("{}: the output would replace {what}", input.display()))
    })
}

/// A path, and one after the other what it leads to as a symbolic link.
fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let next = |path: &PathBuf| {
        let next = std::fs::read_link(path).ok()?;
        Some(path.parent().unwrap_or(Path::new("")).join(next))
    };
    std::iter::successors(Some(path.to_owned()), next).take(MOST_LINKS + 1)
}

/// Gives a new file the owner and the permissions of the one that it replaces. If the system
/// refuses the group, this one and all others get the rights that both had: nobody gets more.
fn alike(file: &File, present: &Metadata) -> std::io::Result<()> {
    let owners = [Some(present.uid()), None];
    let has_group = owners.iter().any(|owner| fchown(file, *owner, Some(present.gid())).is_ok());
    let mode = present.mode() & 0o777;
    let both = mode >> 3 & mode & 0o7;
    let mode = if has_group { mode } else { mode & 0o700 | both << 3 | both };
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::chown;

    #[test]
    #[allow(unsafe_code, reason = "the standard library does not change the user of a thread")]
    fn an_output_of_another_group_gives_it_no_rights() {
        const NOBODY: u32 = 65534;
        let directory = std::env::temp_dir().join(format!("lumalloc-out-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        let path = directory.join("out");
        for (mode, expected) in [(0o640, 0o600), (0o664, 0o644), (0o604, 0o600), (0o755, 0o755)] {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            if chown(&path, Some(1), Some(1)).is_err() {
                // Only root can make a file whose group it cannot give to a file as another user.
                break;
            }
            let path = path.clone();
            let as_nobody = std::thread::spawn(move || {
                // SAFETY: the calls change the user of this thread for files alone.
                unsafe { libc::setfsgid(NOBODY) };
                // SAFETY: as above.
                unsafe { libc::setfsuid(NOBODY) };
                write("x", Some(&path)).unwrap();
                let status = std::fs::metadata(&path).unwrap();
                (status.uid(), status.gid(), status.mode() & 0o7777)
            });
            assert_eq!(as_nobody.join().unwrap(), (NOBODY, NOBODY, expected));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
