//! Opens the files of programs and libraries. Their paths stand in profiles, so they may lead to
//! anything.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::reason;

/// A longer file is not read. Debug information with 32-bit offsets is no longer.
const LONGEST: u64 = 4 << 30;

/// Opens a regular file. The error says what is wrong.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    let text = |error: io::Error| reason(&error);
    // A pipe would be waited for.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(text)?;
    let status = file.metadata().map_err(text)?;
    if status.is_dir() {
        return Err(text(io::Error::from_raw_os_error(libc::EISDIR)));
    }
    if !status.is_file() {
        return Err("it is no regular file".into());
    }
    if status.len() > LONGEST {
        return Err("it has more than 4 GiB".into());
    }
    Ok(file)
}

/// Returns the contents of a regular file. The error says what is wrong.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    // What has no length, as files in /proc, may have no end either.
    file.take(LONGEST).read_to_end(&mut bytes).map_err(|error| reason(&error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_regular_files_are_read() {
        let directory = std::env::temp_dir().join(format!("program-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let pipe = directory.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let long = directory.join("long");
        File::create(&long).and_then(|file| file.set_len(LONGEST + 1)).expect("a file");
        let error = |path: &Path| read(path).expect_err("no file");
        assert_eq!(error(&pipe), "it is no regular file");
        assert_eq!(error(Path::new("/dev/zero")), "it is no regular file");
        assert_eq!(error(&directory), "is a directory");
        assert_eq!(error(&long), "it has more than 4 GiB");
        assert_eq!(error(&directory.join("none")), "no such file or directory");
        let small = directory.join("small");
        std::fs::write(&small, "text").expect("a file");
        assert_eq!(read(&small).expect("the file"), b"text");
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
