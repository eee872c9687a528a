//! The bytes of a file at any place, and the numbers that are written in them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::error::reason;
use crate::input_file;
use crate::path_text;

/// How many bytes are read at a time.
const WINDOW: usize = 16 << 10;

/// A file. What cannot be read at any place, as a pipe, is read into memory.
pub(crate) enum Source {
    /// A file and its size when it was opened.
    File(File, u64),
    /// All bytes.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file. What is read into memory is read whole only if it begins with `magic`.
    pub(super) fn open(path: &Path, magic: &[u8]) -> std::io::Result<Source> {
        let file = File::open(path)?;
        let status = file.metadata()?;
        if status.is_file() {
            return Ok(Source::File(file, status.len()));
        }
        Ok(Source::Memory(input_file::read_from(file, |begin| begin.starts_with(magic))?))
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Source::File(_, size) => *size,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Reads bytes from a place; fewer than asked for if the file ends there.
    fn read(&self, at: u64, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Source::File(file, _) => file.read_at(into, at),
            Source::Memory(bytes) => {
                let begin = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                let count = into.len().min(bytes.len() - begin);
                into[..count].copy_from_slice(&bytes[begin..begin + count]);
                Ok(count)
            }
        }
    }
}

/// Why a value cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There are no more bytes.
    End,
    /// The bytes cannot be what they should be.
    Damaged(String),
    /// The system's reason.
    Unreadable(String),
}

impl Trouble {
    /// What is wrong with the bytes.
    pub(super) fn damaged(what: impl Into<String>) -> Trouble {
        Trouble::Damaged(what.into())
    }
}

/// The values in a part of a file, one after the other.
pub(crate) struct Input<'a> {
    source: &'a Source,
    /// The place of the byte behind the window.
    next: u64,
    end: u64,
    window: Vec<u8>,
    place: usize,
}

impl<'a> Input<'a> {
    /// The bytes from one place up to another.
    pub(super) fn new(source: &'a Source, from: u64, end: u64) -> Input<'a> {
        Input { source, next: from, end, window: Vec::new(), place: 0 }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> u64 {
        self.end.saturating_sub(self.next) + (self.window.len() - self.place) as u64
    }

    /// Reads a byte.
    pub(super) fn byte(&mut self) -> Result<u8, Trouble> {
        if self.place == self.window.len() {
            self.refill()?;
        }
        let byte = self.window[self.place];
        self.place += 1;
        Ok(byte)
    }

    /// Reads the next window, of at least one byte.
    fn refill(&mut self) -> Result<(), Trouble> {
        let left = self.end.saturating_sub(self.next);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW);
        self.window.resize(size, 0);
        let read = self.source.read(self.next, &mut self.window);
        let count = read.map_err(|error| Trouble::Unreadable(reason(&error)))?;
        self.window.truncate(count);
        self.place = 0;
        self.next += count as u64;
        if count == 0 { Err(Trouble::End) } else { Ok(()) }
    }

    /// Reads some bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Trouble> {
        if count > self.left() {
            return Err(Trouble::End);
        }
        (0..count).map(|_| self.byte()).collect()
    }

    /// Reads a number: seven bits in each byte, the lowest first.
    pub(super) fn number(&mut self) -> Result<u64, Trouble> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && byte > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Trouble::damaged("a number has more than 64 bits"))
    }

    /// Reads a difference and adds it to a value.
    pub(super) fn signed(&mut self, to: u64) -> Result<u64, Trouble> {
        let number = self.number()?;
        let difference = (number >> 1) ^ (number & 1).wrapping_neg();
        Ok(to.wrapping_add(difference))
    }

    /// Reads a text to be shown.
    pub(super) fn text(&mut self) -> Result<String, Trouble> {
        Ok(String::from_utf8_lossy(&self.counted()?).into_owned())
    }

    /// Reads a path, and keeps all its bytes.
    pub(super) fn path(&mut self) -> Result<String, Trouble> {
        Ok(path_text::text(&self.counted()?).into_owned())
    }

    /// Reads some bytes, which follow their number.
    fn counted(&mut self) -> Result<Vec<u8>, Trouble> {
        let count = self.number()?;
        self.bytes(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{number, signed};
    use super::*;
    use proptest::prelude::*;

    fn numbers(bytes: &[u8]) -> Result<u64, Trouble> {
        let source = Source::Memory(bytes.to_vec());
        Input::new(&source, 0, source.len()).number()
    }

    #[test]
    fn numbers_have_at_most_64_bits() {
        assert_eq!(numbers(&[0x7f]), Ok(127));
        assert_eq!(numbers(&[0xac, 0x02]), Ok(300));
        assert_eq!(numbers(&[]), Err(Trouble::End));
        assert_eq!(numbers(&[0x80]), Err(Trouble::End));
        let most = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(numbers(&most), Ok(u64::MAX));
        let too_many = Err(Trouble::damaged("a number has more than 64 bits"));
        assert_eq!(numbers(&[&[0xff; 9][..], &[2]].concat()), too_many);
        assert_eq!(numbers(&[0x80; 11]), too_many);
    }

    #[test]
    fn a_text_is_not_longer_than_what_is_left() {
        let source = Source::Memory(vec![2, b'a', b'b', 200, 200, 200, 200, 1, b'c']);
        let mut input = Input::new(&source, 0, source.len());
        assert_eq!(input.text(), Ok("ab".to_owned()));
        assert_eq!((input.text(), input.left()), (Err(Trouble::End), 1));
    }

    #[test]
    fn paths_keep_all_bytes_and_texts_are_shown() {
        let source = Source::Memory([3, b'/', 0xff, b'b'].repeat(2));
        let mut input = Input::new(&source, 0, source.len());
        assert_eq!(input.path(), Ok("/\\377b".to_owned()));
        assert_eq!(input.text(), Ok("/\u{fffd}b".to_owned()));
    }

    #[test]
    fn a_file_is_read_in_windows() {
        let path = std::env::temp_dir().join(format!("lumalloc-source-{}", std::process::id()));
        let bytes: Vec<u8> = (0..WINDOW * 2 + 5).map(|at| at as u8).collect();
        std::fs::write(&path, &bytes).expect("written");
        let source = Source::open(&path, b"").expect("opened");
        std::fs::remove_file(&path).expect("removed");
        let mut input = Input::new(&source, 3, source.len());
        assert_eq!(input.left(), bytes.len() as u64 - 3);
        assert_eq!(input.bytes(input.left()).expect("read"), bytes[3..]);
        assert_eq!(input.byte(), Err(Trouble::End));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in proptest::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            let mut last = 0;
            for value in &values {
                number(&mut bytes, *value);
                signed(&mut bytes, last, *value);
                last = *value;
            }
            let source = Source::Memory(bytes);
            let mut input = Input::new(&source, 0, source.len());
            let mut last = 0;
            for value in &values {
                prop_assert_eq!(input.number(), Ok(*value));
                prop_assert_eq!(input.signed(last), Ok(*value));
                last = *value;
            }
            prop_assert_eq!(input.left(), 0);
        }
    }
}
