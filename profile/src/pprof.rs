//! The format pprof: a gzipped message `perftools.profiles.Profile`, which `go tool pprof` and most
//! viewers read. Source: github.com/google/pprof, `proto/profile.proto`.
//!
//! - Values: allocations and bytes since the start (or the last reset), and those in use, both
//!   estimated from the samples. Bytes are usable sizes.
//! - Labels: `bytes`, the requested size, and on what is in use `arena`, `thread` and
//!   `thread_name`.
//! - Locations have addresses and mappings with build-ids, and no names: these are for the reader
//!   to find.
//! - The period is the number of bytes between two samples. At 1 each allocation was counted.
//!
//! Nothing is allocated. Without memory from the system the file is larger than need be, and has
//! no labels but `bytes`.

use crate::gzip::Gzip;
use crate::live_table::{Alike, LiveTable};
use crate::mappings;
use crate::notes::{self, Note};
use crate::process::now;
use crate::protobuf::Message;
use crate::ranges::{self, Range};
use crate::resets;
use crate::scratch::Scratch;
use crate::sink::{Sink, Text};
use crate::table::Table;
use crate::unbias::Estimate;
use lumalloc::observe::{self, ProfileEntry};

/// The strings that each file has, by their index.
const STRINGS: [&str; 12] = [
    "",
    "alloc_objects",
    "count",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "inuse_space",
    "space",
    "arena",
    "thread",
    "index",
    "thread_name",
];
const COUNT: u64 = 2;
const BYTES: u64 = 4;
const INUSE_SPACE: u64 = 6;
const SPACE: u64 = 7;
const ARENA: u64 = 8;
const THREAD: u64 = 9;
const INDEX: u64 = 10;
const THREAD_NAME: u64 = 11;
/// The four types of values, with their units.
const TYPES: [(u64, u64); 4] = [(1, COUNT), (3, BYTES), (5, COUNT), (INUSE_SPACE, BYTES)];

/// The number of the field `default_sample_type`.
const DEFAULT_TYPE: u8 = 14;
/// The bytes of that field which, at the end of a message, have viewers show `alloc_space` first.
pub const DEFAULT_ALLOC_SPACE: [u8; 2] = [DEFAULT_TYPE << 3, 3];

/// The most places of a table.
const MOST_PLACES: usize = 1 << 20;
/// The most places for names, of which the allocator keeps 3072.
const MOST_NAMES: usize = 4096;
/// Bytes of the largest message: a sample with 256 locations.
const LARGEST: usize = 256 * 10 + 256;

/// Words of a mapping in memory, whose third word is its number.
const MAPPING: usize = size_of::<Range>() / size_of::<u64>();

/// Indices of strings by the addresses of threads' names.
type Names<'a> = Table<'a, 1>;
/// Numbers of locations by address.
type Locations<'a> = Table<'a, 1>;

/// Writes the present profile. Returns `false` if the sink lost a part.
pub fn write(sink: &mut dyn Sink) -> bool {
    resets::write(sink, |sink, resets| write_after(resets, sink))
}

/// Writes the profile after so many resets.
fn write_after(resets: u64, sink: &mut dyn Sink) -> bool {
    let needs = Needs::now();
    let mut scratch = Scratch::new(needs.words());
    let (mappings, rest) = split(scratch.words(), needs.mappings * MAPPING);
    // Where there are only the spare words, all are for the locations.
    let is_spare = rest.len() < needs.words() - needs.mappings * MAPPING;
    let (labels, rest) = split(rest, if is_spare { 0 } else { needs.label_words() });
    let (names, locations) = split(rest, if is_spare { 0 } else { needs.name_words() });
    let mut gzip = Gzip::new(sink);
    let mut file = File {
        sink: &mut gzip,
        lg_sample: observe::lg_profile_sample(),
        strings: STRINGS.len() as u64,
        mappings: mappings.as_chunks_mut().0,
        known_mappings: 0,
        locations: Locations::new(locations),
        names: Names::new(names),
        last_location: 0,
        is_whole: true,
    };
    file.head(resets);
    file.mappings();
    let labels = LiveTable::collect(labels);
    let mut room = Room { packed: [0; LARGEST], message: [0; LARGEST] };
    observe::profile(|entry| file.entry(&entry, labels.is_none(), &mut room));
    labels.into_iter().for_each(|all| all.for_each(|one| file.labelled(one, &mut room)));
    // As among the first comments, unless the samples were reset meanwhile.
    file.comment("prof.resets.after", Note::Number(resets::count()));
    let is_whole = file.is_whole;
    gzip.end() && is_whole
}

fn split(words: &mut [u64], at: usize) -> (&mut [u64], &mut [u64]) {
    let at = at.min(words.len());
    words.split_at_mut_checked(at).unwrap_or_default()
}

