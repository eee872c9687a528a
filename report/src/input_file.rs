//! Reads the files that the user names. They may be pipes and devices, which need have no end.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// The most bytes of a file that is read into memory.
const LONGEST: u64 = 1 << 30;
const LONGER: &str = "it has more than 1 GiB";
/// The most bytes of a pipe that is read in parts. What is kept of them may take more.
const LONGEST_PIPE: u64 = 256 << 20;
const LONGER_PIPE: &str = "it has more than 256 MiB, as only a regular file may have";
/// How many bytes tell what a file is.
const BEGIN: usize = 64;

/// Opens a file. One that has no length, as a pipe, is read up to 256 MiB, and what comes then is
/// an error.
///
/// # Errors
///
/// The file cannot be opened.
pub fn open(path: &Path) -> Result<InputFile> {
    let file = File::open(path)?;
    let is_regular = file.metadata()?.is_file();
    let left = if is_regular { u64::MAX } else { LONGEST_PIPE };
    Ok(InputFile(Bounded { source: file, left, longer: LONGER_PIPE }))
}

/// Reads a file of at most 1 GiB. If it cannot be what is wanted, as `can_be` tells from its first
/// 64 bytes, these alone are returned.
///
/// # Errors
///
/// The file cannot be read, or has more than 1 GiB.
pub fn read(path: &Path, can_be: impl FnOnce(&[u8]) -> bool) -> Result<Vec<u8>> {
    read_from(File::open(path)?, can_be)
}

/// As [`read`], of an open file.
pub(crate) fn read_from(file: File, can_be: impl FnOnce(&[u8]) -> bool) -> Result<Vec<u8>> {
    let status = file.metadata()?;
    let mut bytes = Vec::new();
    (&file).take(BEGIN as u64).read_to_end(&mut bytes)?;
    if bytes.len() < BEGIN || !can_be(&bytes) {
        return Ok(bytes);
    }
    if status.is_file() && status.len() > LONGEST {
        return Err(Error::other(LONGER));
    }
    let left = LONGEST - BEGIN as u64;
    Bounded { source: file, left, longer: LONGER }.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An open file.
pub struct InputFile(Bounded<File>);

impl Read for InputFile {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.0.read(into)
    }
}

/// What comes from a source, up to some bytes. Where there are more, there is an error.
struct Bounded<R> {
    source: R,
    left: u64,
    /// The error.
    longer: &'static str,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let count = self.source.read(into)?;
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| Error::other(self.longer))?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_is_an_error() {
        let read = |left| {
            let mut bytes = Vec::new();
            let mut read = Bounded { source: &b"12345678"[..], left, longer: LONGER };
            let read = read.read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|error| error.to_string())
        };
        assert_eq!(read(8), Ok(b"12345678".to_vec()));
        assert_eq!(read(7), Err("it has more than 1 GiB".to_owned()));
    }

    #[test]
    fn only_the_first_bytes_are_read_of_what_cannot_be_it() {
        let read = |path: &str| read(Path::new(path), |begin| begin[0] != 0);
        assert_eq!(read("/dev/zero").expect("zeros"), [0; BEGIN]);
        assert!(read("/dev/null").expect("nothing").is_empty());
    }

    #[test]
    fn what_is_read_in_parts_has_an_end() {
        let mut zero = open(Path::new("/dev/zero")).expect("open");
        let mut part = vec![1; 1 << 20];
        for _ in 0..256 {
            assert_eq!(zero.read(&mut part).expect("zeros"), part.len());
        }
        let error = zero.read(&mut part).expect_err("more");
        assert_eq!(error.to_string(), "it has more than 256 MiB, as only a regular file may have");
    }

    #[test]
    fn a_long_file_is_refused_before_it_is_read() {
        let path = std::env::temp_dir().join(format!("lumalloc-input-{}", std::process::id()));
        File::create(&path).and_then(|file| file.set_len(LONGEST + 1)).expect("a file");
        let error = read(&path, |_| true).expect_err("too long");
        assert_eq!(error.to_string(), "it has more than 1 GiB");
        // It is not read into memory.
        assert_eq!(open(&path).expect("open").0.left, u64::MAX);
        std::fs::remove_file(&path).expect("removed");
    }
}
