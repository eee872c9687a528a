//! The chunks of an event file: where they lie, and what is wrong with one.

use super::source::{Input, Source, Trouble};

/// What a file begins with. The byte behind is the version.
pub(super) const MAGIC: &[u8] = b"LUMAEVT";
/// The version that is read.
const VERSION: u8 = 1;
/// The tags that are read. Chunks with others are left out.
const TAGS: &[u8] = b"PMSEOLXFZ";
/// The bytes of a chunk before its contents: the tag and the length.
const HEAD: u64 = 5;

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// What it contains.
    pub(super) tag: u8,
    /// Where its contents begin.
    from: u64,
    /// Where they end, or the file does.
    end: u64,
    /// Whether the file ends before the chunk does.
    pub(super) is_cut: bool,
}

impl Chunk {
    /// The contents.
    pub(super) fn input<'a>(&self, source: &'a Source) -> Input<'a> {
        Input::new(source, self.from, self.end)
    }

    /// Where it begins.
    pub(super) fn at(&self) -> u64 {
        self.from - HEAD
    }

    /// The message for what is wrong with it; none if it is only cut off.
    pub(super) fn trouble(&self, trouble: Trouble) -> Result<(), String> {
        let what = match trouble {
            Trouble::End if self.is_cut => return Ok(()),
            Trouble::End => "it ends within a value".to_owned(),
            Trouble::Damaged(what) => what,
            Trouble::Unreadable(what) => return Err(what),
        };
        let tag = char::from(self.tag).escape_default();
        Err(format!("the chunk {tag} at byte {} is damaged: {what}", self.at()))
    }

    /// The message for what is wrong with it, and what of the recording is missing by that; none if
    /// it is only cut off. The error says why the file cannot be read.
    pub(super) fn loss(&self, trouble: Trouble) -> Result<Option<String>, String> {
        if let Trouble::Unreadable(what) = trouble {
            return Err(what);
        }
        let lost = match self.tag {
            b'M' => "the mappings behind that are missing, and functions in them have no names",
            b'S' => "the stacks behind that are missing, and their events are shown without one",
            b'E' => "the events behind that are missing",
            b'O' => "the old blocks behind that are missing",
            b'L' => "the types of the live blocks behind that are missing",
            b'F' => "its message of the allocator is missing",
            _ => "it is left out",
        };
        Ok(self.trouble(trouble).err().map(|what| format!("{what}; {lost}")))
    }
}

/// Finds the chunks of a file, in order, and whether the last one or its head is cut off. The first
/// one may have any tag. Where a head is all zeros the file ends, because the system leaves zeros
/// of what it could not write before it stopped.
pub(super) fn find(source: &Source) -> Result<(Vec<Chunk>, bool), String> {
    check_magic(source)?;
    let size = source.len();
    let mut chunks = Vec::new();
    let mut from = MAGIC.len() as u64 + 1;
    while from < size {
        let mut input = Input::new(source, from, size.min(from + HEAD));
        let head = match input.bytes(HEAD) {
            Err(Trouble::Unreadable(what)) => return Err(what),
            Err(_) => return Ok((chunks, true)),
            Ok(head) => head,
        };
        if head == [0; HEAD as usize] {
            return Ok((chunks, true));
        }
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let begin = from + HEAD;
        from = begin + u64::from(length);
        let is_cut = from > size;
        if chunks.is_empty() || TAGS.contains(&head[0]) {
            chunks.push(Chunk { tag: head[0], from: begin, end: from.min(size), is_cut });
        }
    }
    Ok((chunks, from > size))
}

/// What other files begin with.
const FOREIGN: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "it is compressed by gzip: a heap profile is shown by `lumalloc heap`"),
    (b"heap_v2/", "it is a heap profile, which `lumalloc heap` shows"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd; unpack it first"),
    (b"\x7fELF", "it is a program or a library, not a recording of the heap monitor"),
];