/// What a profile needs memory for.
struct Needs {
    mappings: usize,
    frames: usize,
    live: usize,
}

impl Needs {
    fn now() -> Needs {
        let mut needs = Needs { mappings: 0, frames: 0, live: observe::profile_counts().live };
        mappings::for_each(|_| needs.mappings += 1);
        observe::profile(|entry| needs.frames += entry.stack.len());
        needs
    }

    fn label_words(&self) -> usize {
        // More samples may be taken meanwhile.
        (2 * self.live + 64).min(MOST_PLACES) * LiveTable::PLACE
    }

    fn name_words(&self) -> usize {
        (2 * self.live + 64).min(MOST_NAMES) * Names::PLACE
    }

    fn words(&self) -> usize {
        let locations = (2 * self.frames + 64).min(MOST_PLACES) * Locations::PLACE;
        self.mappings * MAPPING + self.label_words() + self.name_words() + locations
    }
}

/// Room for a message and for its longest field. It is cleared once, not for each sample.
struct Room {
    packed: [u8; LARGEST],
    message: [u8; LARGEST],
}

/// What samples in use have as labels.
struct Labelled {
    arena: u64,
    thread: u64,
    /// The index of the thread's name among the strings, or 0.
    name: u64,
}

/// A file that is being written.
struct File<'a> {
    sink: &'a mut dyn Sink,
    lg_sample: u32,
    /// Strings written.
    strings: u64,
    /// Room for the mappings, of which so many are there.
    mappings: &'a mut [Range],
    known_mappings: usize,
    locations: Locations<'a>,
    names: Names<'a>,
    last_location: u64,
    is_whole: bool,
}

