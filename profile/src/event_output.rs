//! The file of the heap monitor while it is being written, and what it has so far.

use crate::event_file::{self as format, Chunk, MAGIC, Unended, room_for};
use crate::file::{self, Kind};
use crate::kept_file::Kept;
use crate::mappings::{self, Mapping};
use crate::maps_line::hash;
use crate::output_file;
use crate::path::Path;
use crate::process::{self, process_id};
use crate::ranges::{self, Range};
use core::ffi::{CStr, c_int};
use lumalloc::control::monitor::{Counts, Event, stacks_from};

/// Events of a chunk.
const EVENTS: usize = 512;
/// Bytes of a chunk.
const CHUNK: usize = room_for(EVENTS);
/// Mappings that are known at a time. Further ones are written each time they are found.
const KNOWN: usize = 1024;
/// The room that a mapping takes at most, in numbers: a path, and a build-id.
const MAPPING: usize = 450;
/// The least time between two looks at the mappings, in nanoseconds, unless a stack leads to where
/// nothing was mapped.
const LEAST_PAUSE: u64 = 20_000_000;
/// The time until the next look is at least this many times as long as a look took.
const LOOKS_IN_A_PAUSE: u64 = 50;

/// The version of the allocator.
const ALLOCATOR: &str = concat!("lumalloc ", env!("CARGO_PKG_VERSION"));

/// The file, and what it has so far.
pub(crate) struct Output {
    file: Growing,
    /// Stacks with lower numbers are in the file.
    next_stack: u32,
    known: Known,
    /// The time from which on events that are written have the mappings looked at.
    next_look: u64,
    /// Whether that look did not find where a stack led, as into code that no file has.
    in_vain: bool,
    buffer: [u8; CHUNK],
    /// For a line of the table of mappings.
    line: mappings::Room,
}

/// A file that grows.
struct Growing {
    path: Path,
    /// The path that it has: until it is whole that of an unfinished file.
    unfinished: Path,
    /// Kept open, because the program may not be able to open it again.
    kept: Kept,
    /// Its bytes.
    length: u64,
    /// The first error. 0: none.
    error: c_int,
}

/// The stacks that are not in the file yet.
struct NewStacks {
    /// The highest number of them, or of those in the file.
    last: u32,
    /// Where one of them leads to no mapping of the file.
    unknown: Option<usize>,
}

/// The mappings that are in the file.
struct Known {
    /// The third word is of what is mapped there.
    all: [Range; KNOWN],
    count: usize,
}

impl Output {
    /// Creates the output of no file.
    pub(crate) const fn new() -> Output {
        let (path, unfinished) = (Path::new(), Path::new());
        Output {
            file: Growing { path, unfinished, kept: Kept::NONE, length: 0, error: 0 },
            next_stack: 1,
            known: Known::NONE,
            next_look: 0,
            in_vain: false,
            buffer: [0; CHUNK],
            line: [0; mappings::LONGEST_LINE],
        }
    }

    /// Sets the name of the next file. It holds if the program changes its directory. Returns
    /// `None` if the name is empty or too long, or there is no working directory.
    pub(crate) fn set_name(&mut self, name: &CStr) -> Option<()> {
        if name.is_empty() {
            return None;
        }
        self.file.path = Path::new();
        if !name.to_bytes().starts_with(b"/") {
            let mut directory = [0; 4096];
            let directory = process::directory(&mut directory)?;
            self.file.path.push(directory)?.push(b"/")?;
        }
        self.file.path.push(name.to_bytes())?;
        self.file.unfinished = output_file::unfinished(self.file.path.as_c_str(), 0)?;
        Some(())
    }

    /// Returns the name that the file gets at its end.
    pub(crate) fn path(&self) -> &CStr {
        self.file.path.as_c_str()
    }

    /// Returns the name that the file has: until its end that of an unfinished one.
    pub(crate) fn present_name(&self) -> &CStr {
        self.file.unfinished.as_c_str()
    }

