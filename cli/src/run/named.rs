//! The names in a dynamically linked program: its loader, and the shared objects that it needs.
//!
//! Only files with 64-bit little-endian headers are read, as all are for which there is a library.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER_SIZE: usize = 64;
const PROGRAM_HEADER_SIZE: usize = 56;
const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const LOADER: u32 = 3;
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
/// The longest name that is read, and the longest table of the dynamic section.
const LONGEST_NAME: usize = 256;
const LONGEST_TABLE: usize = 1 << 16;

/// The last parts of the paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) loader: String,
    pub(crate) needed: Vec<String>,
}

/// A program header.
struct Part {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Named {
    /// Returns the names, none of a file that is no such program.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let parts = parts(&file)?;
        let mut named = Self::default();
        if let Some(part) = parts.iter().find(|part| part.kind == LOADER) {
            named.loader = name_at(&file, part.offset)?;
        }
        let Some(table) = parts.iter().find(|part| part.kind == DYNAMIC) else { return Ok(named) };
        let size = usize::try_from(table.size).unwrap_or(LONGEST_TABLE).min(LONGEST_TABLE);
        let table = bytes_at(&file, table.offset, size)?;
        let entries = table.chunks_exact(16).map(|entry| (long(entry, 0), long(entry, 8)));
        let entries: Vec<(u64, u64)> = entries.take_while(|&(tag, _)| tag != 0).collect();
        let strings = entries.iter().find(|&&(tag, _)| tag == STRINGS).map(|&(_, address)| address);
        let Some(strings) = strings.and_then(|address| offset_of(&parts, address)) else {
            return Ok(named);
        };
        for &(_, at) in entries.iter().filter(|&&(tag, _)| tag == NEEDED) {
            named.needed.push(name_at(&file, strings.saturating_add(at))?);
        }
        Ok(named)
    }
}

fn parts(file: &File) -> io::Result<Vec<Part>> {
    let header = bytes_at(file, 0, HEADER_SIZE)?;
    if header.len() < HEADER_SIZE || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(Vec::new());
    }
    let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
    let headers = bytes_at(file, long(&header, 32), count * PROGRAM_HEADER_SIZE)?;
    let part = |header: &[u8]| Part {
        kind: long(header, 0) as u32,
        offset: long(header, 8),
        address: long(header, 16),
        size: long(header, 32),
    };
    Ok(headers.chunks_exact(PROGRAM_HEADER_SIZE).map(part).collect())
}

/// Where in the file the byte lies that is loaded at this address.
fn offset_of(parts: &[Part], address: u64) -> Option<u64> {
    let mut loaded = parts.iter().filter(|part| part.kind == LOADED);
    loaded.find_map(|part| {
        let within = address.checked_sub(part.address)?;
        if within < part.size { part.offset.checked_add(within) } else { None }
    })
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Returns the bytes there, fewer if the file ends before.
fn bytes_at(file: &File, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut read = 0;
    while read < length {
        match file.read_at(&mut bytes[read..], at.saturating_add(read as u64))? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

fn name_at(file: &File, at: u64) -> io::Result<String> {
    let bytes = bytes_at(file, at, LONGEST_NAME)?;
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(last).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u64 = 64 + 3 * 56;
    const STRING_TABLE: u64 = TABLE + 4 * 16;

    /// A program with a loader, which needs two objects.
    fn program() -> Vec<u8> {
        let strings = b"/lib/ld-x.so.1\0libtsan.so.2\0libc.so.6\0";
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[56] = 3;
        let end = STRING_TABLE + strings.len() as u64;
        for (kind, at, size) in [(3, STRING_TABLE, 15), (1, 0, end), (2, TABLE, 64)] {
            for word in [kind, at, at + 0x1000, 0, size, size, 1] {
                file.extend(word.to_le_bytes());
            }
        }
        for word in [1, 15, 1, 28, 5, STRING_TABLE + 0x1000, 0, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(strings);
        file
    }

    fn read(name: &str, bytes: &[u8]) -> Named {
        let path = std::env::temp_dir().join(format!("lumalloc-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let named = Named::read(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        named
    }

    #[test]
    fn the_loader_and_what_is_needed_are_named() {
        let needed = ["libtsan.so.2", "libc.so.6"].map(String::from).to_vec();
        assert_eq!(read("named", &program()), Named { loader: "ld-x.so.1".into(), needed });
    }

    #[test]
    fn a_file_that_ends_anywhere_is_read_without_a_panic() {
        let whole = program();
        for length in 0..whole.len() {
            let named = read("cut", &whole[..length]);
            assert!(named.needed.len() <= 2);
        }
        assert_eq!(read("script", b"#!/bin/sh\n"), Named::default());
    }
}