fn check_magic(source: &Source) -> Result<(), String> {
    let size = source.len().min(MAGIC.len() as u64 + 1);
    let begin = match Input::new(source, 0, size).bytes(size) {
        Ok(begin) => begin,
        Err(Trouble::Unreadable(what)) => return Err(what),
        Err(_) => Vec::new(),
    };
    if let Some((_, what)) = FOREIGN.iter().find(|(mark, _)| begin.starts_with(mark)) {
        return Err((*what).to_owned());
    }
    match begin.strip_prefix(MAGIC) {
        Some([VERSION]) => Ok(()),
        Some([version]) => {
            Err(format!("its format has version {version}; this command reads version {VERSION}"))
        }
        _ if begin.is_empty() => Err("the file is empty".to_owned()),
        _ if MAGIC.starts_with(&begin) => Err("the file is cut off in its first bytes".to_owned()),
        _ => Err("it is no recording of the heap monitor".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> Result<(Vec<Chunk>, bool), String> {
        find(&Source::Memory(bytes.to_vec()))
    }

    #[test]
    fn other_files_are_named() {
        for (bytes, what) in [
            (&b""[..], "the file is empty"),
            (b"LUMA", "the file is cut off in its first bytes"),
            (b"LUMAEVT", "the file is cut off in its first bytes"),
            (b"LUMAEVT\x02", "its format has version 2; this command reads version 1"),
            (b"LUMAEVX\x01", "it is no recording of the heap monitor"),
            (b"text", "it is no recording of the heap monitor"),
            (
                b"\x1f\x8b\x08",
                "it is compressed by gzip: a heap profile is shown by `lumalloc heap`",
            ),
            (b"heap_v2/1", "it is a heap profile, which `lumalloc heap` shows"),
            (b"\x28\xb5\x2f\xfd_", "it is compressed by zstd; unpack it first"),
            (b"\x7fELF\x02", "it is a program or a library, not a recording of the heap monitor"),
        ] {
            assert_eq!(found(bytes), Err(what.to_owned()));
        }
    }

    #[test]
    fn chunks_are_found_up_to_the_end() {
        let file = b"LUMAEVT\x01A\x02\0\0\0xyE\0\0\0\0";
        let chunk = |tag, from, end, is_cut| Chunk { tag, from, end, is_cut };
        let [a, b] = [chunk(b'A', 13, 15, false), chunk(b'E', 20, 20, false)];
        assert_eq!(found(file), Ok((vec![a, b], false)));
        assert_eq!(found(&file[..17]), Ok((vec![a], true)));
        let cut = chunk(b'A', 13, 14, true);
        assert_eq!(found(&file[..14]), Ok((vec![cut], true)));
        assert_eq!(found(&file[..8]), Ok((vec![], false)));
        let large = [&b"LUMAEVT\x01A\x70\x11\x01\0"[..], &[0; 70_000], b"E\0\0\0\0"].concat();
        let [a, b] = [chunk(b'A', 13, 70_013, false), chunk(b'E', 70_018, 70_018, false)];
        assert_eq!(found(&large), Ok((vec![a, b], false)));
        let zeros = [&file[..15], &[0; 70_000]].concat();
        assert_eq!(found(&zeros), Ok((vec![chunk(b'A', 13, 15, false)], true)));
        let unknown = [&file[..15], &b"?\0\0\0\0".repeat(100), &file[15..]].concat();
        let e = chunk(b'E', 520, 520, false);
        assert_eq!(found(&unknown), Ok((vec![chunk(b'A', 13, 15, false), e], false)));
        let huge = b"LUMAEVT\x01A\xff\xff\xff\xffxy";
        assert_eq!(found(huge), Ok((vec![chunk(b'A', 13, 15, true)], true)));
    }

    #[test]
    fn a_damaged_chunk_is_named_by_its_place() {
        let chunk = Chunk { tag: b'E', from: 25, end: 30, is_cut: false };
        let damaged = chunk.trouble(Trouble::damaged("what"));
        assert_eq!(damaged, Err("the chunk E at byte 20 is damaged: what".to_owned()));
        let ends = "the chunk E at byte 20 is damaged: it ends within a value";
        assert_eq!(chunk.trouble(Trouble::End), Err(ends.to_owned()));
        assert_eq!(Chunk { is_cut: true, ..chunk }.trouble(Trouble::End), Ok(()));
        assert_eq!(chunk.trouble(Trouble::Unreadable("no".into())), Err("no".to_owned()));
    }

    #[test]
    fn what_is_lost_by_damage_is_told() {
        let chunk = |tag, is_cut| Chunk { tag, from: 25, end: 30, is_cut };
        for (tag, lost) in [
            ('M', "the mappings behind that are missing, and functions in them have no names"),
            ('S', "the stacks behind that are missing, and their events are shown without one"),
            ('E', "the events behind that are missing"),
            ('O', "the old blocks behind that are missing"),
            ('L', "the types of the live blocks behind that are missing"),
            ('F', "its message of the allocator is missing"),
            ('Z', "it is left out"),
        ] {
            let loss = chunk(tag as u8, false).loss(Trouble::damaged("what"));
            let text = format!("the chunk {tag} at byte 20 is damaged: what; {lost}");
            assert_eq!(loss, Ok(Some(text)));
        }
        assert_eq!(chunk(b'S', true).loss(Trouble::End), Ok(None));
        assert_eq!(chunk(b'S', false).loss(Trouble::Unreadable("no".into())), Err("no".into()));
    }
}