    /// Begins the file. `is_named`: the program gave the name, so another file of that name is
    /// replaced at the end.
    ///
    /// # Errors
    /// The system's error number: `EEXIST` if there is such a file, whole or unfinished, and none
    /// of that name can be begun; `EISDIR`, `ELOOP` and `ESPIPE` if the name is a directory's, a
    /// symbolic link's, or a device's, pipe's or socket's. There is no new file then.
    pub(crate) fn begin(&mut self, is_named: bool) -> Result<(), c_int> {
        (self.next_stack, self.known.count, self.file.error) = (1, 0, 0);
        self.in_vain = false;
        self.file.length = MAGIC.len() as u64;
        self.create(is_named)?;
        let is_begun = self.put(format::PROCESS, |chunk| {
            let mut program = [0; 4096];
            let program = process::program(&mut program);
            chunk.number(u64::from(process_id()));
            chunk.number(process::monotonic()).number(process::now());
            chunk.text(ALLOCATOR.as_bytes()).text(program);
        }) && self.look_at_mappings();
        if is_begun {
            return Ok(());
        }
        self.remove();
        Err(self.file.error)
    }

    /// Creates the file under a name that no other has: one that was killed, with the number of
    /// this process perhaps, left its recording.
    fn create(&mut self, is_named: bool) -> Result<(), c_int> {
        let path = self.file.path.as_c_str();
        match file::kind(path) {
            Kind::File if is_named || !file::exists(path) => {}
            Kind::Directory if is_named => return Err(libc::EISDIR),
            Kind::Link if is_named => return Err(libc::ELOOP),
            Kind::Special if is_named => return Err(libc::ESPIPE),
            _ => return Err(libc::EEXIST),
        }
        let names = if is_named { output_file::MOST_TAKEN } else { 1 };
        for number in 0..names {
            let name = output_file::unfinished(path, number).ok_or(libc::ENAMETOOLONG)?;
            match output_file::create(&mut self.file.kept, name.as_c_str(), path, &MAGIC) {
                Err(libc::EEXIST) => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    self.file.unfinished = name;
                    return Ok(());
                }
            }
        }
        Err(libc::EEXIST)
    }

    /// Closes the file, which is that of the parent process.
    pub(crate) fn leave(&mut self) {
        self.file.kept.close();
    }

    /// Removes the file.
    pub(crate) fn remove(&mut self) {
        self.file.kept.close();
        file::remove(self.file.unfinished.as_c_str());
    }

    /// Ends the file, and gives it its name.
    ///
    /// # Errors
    /// What is missing, and the first error since the file was begun. Without an end or a name the
    /// file has the name of an unfinished one.
    pub(crate) fn end(&mut self, counts: Counts) -> Result<(), Unended> {
        let time = process::monotonic();
        let mut is_ended = self.look_at_mappings();
        if counts.dropped > 0 {
            is_ended &= self.put(format::DROPPED, |chunk| {
                chunk.number(counts.dropped).number(time);
            });
        }
        is_ended &= self.put(format::END, |chunk| {
            chunk.number(time).number(counts.taken).number(counts.dropped);
        });
        self.file.kept.close();
        if !is_ended {
            return Err(Unended::Cut(self.file.error));
        }
        let named = self.file.complete().map_err(Unended::Unnamed);
        if self.file.error != 0 { Err(Unended::Lost(self.file.error)) } else { named }
    }

    /// Writes a chunk. Returns `false`, and leaves the file as it was, if it cannot be written.
    pub(crate) fn put(&mut self, tag: u8, fill: impl FnOnce(&mut Chunk<'_>)) -> bool {
        let mut chunk = Chunk::new(&mut self.buffer, tag);
        fill(&mut chunk);
        self.file.write(chunk)
    }

    /// Writes events, after the stacks that they name, and the mappings that these need.
    pub(crate) fn events(&mut self, events: &[Event]) -> bool {
        let mut parts = events.chunks(EVENTS);
        let new = self.new_stacks();
        let are_mapped = self.mappings(new.unknown);
        self.stacks(new.last)
            && are_mapped
            && parts.all(|part| self.put(format::EVENTS, |chunk| chunk.events(part)))
    }

    /// Looks for the stacks that are not in the file yet.
    fn new_stacks(&self) -> NewStacks {
        let mut new = NewStacks { last: self.next_stack - 1, unknown: None };
        stacks_from(self.next_stack, |number, frames| {
            new.last = new.last.max(number);
            let mut unknown = frames.iter().copied().filter(|frame| !self.known.has(*frame));
            new.unknown = new.unknown.or_else(|| unknown.next());
        });
        new
    }

    /// Writes new mappings, if it is time to look for them. They precede the stacks and events that
    /// come with them, because a library may lie where another one was.
    fn mappings(&mut self, unknown: Option<usize>) -> bool {
        // A library was opened, and may be closed soon.
        let is_due = unknown.is_some() && !self.in_vain;
        if !is_due && process::monotonic() <= self.next_look {
            return true;
        }
        let is_whole = self.look_at_mappings();
        self.in_vain = unknown.is_some_and(|frame| !self.known.has(frame));
        is_whole
    }

    /// Writes the stacks that are not in the file yet, up to one. For later ones no mapping was
    /// looked for.
    fn stacks(&mut self, last: u32) -> bool {
        let Output { file, buffer, next_stack, .. } = self;
        let (mut length, mut is_whole) = (0, true);
        stacks_from(*next_stack, |number, frames| {
            if number > last {
                return;
            }
            let mut chunk = Chunk::resume(buffer, format::STACKS, length);
            if !chunk.has_room(frames.len() + 2) {
                is_whole &= file.write(chunk);
                chunk = Chunk::new(buffer, format::STACKS);
            }
            chunk.stack(number, frames);
            length = chunk.length();
        });
        is_whole &= file.write(Chunk::resume(buffer, format::STACKS, length));
        if is_whole {
            *next_stack = last + 1;
        }
        is_whole
    }

    /// Writes the mappings that are not in the file yet. If a part of them cannot be written, all
    /// are written at the next look.
    fn look_at_mappings(&mut self) -> bool {
        let Output { file, buffer, known, line, .. } = self;
        let begun = process::monotonic();
        let (mut length, mut is_whole) = (0, true);
        mappings::for_each_by(line, |mapping| {
            if !known.add(mapping) {
                return;
            }
            let mut chunk = Chunk::resume(buffer, format::MAPPINGS, length);
            if !chunk.has_room(MAPPING) {
                is_whole &= file.write(chunk);
                chunk = Chunk::new(buffer, format::MAPPINGS);
            }
            chunk.number(mapping.start).number(mapping.end).number(mapping.offset);
            chunk.text(mapping.name).text(mapping.build_id);
            length = chunk.length();
        });
        is_whole = is_whole && file.write(Chunk::resume(buffer, format::MAPPINGS, length));
        if !is_whole {
            known.count = 0;
        }
        let ended = process::monotonic();
        let took = ended.saturating_sub(begun).saturating_mul(LOOKS_IN_A_PAUSE);
        self.next_look = ended.saturating_add(took.max(LEAST_PAUSE));
        is_whole
    }
}

