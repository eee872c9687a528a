//! The files that are mapped into the process, from `/proc/self/maps`, with their build-ids.

use crate::file::{self, read_memory};
use crate::maps_line::{Line, hash, parse};
use crate::messages;
use crate::moved_text::MovedText;
use lumalloc::own_files;

/// The longest line that is read: numbers, and a path.
pub(crate) const LONGEST_LINE: usize = 4096 + 128;
/// The longest build-id that is read, in bytes.
const LONGEST_ID: usize = 32;

/// A part of a file that is mapped and may be run.
pub(crate) struct Mapping<'a> {
    /// The addresses from `start` up to `end`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// The path, or a name in brackets.
    pub(crate) name: &'a [u8],
    /// The build-id, in hexadecimal digits. Empty: the file has none.
    pub(crate) build_id: &'a [u8],
}

/// Room for a line of the table.
pub(crate) type Room = [u8; LONGEST_LINE];

/// Calls `see` with each mapping that may be run, by rising addresses.
pub(crate) fn for_each(see: impl FnMut(&Mapping<'_>)) {
    for_each_by(&mut [0; LONGEST_LINE], see);
}

/// As [`for_each`], with room for a line that is not on the stack of the thread.
pub(crate) fn for_each_by(room: &mut Room, mut see: impl FnMut(&Mapping<'_>)) {
    let (mut file, mut moved) = (FileBegin::new(), MovedText::new());
    for_each_line(room, |line| {
        let Some(line) = parse(line) else { return };
        file.note(&line);
        let before = moved.before(&line);
        for line in before.into_iter().chain([line]) {
            if line.may_run && !line.name.is_empty() {
                let (id, length) = file.build_id(&line);
                let build_id = id.get(..length).unwrap_or_default();
                let name = if build_id.is_empty() { line.name } else { without_note(line.name) };
                let Line { start, end, offset, .. } = line;
                see(&Mapping { start, end, offset, name, build_id });
            }
        }
    });
}

/// Removes what the system adds to the path of a file that another one has replaced. The build-id
/// says whether the file of that name is still the same. Where there is none, only this says it.
pub(crate) fn without_note(name: &[u8]) -> &[u8] {
    name.strip_suffix(b" (deleted)").unwrap_or(name)
}

/// Where the beginning of the last file is mapped.
struct FileBegin {
    start: u64,
    hash: u64,
}

impl FileBegin {
    fn new() -> FileBegin {
        FileBegin { start: 0, hash: 0 }
    }

    fn note(&mut self, line: &Line<'_>) {
        // Memory of no file may lie between two parts of one.
        if line.offset == 0 && line.name.starts_with(b"/") {
            *self = FileBegin { start: line.start, hash: hash(line.name) };
        }
    }

    fn build_id(&self, line: &Line<'_>) -> ([u8; 2 * LONGEST_ID], usize) {
        let mut digits = [0; 2 * LONGEST_ID];
        let mut id = [0; LONGEST_ID];
        let is_file = line.name.starts_with(b"/") && self.hash == hash(line.name);
        let length = if is_file { read_id(self.start, &mut id).unwrap_or(0) } else { 0 };
        for (pair, byte) in digits.chunks_exact_mut(2).zip(id.iter().take(length)) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        (digits, 2 * length)
    }
}

fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

/// Calls `see` with the table, piece by piece. A message says so if it cannot be read, or is empty.
pub(crate) fn for_each_piece(mut see: impl FnMut(&[u8])) {
    // An empty table is that of a process, or a thread, that has ended.
    let (mut is_empty, mut error) = (true, libc::ESRCH);
    for path in own_files::MAPS {
        let read = file::for_each_piece(path, |piece| {
            is_empty = false;
            see(piece);
        });
        if !is_empty {
            messages::note_mappings(read);
            return;
        }
        error = read.err().filter(|_| error == libc::ESRCH).unwrap_or(error);
    }
    messages::note_mappings(Err(error));
}

/// Calls `see` with each line of the table. Of a line that is too long the end is left out.
fn for_each_line(line: &mut Room, mut see: impl FnMut(&[u8])) {
    let mut length = 0;
    for_each_piece(|piece| {
        for byte in piece {
            if *byte == b'\n' {
                see(line.get(..length).unwrap_or_default());
                length = 0;
            } else if let Some(place) = line.get_mut(length) {
                *place = *byte;
                length += 1;
            }
        }
    });
}

/// Reads the build-id of the ELF file whose beginning is mapped at `start`. Returns its length.
///
/// The memory is read by the system, because the file may be unmapped meanwhile.
fn read_id(start: u64, id: &mut [u8; LONGEST_ID]) -> Option<usize> {
    const LOAD: u32 = 1;
    const NOTE: u32 = 4;
    let mut header = [0; 64];
    read_memory(start, &mut header)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, count) = (word(&header, 32)?, half(&header, 56)?);
    let mut bias = None;
    for index in 0..count.min(64) {
        let mut segment = [0; 56];
        let at = start.wrapping_add(table).wrapping_add(u64::from(index) * 56);
        read_memory(at, &mut segment)?;
        let (kind, offset) = (quarter(&segment, 0)?, word(&segment, 8)?);
        let (address, length) = (word(&segment, 16)?, word(&segment, 32)?);
        if kind == LOAD && offset == 0 {
            bias = Some(start.wrapping_sub(address));
        }
        // The segments that are loaded may come after the notes. Then the file begins at zero, as
        // all shared objects do.
        let at = bias.unwrap_or(start).wrapping_add(address);
        if kind == NOTE
            && let Some(length) = find_id(at, length, id)
        {
            return Some(length);
        }
    }
    None
}

/// Looks for the build-id among the notes at an address.
fn find_id(start: u64, length: u64, id: &mut [u8; LONGEST_ID]) -> Option<usize> {
    const BUILD_ID: u32 = 3;
    let (mut at, end) = (start, start.checked_add(length)?);
    while at < end {
        let mut note = [0; 16];
        read_memory(at, &mut note)?;
        let (name, contents) = (quarter(&note, 0)?, quarter(&note, 4)?);
        let padded = |length: u32| u64::from(length).next_multiple_of(4);
        let place = at.checked_add(12 + padded(name))?;
        if quarter(&note, 8)? == BUILD_ID && note.get(12..) == Some(b"GNU\0") {
            let length = (contents as usize).min(LONGEST_ID);
            return read_memory(place, id.get_mut(..length)?).map(|()| length);
        }
        at = place.checked_add(padded(contents))?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

fn quarter(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::string::String;
    use std::vec::Vec;

    /// Maps a file so that it may be run, and removes it. Returns the name that it has then.
    #[allow(unsafe_code, reason = "a mapping of a file has no safe interface")]
    fn name_of_removed(what: &str, contents: &[u8]) -> (String, String) {
        use std::os::fd::AsRawFd;
        let name = std::format!("lumalloc-{what}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, contents).expect("a file");
        let file = std::fs::File::open(&path).expect("the file");
        let (how, size) = (libc::PROT_READ | libc::PROT_EXEC, contents.len());
        let (null, fd) = (core::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping, at an address of the system's choice.
        let at = unsafe { libc::mmap(null, size, how, libc::MAP_PRIVATE, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        std::fs::remove_file(&path).expect("removed");
        let mut found = None;
        for_each(|mapping| {
            if mapping.start == at as u64 {
                found = Some(String::from_utf8_lossy(mapping.name).into_owned());
            }
        });
        // SAFETY: nothing uses the mapping.
        unsafe { libc::munmap(at, size) };
        (found.expect("the mapping"), path.to_string_lossy().into_owned())
    }

    #[test]
    fn a_replaced_file_keeps_its_name_if_its_build_id_tells_the_file() {
        assert_eq!(without_note(b"/bin/a b (deleted)"), b"/bin/a b");
        assert_eq!(without_note(b"/bin/a"), b"/bin/a");
        let (name, path) = name_of_removed("no-id", &[0; 4096]);
        assert_eq!(name, std::format!("{path} (deleted)"));
        let own = std::fs::read("/proc/self/exe").expect("this program");
        let (name, path) = name_of_removed("id", &own);
        assert_eq!(name, path);
    }

    #[test]
    #[allow(unsafe_code, reason = "a mapping has no safe interface")]
    fn code_that_was_moved_to_other_memory_belongs_to_its_file() {
        use std::os::fd::AsRawFd;
        const PAGE: usize = 4096;
        let file = std::fs::File::open("/proc/self/exe").expect("this program");
        let (how, null, fd) =
            (libc::PROT_READ | libc::PROT_EXEC, core::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping, at an address of the system's choice.
        let at = unsafe { libc::mmap(null, 3 * PAGE, how, libc::MAP_PRIVATE, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let middle = at.wrapping_byte_add(PAGE);
        // SAFETY: nothing uses the page, which is of the mapping.
        let page = unsafe { libc::mmap(middle, PAGE, how, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        let mut seen = Vec::new();
        for_each(|mapping| {
            if (at as u64..(at as u64 + 3 * PAGE as u64)).contains(&mapping.start) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                seen.push((mapping.offset, text(mapping.name), text(mapping.build_id)));
            }
        });
        // SAFETY: nothing uses the mapping.
        unsafe { libc::munmap(at, 3 * PAGE) };
        assert_eq!(seen.len(), 3, "{seen:?}");
        let [(_, name, id), ..] = &seen[..] else { unreachable!() };
        let expected = [0, 1, 2].map(|page| (page * PAGE as u64, name.clone(), id.clone()));
        assert!(seen == expected && id.len() >= 16, "{seen:?}");
    }

    #[test]
    fn the_parts_of_a_file_may_have_other_memory_between_them() {
        let mut file = FileBegin::new();
        let begin = file_begin();
        let line = |offset, name| Line { start: begin, end: 0, may_run: true, offset, name };
        file.note(&line(0, b"/a"));
        file.note(&line(0, b""));
        assert!(file.build_id(&line(4096, b"/a")).1 >= 16);
        assert_eq!(file.build_id(&line(4096, b"/b")).1, 0);
    }

    /// Where the file of this program begins in memory.
    fn file_begin() -> u64 {
        let own = std::env::current_exe().expect("this program").into_os_string();
        let own = own.into_encoded_bytes();
        let mut begin = None;
        for_each_line(&mut [0; LONGEST_LINE], |line| {
            let line = parse(line).filter(|line| line.offset == 0 && line.name == &own[..]);
            begin = begin.or(line.map(|line| line.start));
        });
        begin.expect("a mapping")
    }

    #[test]
    fn the_program_and_the_c_library_are_there_with_the_ids_that_readelf_prints() {
        let mut seen = Vec::new();
        for_each(|mapping| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            seen.push((mapping.start, mapping.end, text(mapping.name), text(mapping.build_id)));
        });
        let own = parse as *const () as u64;
        for address in [own, libc::abort as *const () as u64] {
            let found = seen.iter().find(|(start, end, ..)| (*start..*end).contains(&address));
            let (.., name, id) = found.expect("a mapping");
            let output = Command::new("readelf").args(["-n", name]).output().expect("readelf");
            let notes = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(id.len() >= 16 && notes.contains(id.as_str()), "{name} {id}: {notes}");
        }
        assert!(seen.iter().any(|(.., name, id)| name == "[vdso]" && id.is_empty()));
        assert!(seen.is_sorted());
    }

    #[test]
    fn memory_without_an_elf_file_has_no_build_id() {
        let block = [0x7f; 64];
        let mut id = [0; LONGEST_ID];
        assert_eq!(read_id(block.as_ptr() as u64, &mut id), None);
        assert_eq!(read_id(8, &mut id), None);
    }
}
