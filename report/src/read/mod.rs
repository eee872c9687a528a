//! Readers of profiles: pprof and heap_v2. The first bytes of a file tell which one it is.

mod limits;
mod shares;
mod moved_text;
mod heap_v2;
mod pprof;
pub(crate) mod proto;

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result, reason};
use crate::input_file;
use crate::profile::Profile;
use crate::symbols::printable;

pub(crate) use pprof::{decode, places};

/// What files of other kinds begin with.
const FOREIGN: [(&[u8], &str); 8] = [
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd; unpack it first"),
    (b"\xfd7zXZ", "it is compressed by xz; unpack it first"),
    (b"BZh", "it is compressed by bzip2; unpack it first"),
    (b"\x7fELF", "it is a program or a library, not a profile"),
    (
        b"LUMAEVT",
        "it is a recording of the heap monitor: `lumalloc events --analyze` shows its live blocks, \
         `--lifetimes` how long blocks live, and `--pins` who pins memory",
    ),
    (b"heap profile:", "it is a profile of gperftools; heap_v2 and pprof can be read"),
    (b"{", "it is JSON; heap_v2 and pprof can be read"),
    (b"alloc=", "it is a data file of the original mprof; heap_v2 and pprof can be read"),
];

/// Reads a profile of any known kind.
///
/// # Errors
///
/// The message names the file and says what is wrong with it.
pub fn read_file(path: &Path) -> Result<Profile> {
    read(&contents(path)?).map_err(|what| Error::of_file(path, what))
}

/// Reads a profile of any known kind. If it is a difference with negative numbers, as
/// `/debug/pprof/heap?seconds=` writes it, the second profile has what was taken away, and the
/// first one what was added.
///
/// # Errors
///
/// The message names the file and says what is wrong with it.
pub(crate) fn read_parts(path: &Path) -> Result<(Profile, Option<Profile>)> {
    let bytes = contents(path)?;
    let parts = match kind(&bytes) {
        Ok(Kind::Gzip) => pprof::unpack(&bytes).and_then(|bytes| match is_heap_v2(&bytes) {
            true => heap_v2::read(&bytes).map(|profile| (profile, None)),
            false => pprof::read_parts(&bytes),
        }),
        Ok(Kind::Pprof) => pprof::read_parts(&bytes),
        _ => read(&bytes).map(|profile| (profile, None)),
    };
    parts.map_err(|what| Error::of_file(path, what))
}

/// Returns the contents of a file, or its first bytes if they are of no known kind.
fn contents(path: &Path) -> Result<Vec<u8>> {
    input_file::read(path, |begin| kind(begin).is_ok())
        .map_err(|error| Error::of_file(path, reason(&error)))
}

/// Returns whether a file begins as a profile of any known kind does. A file that cannot be read
/// does not.
pub fn is_profile(path: &Path) -> bool {
    let mut begin = Vec::new();
    let file = std::fs::File::open(path);
    let is_read = file.is_ok_and(|file| file.take(16).read_to_end(&mut begin).is_ok());
    is_read && kind(&begin).is_ok()
}

/// Reads a profile of any known kind from memory.
///
/// # Errors
///
/// The message says what is wrong.
pub fn read(bytes: &[u8]) -> std::result::Result<Profile, String> {
    match kind(bytes)? {
        Kind::Gzip => {
            let bytes = pprof::unpack(bytes)?;
            if is_heap_v2(&bytes) { heap_v2::read(&bytes) } else { pprof::read(&bytes) }
        }
        Kind::Pprof => pprof::read(bytes),
        Kind::HeapV2 => heap_v2::read(bytes),
    }
}

/// The kinds of files that are read.
enum Kind {
    /// pprof, compressed.
    Gzip,
    /// pprof, not compressed.
    Pprof,
    HeapV2,
}

/// Whether this is a heap_v2 that somebody has compressed.
fn is_heap_v2(unpacked: &[u8]) -> bool {
    unpacked.starts_with(b"heap_v2/")
}

/// The kind of a file, by its first bytes.
fn kind(bytes: &[u8]) -> std::result::Result<Kind, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    if let Some((_, what)) = FOREIGN.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return Err((*what).into());
    }
    match bytes[0] {
        0x1f if bytes.get(1).is_none_or(|second| *second == 0x8b) => Ok(Kind::Gzip),
        b'h' | b'%' => Ok(Kind::HeapV2),
        // A field of the message, with its length.
        first if first & 7 <= 2 && first >> 3 <= 16 && first != 0 => Ok(Kind::Pprof),
        _ => Err("it is neither pprof nor heap_v2".into()),
    }
}