impl File<'_> {
    /// Writes a field of the profile that has bytes: a string or a message.
    fn field(&mut self, field: u64, bytes: Option<&[u8]>) {
        self.field_of(field, bytes.map_or(0, <[u8]>::len));
        self.put(bytes);
    }

    /// Writes what stands before the bytes of a field.
    fn field_of(&mut self, field: u64, length: usize) {
        let mut head = [0; 16];
        let mut message = Message::new(&mut head);
        self.put(message.element(field << 3 | 2).element(length as u64).end());
    }

    fn put(&mut self, bytes: Option<&[u8]>) {
        let is_put = bytes.is_some_and(|bytes| self.sink.put(bytes));
        self.is_whole = self.is_whole && is_put;
    }

    /// Writes a field of the profile that is a number.
    fn number(&mut self, field: u64, number: u64) {
        let mut bytes = [0; 24];
        self.put(Message::new(&mut bytes).number(field, number).end());
    }

    /// Writes a string, and returns its index. The empty string has one already. Each byte that is
    /// no UTF-8, as paths may have, becomes `?`: readers refuse these.
    fn string(&mut self, string: &[u8]) -> u64 {
        if string.is_empty() {
            return 0;
        }
        self.field_of(6, string.len());
        for part in string.utf8_chunks() {
            self.put(Some(part.valid().as_bytes()));
            part.invalid().iter().for_each(|_| self.put(Some(b"?")));
        }
        self.strings += 1;
        self.strings - 1
    }

    /// Writes what describes the profile.
    fn head(&mut self, resets: u64) {
        STRINGS.iter().for_each(|string| self.field(6, Some(string.as_bytes())));
        let mut bytes = [0; 16];
        for (kind, unit) in TYPES {
            self.field(1, Message::new(&mut bytes).number(1, kind).number(2, unit).end());
        }
        self.field(11, Message::new(&mut bytes).number(1, SPACE).number(2, BYTES).end());
        self.number(12, 1 << self.lg_sample.min(62));
        self.number(DEFAULT_TYPE.into(), INUSE_SPACE);
        self.number(9, now());
        notes::for_each(resets, |name, note| self.comment(name, note));
    }

    /// Writes a comment: a name, and a number or a text.
    fn comment(&mut self, name: &str, note: Note) {
        let mut line = Line { bytes: [0; 64], length: 0 };
        let mut text = Text::new(&mut line);
        note.write(name, &mut text);
        text.end();
        let index = self.string(line.bytes.get(..line.length).unwrap_or_default());
        self.number(13, index);
    }

    /// Writes the mappings, and notes where they are.
    fn mappings(&mut self) {
        let mut bytes = [0; 96];
        let mut number = 0;
        mappings::for_each(|mapping| {
            number += 1;
            let name = self.string(mapping.name);
            let build_id = self.string(mapping.build_id);
            let mut message = Message::new(&mut bytes);
            message.number(1, number).number(2, mapping.start).number(3, mapping.end);
            message.number(4, mapping.offset).number(5, name).number(6, build_id);
            self.field(3, message.end());
            if let Some(place) = self.mappings.get_mut(self.known_mappings) {
                *place = [mapping.start, mapping.end, number];
                self.known_mappings += 1;
            }
        });
    }

    /// Returns the number of the mapping of an address, or 0.
    fn mapping_of(&self, address: u64) -> u64 {
        let known = self.mappings.get(..self.known_mappings).unwrap_or_default();
        ranges::find(known, address).unwrap_or(0)
    }

    /// Returns the number of the location of a return address. Writes the location if it is new.
    fn location(&mut self, frame: usize) -> u64 {
        // The address of a call is before the one that it returns to.
        let address = (frame as u64).wrapping_sub(1);
        let next = self.last_location + 1;
        if let Some(known) = self.locations.value(&[address]) {
            if *known != 0 {
                return *known;
            }
            *known = next;
        }
        self.last_location = next;
        let mut bytes = [0; 40];
        let mut message = Message::new(&mut bytes);
        message.number(1, next).number(2, self.mapping_of(address)).number(3, address);
        self.field(4, message.end());
        next
    }

    /// Writes what was allocated by one stack in one size, and with `and_live` what is in use.
    fn entry(&mut self, entry: &ProfileEntry, and_live: bool, room: &mut Room) {
        let live = if and_live { entry.allocated.saturating_sub(entry.freed) } else { 0 };
        let counts = [entry.allocated, live];
        self.sample(entry.stack, counts, entry.requested, entry.usable, None, room);
    }

    /// Writes what is in use of one stack and size, of an arena and a thread.
    fn labelled(&mut self, alike: Alike, room: &mut Room) {
        let Alike { stack, requested, usable, arena, thread, thread_name, samples } = alike;
        let labels = Labelled { arena, thread, name: self.name(thread_name) };
        self.sample(stack, [0, samples], requested, usable, Some(&labels), room);
    }

    /// Returns the index of the string for a thread's name. Writes the string if it is new.
    fn name(&mut self, name: &'static [u8]) -> u64 {
        if name.is_empty() {
            return 0;
        }
        if let Some(known) = self.names.value(&[name.as_ptr().addr() as u64]) {
            if *known != 0 {
                return *known;
            }
            *known = self.strings;
        }
        self.string(name)
    }

    /// Writes a sample: `counts` samples since the start, and in use.
    fn sample(
        &mut self,
        stack: &[usize],
        counts: [u64; 2],
        requested: usize,
        usable: usize,
        labels: Option<&Labelled>,
        room: &mut Room,
    ) {
        let mut locations = Message::new(&mut room.packed);
        stack.iter().for_each(|frame| {
            locations.element(self.location(*frame));
        });
        let mut message = Message::new(&mut room.message);
        message.bytes(1, locations.end().unwrap_or_default());
        let mut packed = [0; 48];
        let mut values = Message::new(&mut packed);
        for count in counts {
            let mut estimate = Estimate::default();
            estimate.add(count, usable, self.lg_sample);
            values.element(rounded(estimate.count)).element(rounded(estimate.bytes));
        }
        message.bytes(2, values.end().unwrap_or_default());
        let mut label = |key: u64, number: u64, unit: u64| {
            let mut bytes = [0; 24];
            let mut label = Message::new(&mut bytes);
            label.number(1, key).number(3, number).number(4, unit);
            message.bytes(3, label.end().unwrap_or_default());
        };
        label(BYTES, requested as u64, BYTES);
        if let Some(labels) = labels {
            label(ARENA, labels.arena, INDEX);
            label(THREAD, labels.thread, INDEX);
            if labels.name != 0 {
                let mut bytes = [0; 24];
                let mut label = Message::new(&mut bytes);
                label.number(1, THREAD_NAME).number(2, labels.name);
                message.bytes(3, label.end().unwrap_or_default());
            }
        }
        self.field(2, message.end());
    }
}

fn rounded(value: f64) -> u64 {
    libm::round(value) as u64
}

/// A short text.
struct Line {
    bytes: [u8; 64],
    length: usize,
}

impl Sink for Line {
    fn put(&mut self, bytes: &[u8]) -> bool {
        let room = self.bytes.get_mut(self.length..).unwrap_or_default();
        room.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        self.length = (self.length + bytes.len()).min(self.bytes.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn strings_are_utf_8() {
        let mut bytes = Vec::new();
        let mut file = File {
            sink: &mut bytes,
            lg_sample: 19,
            strings: 12,
            mappings: &mut [],
            known_mappings: 0,
            locations: Locations::new(&mut []),
            names: Names::new(&mut []),
            last_location: 0,
            is_whole: true,
        };
        let strings = [&b"/b\xc3\xa4r"[..], b"", b"/a\xff\xc3/b"];
        assert_eq!(strings.map(|string| file.string(string)), [12, 0, 13]);
        assert!(file.is_whole);
        assert_eq!(bytes, b"\x32\x05/b\xc3\xa4r\x32\x06/a??/b");
    }
}