impl Growing {
    /// Appends a chunk, unless it is empty. Returns `false`, and leaves the file as it was, if it
    /// cannot be written.
    fn write(&mut self, chunk: Chunk<'_>) -> bool {
        if chunk.is_empty() {
            return true;
        }
        let written = chunk.finish().ok_or(libc::EFBIG).and_then(|bytes| {
            output_file::append(&mut self.kept, self.unfinished.as_c_str(), self.length, bytes)?;
            Ok(bytes.len() as u64)
        });
        match written {
            Ok(length) => self.length += length,
            Err(error) if self.error == 0 => self.error = error,
            Err(_) => {}
        }
        written.is_ok()
    }

    /// Gives the file its name.
    fn complete(&mut self) -> Result<(), c_int> {
        output_file::complete(self.unfinished.as_c_str(), self.path.as_c_str())?;
        self.unfinished.clone_from(&self.path);
        Ok(())
    }
}

impl Known {
    const NONE: Known = Known { all: [[0; 3]; KNOWN], count: 0 };

    fn ranges(&self) -> &[Range] {
        self.all.get(..self.count).unwrap_or_default()
    }

    /// Whether a mapping contains an address.
    fn has(&self, address: usize) -> bool {
        ranges::find(self.ranges(), address as u64).is_some()
    }