/// Returns the contents of a pprof file, unpacked if it is compressed. The error says what is
/// wrong.
pub(crate) fn unpacked(bytes: &[u8]) -> std::result::Result<Vec<u8>, String> {
    if bytes.first() == Some(&0x1f) { pprof::unpack(bytes) } else { Ok(bytes.to_vec()) }
}

/// The begin of a text of a file, for a message, without characters that control a terminal.
fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    let mut begin: String = text.chars().take(MOST).collect();
    if begin.len() < text.len() {
        begin.push('…');
    }
    printable(begin)
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::testing::{File, gzip};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_kinds_of_files_are_named() {
        let error = |bytes: &[u8]| read(bytes).expect_err("no profile");
        assert_eq!(error(b""), "the file is empty");
        assert_eq!(error(b"\x7fELF\x02"), "it is a program or a library, not a profile");
        assert_eq!(error(b"\x28\xb5\x2f\xfd__"), "it is compressed by zstd; unpack it first");
        assert_eq!(error(b"\xfd7zXZ\0"), "it is compressed by xz; unpack it first");
        assert_eq!(error(b"BZh9"), "it is compressed by bzip2; unpack it first");
        assert_eq!(
            error(b"LUMAEVT\x01"),
            "it is a recording of the heap monitor: `lumalloc events --analyze` shows its live \
             blocks, `--lifetimes` how long blocks live, and `--pins` who pins memory"
        );
        assert_eq!(error(b"{}"), "it is JSON; heap_v2 and pprof can be read");
        assert_eq!(
            error(b"heap profile: 1: 2"),
            "it is a profile of gperftools; heap_v2 and pprof can be read"
        );
        assert_eq!(
            error(b"alloc=5 free=0"),
            "it is a data file of the original mprof; heap_v2 and pprof can be read"
        );
        assert_eq!(error(b"\xff\xff"), "it is neither pprof nor heap_v2");
        assert_eq!(error(b"\x1f"), "the file is cut off");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_file(Path::new("/nowhere/x.heap")).expect_err("no file");
        assert_eq!(error.to_string(), "/nowhere/x.heap: no such file or directory");
    }

    #[test]
    fn profiles_are_known_by_their_first_bytes() {
        assert!(!is_profile(Path::new("/nowhere/x.heap")));
        assert!(!is_profile(Path::new("/proc/self/exe")));
        assert!(!is_profile(Path::new("/")));
        let directory = crate::rtti::testing::Directory::new("is-profile");
        let file = directory.0.join("x");
        let pprof = File::default().path("main > f", 8, 1, 1).encode();
        for (bytes, expected) in [
            (&pprof[..], true),
            (&gzip(&pprof), true),
            (b"heap_v2/1\n", true),
            (b"#!/bin/sh\n", false),
            (b"", false),
        ] {
            std::fs::write(&file, bytes).expect("written");
            assert_eq!(is_profile(&file), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_file_is_read_whether_it_is_compressed_or_not() {
        let file = File::default().stack(&[0x11], &[1, 10, 1, 10], &[("bytes", 10)]).encode();
        assert_eq!(read(&file), read(&gzip(&file)));
        assert_eq!(read(&file).expect("a profile").samples[0].size, Some(10));
        let heap = b"heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x5\n  t*: 1: 8 [0: 0]\n\nMAPPED_LIBRARIES:\n";
        assert_eq!(read(heap).expect("a profile").samples.len(), 1);
        assert_eq!(read(heap), read(&gzip(heap)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = pprof::read(&bytes);
            let _ = heap_v2::read(&bytes);
        }

        #[test]
        fn no_damage_makes_a_reader_panic(
            at in any::<proptest::sample::Index>(), to in any::<u8>(), cut in any::<bool>()
        ) {
            let mut file = File::default()
                .mapping(0x1000, 0x9000, "/bin/x", "ab12")
                .stack(&[0x1011, 0x2022], &[3, 30, 1, 10], &[("bytes", 10), ("thread", 2)])
                .encode();
            let at = at.index(file.len());
            file[at] = to;
            if cut {
                file.truncate(at);
            }
            let _ = read(&file);
            let _ = read(&gzip(&file));
        }

        #[test]
        fn no_lines_make_a_reader_panic(
            lines in proptest::collection::vec("(@( 0x[0-9a-f]{1,18}){0,3}|t[0-9*]: [0-9]{1,20}: \
                [0-9]{1,20} \\[[0-9]{1,3}: [0-9]{1,20}\\]|MAPPED_LIBRARIES:|[0-9a-f]{2,17}-[0-9a-f]\
                {2,17} r-xp 0 00:00 1 /x)", 0..12)
        ) {
            let _ = read(format!("heap_v2/512\n{}\n", lines.join("\n")).as_bytes());
        }
    }
}
