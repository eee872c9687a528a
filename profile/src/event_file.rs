//! The format of the heap monitor's files.
//!
//! A file is [`MAGIC`], and then chunks: a tag, the length of the payload in four bytes (the lowest
//! first), and the payload. Numbers are varints (LEB128). The chunks are described in
//! `docs/heap-monitor.md`.

use crate::varints::{LONGEST, Varints};
use core::ffi::c_int;
use lumalloc::control::monitor::{Event, What};

/// What the end of a file lacks, with the system's error number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unended {
    /// Its last chunks.
    Cut(c_int),
    /// Some of the chunks before, as of events that were dropped. It has its end, and its name
    /// unless the system refused that too.
    Lost(c_int),
    /// Its name.
    Unnamed(c_int),
}

/// What a file begins with. The last byte is the version.
pub(crate) const MAGIC: [u8; 8] = *b"LUMAEVT\x01";

/// Tags of chunks.
pub(crate) const PROCESS: u8 = b'P';
pub(crate) const MAPPINGS: u8 = b'M';
pub(crate) const STACKS: u8 = b'S';
pub(crate) const EVENTS: u8 = b'E';
pub(crate) const OLD: u8 = b'O';
pub(crate) const LIVE: u8 = b'L';
pub(crate) const DROPPED: u8 = b'X';
pub(crate) const MESSAGE: u8 = b'F';
pub(crate) const END: u8 = b'Z';

/// Bytes before the payload.
const HEAD: usize = 5;
/// The most bytes of an event.
const EVENT: usize = 4 * LONGEST;

const ALLOCATION: u64 = 0;
const DELETION: u64 = 1;
const THREAD: u64 = 2;

/// A chunk that is being made in a buffer. What has no room is left out, and told.
pub(crate) struct Chunk<'a>(Varints<'a>);

impl<'a> Chunk<'a> {
    /// Begins a chunk.
    pub(crate) fn new(buffer: &'a mut [u8], tag: u8) -> Chunk<'a> {
        let mut varints = Varints::resume(buffer, 0);
        varints.byte(tag);
        (1..HEAD).for_each(|_| varints.byte(0));
        Chunk(varints)
    }

    /// Goes on with a chunk that has so many bytes, or begins one.
    pub(crate) fn resume(buffer: &'a mut [u8], tag: u8, length: usize) -> Chunk<'a> {
        match length {
            0 => Chunk::new(buffer, tag),
            _ => Chunk(Varints::resume(buffer, length)),
        }
    }

    /// Returns how many bytes the chunk has.
    pub(crate) fn length(&self) -> usize {
        self.0.length()
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: u64) -> &mut Chunk<'a> {
        self.0.number(number);
        self
    }

    /// Appends the difference of a number to another one, so that small differences of both signs
    /// are short.
    pub(crate) fn difference(&mut self, number: u64, to: u64) -> &mut Chunk<'a> {
        let difference = number.wrapping_sub(to).cast_signed();
        self.number(((difference << 1) ^ (difference >> 63)).cast_unsigned())
    }

    /// Appends a text, with its length before it.
    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Chunk<'a> {
        self.0.bytes(text);
        self
    }

    /// Returns whether there is room for so many numbers.
    pub(crate) fn has_room(&self, numbers: usize) -> bool {
        numbers * LONGEST <= self.0.room()
    }

    /// Returns whether the payload is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.length() <= HEAD
    }

    /// Appends a stack.
    pub(crate) fn stack(&mut self, number: u32, frames: &[usize]) {
        self.number(u64::from(number)).number(frames.len() as u64);
        let mut last = 0;
        for (index, frame) in frames.iter().enumerate() {
            match index {
                0 => self.number(*frame as u64),
                _ => self.difference(*frame as u64, last),
            };
            last = *frame as u64;
        }
    }

    /// Appends events, and what is needed to read them.
    pub(crate) fn events(&mut self, events: &[Event]) {
        let Some(first) = events.first() else { return };
        let changes =
            events.windows(2).filter(|pair| matches!(pair, [a, b] if a.thread != b.thread));
        let count = events.len() + changes.count();
        self.number(u64::from(first.thread)).number(first.time).number(count as u64);
        let (mut time, mut address, mut thread) = (first.time, 0, first.thread);
        for event in events {
            if event.thread != thread {
                self.number(THREAD).number(u64::from(event.thread));
                thread = event.thread;
            }
            let (kind, value) = match event.what {
                What::Allocated { size } => (ALLOCATION, size),
                What::Freed { first } => (DELETION, first),
            };
            self.number(event.time.wrapping_sub(time) << 2 | kind);
            self.difference(event.address as u64, address).number(value as u64);
            self.number(u64::from(event.stack));
            (time, address) = (event.time, event.address as u64);
        }
    }

    /// Returns the bytes of the chunk. `None` if a part of it had no room.
    pub(crate) fn finish(mut self) -> Option<&'a [u8]> {
        let length = u32::try_from(self.length().checked_sub(HEAD)?).ok()?;
        for (place, byte) in self.0.tail_mut(1).iter_mut().zip(length.to_le_bytes()) {
            *place = byte;
        }
        self.0.finish()
    }
}

/// The most bytes of a chunk with so many events.
pub(crate) const fn room_for(events: usize) -> usize {
    // Each event may be of another thread.
    HEAD + 3 * LONGEST + events * (EVENT + 2 * LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        let mut buffer = [0; 64];
        let mut chunk = Chunk::new(&mut buffer, OLD);
        assert!(chunk.is_empty() && chunk.has_room(5) && !chunk.has_room(6));
        chunk.number(0).number(127).number(128).difference(10, 12).difference(12, 10);
        chunk.difference(0, u64::MAX).text(b"ab");
        let bytes = chunk.finish().expect("room");
        assert_eq!(bytes, [b'O', 10, 0, 0, 0, 0, 127, 0x80, 1, 3, 4, 2, 2, b'a', b'b']);
        let mut short = [0; HEAD];
        assert!(Chunk::new(&mut short, END).number(1).is_empty());
        let mut chunk = Chunk::new(&mut short, END);
        chunk.number(1);
        assert_eq!(chunk.finish(), None);
    }

    #[test]
    fn events_follow_each_other_by_differences() {
        let event = |time, address, what, thread| Event { time, address, what, stack: 3, thread };
        let events = [
            event(1000, 64, What::Allocated { size: 40 }, 7),
            event(1002, 64, What::Freed { first: 1 }, 7),
            event(1005, 48, What::Allocated { size: 8 }, 9),
        ];
        let mut buffer = [0; 128];
        let mut chunk = Chunk::new(&mut buffer, EVENTS);
        chunk.events(&events);
        let expected: Vec<u8> = [
            &[b'E', 19, 0, 0, 0, 7, 0xe8, 7, 4][..],
            &[0, 0x80, 1, 40, 3],
            &[2 << 2 | 1, 0, 1, 3],
            &[2, 9],
            &[3 << 2, 31, 8, 3],
        ]
        .concat();
        assert_eq!(chunk.finish(), Some(&expected[..]));
    }

    #[test]
    fn the_longest_events_have_room() {
        let event = |n: usize| Event {
            time: (n as u64) << 60,
            address: (n % 2) << 63,
            what: What::Freed { first: usize::MAX },
            stack: u32::MAX,
            thread: n as u32 | 1 << 31,
        };
        let events: Vec<Event> = (0..16).map(event).collect();
        let mut buffer = std::vec![0; room_for(events.len())];
        let mut chunk = Chunk::new(&mut buffer, EVENTS);
        chunk.events(&events);
        assert!(chunk.finish().is_some());
    }
}