    /// Adds a mapping, in place of those that were at its addresses before. Returns `false` if it
    /// is known, or was with a build-id that cannot be read now.
    fn add(&mut self, mapping: &Mapping<'_>) -> bool {
        let new = [mapping.start, mapping.end, what_is_mapped(mapping)];
        let (first, behind) = ranges::overlapped(self.ranges(), new);
        if let Some([known]) = self.all.get(first..behind)
            && (*known == new || is_without_id(known, &new))
        {
            return false;
        }
        if behind == first {
            self.insert(first, new);
        } else {
            self.all.get_mut(first).into_iter().for_each(|place| *place = new);
            self.remove(first + 1, behind);
        }
        true
    }

    /// Inserts a range at a place, if there is room.
    fn insert(&mut self, place: usize, new: Range) {
        if self.count == KNOWN {
            return;
        }
        self.count += 1;
        let later = self.all.iter_mut().take(self.count).skip(place);
        later.fold(new, |range, place| core::mem::replace(place, range));
    }

    /// Removes the ranges from one place up to another.
    fn remove(&mut self, first: usize, behind: usize) {
        for at in behind..self.count {
            let range = self.all.get(at).copied().unwrap_or_default();
            self.all.get_mut(at - behind + first).into_iter().for_each(|place| *place = range);
        }
        self.count -= behind - first;
    }
}

/// Whether a known range has a build-id.
const HAS_ID: u64 = 1;

/// Returns a number that tells the mapped parts of files apart: the upper half says which file and
/// part it is, by its name, and the lower one which build-id it has, if it has one.
fn what_is_mapped(mapping: &Mapping<'_>) -> u64 {
    let half = |hash: u64| (hash ^ hash >> 32) & u64::from(u32::MAX);
    let Mapping { name, build_id: id, offset, .. } = *mapping;
    let file = hash(mappings::without_note(name)) ^ offset;
    let id = if id.is_empty() { half(hash(name)) & !HAS_ID } else { half(hash(id)) | HAS_ID };
    half(file) << 32 | id
}

