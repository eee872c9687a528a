//! The facts of an ELF file that decide whether preloading works.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// `e_type` of a shared object (and of a position-independent executable).
pub(crate) const SHARED_OBJECT: u16 = 3;

const INTERPRETER_HEADER: u32 = 3;

/// The facts in the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elf {
    /// 1 is 32 bit, 2 is 64 bit.
    pub(crate) class: u8,
    /// 1 is little-endian, 2 is big-endian.
    pub(crate) byte_order: u8,
    /// `e_machine`.
    pub(crate) machine: u16,
    /// `e_type`.
    pub(crate) kind: u16,
    /// Whether a program header names a loader. Without a loader, `LD_PRELOAD` is not read.
    pub(crate) has_interpreter: bool,
}

impl Elf {
    /// Returns the facts of the file, or `None` if it is not a well-formed ELF file.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        Self::parse(&mut File::open(path)?)
    }

    /// Whether both files run on the same kind of processor under the same loader.
    pub(crate) fn same_machine(&self, other: &Self) -> bool {
        (self.class, self.byte_order, self.machine)
            == (other.class, other.byte_order, other.machine)
    }

    fn parse(file: &mut (impl Read + Seek)) -> io::Result<Option<Self>> {
        let mut header = Vec::with_capacity(64);
        file.by_ref().take(64).read_to_end(&mut header)?;
        let Some(fields) = Fields::of(&header) else { return Ok(None) };
        // Offsets of e_phoff, e_phentsize and e_phnum in the two layouts.
        let (table, entry_size, count) = if fields.class == 2 {
            (fields.long(32), fields.half(54), fields.half(56))
        } else {
            (u64::from(fields.word(28)), fields.half(42), fields.half(44))
        };
        let mut has_interpreter = false;
        for index in 0..u64::from(count) {
            let Some(at) = table.checked_add(index * u64::from(entry_size)) else {
                return Ok(None);
            };
            let mut kind = [0; 4];
            file.seek(SeekFrom::Start(at))?;
            if file.read_exact(&mut kind).is_err() {
                return Ok(None);
            }
            has_interpreter |= fields.number(&kind) == u64::from(INTERPRETER_HEADER);
        }
        Ok(Some(Self {
            class: fields.class,
            byte_order: fields.byte_order,
            machine: fields.half(18),
            kind: fields.half(16),
            has_interpreter,
        }))
    }
}

/// The numbers of a complete ELF header, in the byte order of the header.
struct Fields<'a> {
    bytes: &'a [u8],
    class: u8,
    byte_order: u8,
}

impl<'a> Fields<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let (class, byte_order) = (*bytes.get(4)?, *bytes.get(5)?);
        let length = match class {
            1 => 52,
            2 => 64,
            _ => return None,
        };
        let valid =
            bytes.starts_with(b"\x7fELF") && matches!(byte_order, 1 | 2) && bytes.len() >= length;
        valid.then_some(Self { bytes, class, byte_order })
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
        if self.byte_order == 1 {
            bytes.iter().rev().fold(0, add)
        } else {
            bytes.iter().fold(0, add)
        }
    }

    fn half(&self, at: usize) -> u16 {
        self.number(&self.bytes[at..at + 2]) as u16
    }

    fn word(&self, at: usize) -> u32 {
        self.number(&self.bytes[at..at + 4]) as u32
    }

    fn long(&self, at: usize) -> u64 {
        self.number(&self.bytes[at..at + 8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns a 64-bit little-endian file with the given program header types.
    fn file(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16] = 2;
        bytes[18] = 62;
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = types.len() as u8;
        for kind in types {
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&[0; 52]);
        }
        bytes
    }

    fn parse(bytes: Vec<u8>) -> Option<Elf> {
        Elf::parse(&mut Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn an_interpreter_is_found() {
        let dynamic = parse(file(&[6, 3, 1])).unwrap();
        assert!(dynamic.has_interpreter);
        assert_eq!((dynamic.class, dynamic.machine, dynamic.kind), (2, 62, 2));
        assert!(!parse(file(&[6, 1])).unwrap().has_interpreter);
    }

    #[test]
    fn the_32_bit_big_endian_layout_is_read_too() {
        let mut bytes = vec![0; 52];
        bytes[..6].copy_from_slice(b"\x7fELF\x01\x02");
        bytes[17] = 2;
        bytes[19] = 20;
        bytes[31] = 52;
        bytes[43] = 32;
        bytes[45] = 1;
        bytes.extend_from_slice(&3u32.to_be_bytes());
        let elf = parse(bytes).unwrap();
        assert_eq!((elf.class, elf.machine, elf.has_interpreter), (1, 20, true));
    }

    #[test]
    fn rubbish_is_not_elf() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF\x09\x01"] {
            assert_eq!(parse(bytes.to_vec()), None);
        }
        let mut cut = file(&[6, 3]);
        cut.truncate(100);
        assert_eq!(parse(cut), None);
        let mut far = file(&[3]);
        far[32..40].fill(0xff);
        assert!(Elf::parse(&mut Cursor::new(far)).map_or(true, |elf| elf.is_none()));
    }

    #[test]
    fn this_very_test_is_an_elf_file() {
        let own = Elf::read(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(own.same_machine(&own));
    }
}