/// Whether a range is the known one of a file with a build-id, but for that.
fn is_without_id(known: &Range, new: &Range) -> bool {
    let ([start, end, file], [new_start, new_end, new_file]) = (*known, *new);
    (start, end, file >> 32) == (new_start, new_end, new_file >> 32)
        && file & HAS_ID > new_file & HAS_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is in a directory, in order of names: the names, and whether it is what was left there.
    fn left(directory: &std::path::Path) -> std::vec::Vec<(std::string::String, bool)> {
        let entries = std::fs::read_dir(directory).expect("the directory");
        let mut all: std::vec::Vec<_> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                let is_left = std::fs::read(entry.path()).expect("a file") == b"left";
                (entry.file_name().into_string().expect("text"), is_left)
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn what_another_process_left_is_kept() {
        let name = std::format!("lumalloc-events-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = |name: &str| directory.join(name).into_os_string().into_encoded_bytes();
        let c_path = |name: &str| std::ffi::CString::new(path(name)).expect("a path");
        for name in ["a.tmp", "a.1.tmp", "b.tmp", "c"] {
            std::fs::write(directory.join(name), "left").expect("a file");
        }
        let mut output = std::boxed::Box::new(Output::new());
        let old = [("a.1.tmp", true), ("a.tmp", true), ("b.tmp", true), ("c", true)];
        let old = old.map(|(name, is_left)| (std::string::String::from(name), is_left));
        for name in ["b", "c"] {
            output.set_name(&c_path(name)).expect("a name");
            assert_eq!(output.begin(false), Err(libc::EEXIST));
        }
        assert_eq!(left(&directory), old);
        output.set_name(&c_path("a")).expect("a name");
        output.begin(true).expect("a file");
        assert!(left(&directory).contains(&("a.2.tmp".into(), false)));
        output.end(Counts::default()).expect("a whole file");
        let new = [&[("a".into(), false)][..], &old].concat();
        assert_eq!(left(&directory), new);
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let name = std::format!("lumalloc-no-file-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = |name: &str| directory.join(name);
        let c_path = |name: &str| {
            std::ffi::CString::new(path(name).into_os_string().into_encoded_bytes())
                .expect("a path")
        };
        std::os::unix::fs::symlink("nowhere", path("link")).expect("a link");
        std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
        std::fs::create_dir(path("inside")).expect("a directory");
        let mut output = std::boxed::Box::new(Output::new());
        let kinds = [("link", libc::ELOOP), ("socket", libc::ESPIPE), ("inside", libc::EISDIR)];
        for (name, error) in kinds {
            output.set_name(&c_path(name)).expect("a name");
            assert_eq!(output.begin(true), Err(error), "{name}");
            assert_eq!(output.begin(false), Err(libc::EEXIST), "{name}");
            assert!(!path(name).with_extension("tmp").exists());
        }
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn mappings_that_could_not_be_written_are_written_later() {
        let name = std::format!("lumalloc-mappings-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).expect("a path");
        let mut output = std::boxed::Box::new(Output::new());
        output.set_name(&name).expect("a name");
        output.begin(true).expect("a file");
        let begun = output.file.length;
        // For a time the file cannot be written to.
        output.file.kept.close();
        let mut nowhere = Path::new();
        nowhere.push(b"/nowhere/at/all").expect("room");
        let unfinished = core::mem::replace(&mut output.file.unfinished, nowhere);
        output.known.count = 0;
        assert!(!output.look_at_mappings());
        assert_eq!((output.file.length, output.file.error), (begun, libc::ENOENT));
        output.file.unfinished = unfinished;
        assert!(output.look_at_mappings() && output.file.length > begun);
        let whole = output.file.length;
        assert!(output.look_at_mappings() && output.file.length == whole, "each is written once");
        output.remove();
    }

    fn covers(known: &Known, address: u64) -> bool {
        ranges::find(known.ranges(), address).is_some()
    }

    #[test]
    fn a_mapping_is_new_once_and_when_another_file_takes_its_place() {
        let mut known = Known::NONE;
        let mapping =
            |start, name| Mapping { start, end: start + 16, offset: 0, name, build_id: b"" };
        // A library that was built anew has its name and its length.
        let built = |build_id| Mapping { build_id, ..mapping(0, b"/a") };
        assert!(known.add(&built(b"1")) && !known.add(&built(b"1")) && known.add(&built(b"2")));
        // The id cannot be read any more, and the file was replaced.
        assert!(!known.add(&built(b"")) && !known.add(&built(b"2")));
        let removed = mapping(0, b"/a (deleted)");
        assert!(!known.add(&removed) && known.add(&mapping(0, b"/b")) && known.add(&removed));
        assert!(known.add(&built(b"")) && known.add(&built(b"2")) && known.count == 1);
        assert!(known.add(&Mapping { offset: 4096, ..built(b"") }));
        let mut known = Known::NONE;
        assert!(known.add(&mapping(32, b"/a")) && !known.add(&mapping(32, b"/a")));
        assert!(known.add(&mapping(64, b"/a")) && known.add(&mapping(32, b"/b")));
        assert!(!known.add(&mapping(32, b"/b")) && known.count == 2);
        let covered = [31, 32, 47, 48, 64, 80].map(|address| covers(&known, address));
        assert_eq!(covered, [false, true, true, false, true, false]);
        // What overlaps others replaces them, and they are new when they come back.
        assert!(known.add(&mapping(40, b"/c")) && known.count == 2);
        let covered = [39, 40, 55, 56, 64].map(|address| covers(&known, address));
        assert_eq!(covered, [false, true, true, false, true]);
        assert!(known.add(&mapping(32, b"/b")) && known.add(&mapping(0, b"/d")));
        assert!(!known.add(&mapping(32, b"/b")) && known.count == 3);
        for n in 0..KNOWN as u64 {
            known.add(&mapping(1000 + 16 * n, b"/c"));
        }
        assert!(known.count == KNOWN && known.add(&mapping(1 << 40, b"/d")), "no room");
    }
}
