//! The events of one chunk.

use std::collections::VecDeque;

use super::index::{Events, Index};
use super::source::{Input, Trouble};

/// How many events are looked at in advance, at most.
const AHEAD: usize = 64;

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It was deleted. The first word: 0, 1 for what cannot be a v-table, or an address.
    Deletion(u64),
    /// It was allocated, with this requested size.
    Allocation(u64),
}

/// An allocation or a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The monotonic clock, in nanoseconds.
    pub(super) time: u64,
    /// The system's number of the thread.
    pub(super) thread: u64,
    /// The first byte of the block.
    pub(super) address: u64,
    /// What happened.
    pub(super) kind: Kind,
    /// The index of the stack.
    pub(super) stack: u32,
    /// The number of parts with mappings before the chunk.
    pub(super) seen: u32,
}

impl Event {
    /// Whether it is an allocation.
    pub(super) fn is_allocation(&self) -> bool {
        matches!(self.kind, Kind::Allocation(_))
    }

    /// The first word of a deleted block.
    pub(super) fn word(&self) -> u64 {
        match self.kind {
            Kind::Deletion(word) => word,
            Kind::Allocation(_) => 0,
        }
    }
}

/// Decodes a chunk.
pub(crate) struct Decoder<'a> {
    index: &'a Index,
    events: &'a Events,
    input: Input<'a>,
    thread: u64,
    time: u64,
    address: u64,
    /// How many are left.
    left: u64,
    /// Those that were decoded in advance.
    ahead: VecDeque<Event>,
}

impl<'a> Decoder<'a> {
    /// Begins with the first event. The error says why the file cannot be read.
    pub(super) fn new(index: &'a Index, events: &'a Events) -> Result<Decoder<'a>, String> {
        let mut input = events.chunk.input(&index.source);
        let mut head = || Ok::<_, Trouble>((input.number()?, input.number()?, input.number()?));
        // The index has the head, so it is complete.
        let (thread, time, left) = match head() {
            Ok(head) => head,
            Err(trouble) => index.note(&events.chunk, trouble).map(|_| (0, 0, 0))?,
        };
        let ahead = VecDeque::new();
        Ok(Decoder { index, events, input, thread, time, address: 0, left, ahead })
    }

    /// The next event: none behind damage, which the index notes. The error says why the file
    /// cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Event>, String> {
        match self.ahead.pop_front() {
            Some(event) => Ok(Some(event)),
            None => self.decode(),
        }
    }

    /// Whether one of the next events, at this time, is a deletion of the block at this address.
    pub(super) fn deletes(&mut self, address: u64, time: u64) -> Result<bool, String> {
        let mut place = 0;
        while place < AHEAD {
            if place == self.ahead.len() {
                match self.decode()? {
                    None => return Ok(false),
                    Some(event) => self.ahead.push_back(event),
                }
            }
            let event = &self.ahead[place];
            if event.time > time {
                return Ok(false);
            }
            if event.address == address && !event.is_allocation() {
                return Ok(true);
            }
            place += 1;
        }
        Ok(false)
    }

    fn decode(&mut self) -> Result<Option<Event>, String> {
        match self.try_decode() {
            Ok(event) => Ok(event),
            Err(trouble) => {
                self.left = 0;
                self.index.note(&self.events.chunk, trouble).map(|_| None)
            }
        }
    }

    fn try_decode(&mut self) -> Result<Option<Event>, Trouble> {
        while self.left > 0 {
            self.left -= 1;
            let head = self.input.number()?;
            let time = self.time.checked_add(head >> 2);
            self.time = time.ok_or_else(|| Trouble::damaged("a time has more than 64 bits"))?;
            match head & 3 {
                2 => self.thread = self.input.number()?,
                3 => return Err(Trouble::damaged("an event is of the unknown kind 3")),
                kind => return self.block(kind).map(Some),
            }
        }
        match self.input.left() {
            0 => Ok(None),
            _ => Err(Trouble::damaged("there are bytes behind its last event")),
        }
    }

    fn block(&mut self, kind: u64) -> Result<Event, Trouble> {
        self.address = self.input.signed(self.address)?;
        let value = self.input.number()?;
        let kind = if kind == 0 { Kind::Allocation(value) } else { Kind::Deletion(value) };
        let number = self.input.number()?;
        let stack = self.index.stacks.index(number, self.events.seen).ok_or_else(|| {
            Trouble::damaged(format!("an event has stack {number}, which is not in the file"))
        })?;
        let (thread, address, seen) = (self.thread, self.address, self.events.seen);
        Ok(Event { time: self.time, thread, address, kind, stack, seen })
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::testing::{File, Happens, START, number};
    use super::*;

    fn decoded(file: &File) -> (Vec<Event>, Vec<String>) {
        let index = Index::read(Source::Memory(file.bytes.clone())).expect("it is read");
        let mut decoder = Decoder::new(&index, &index.events[0]).expect("a head");
        let events = std::iter::from_fn(|| decoder.next().expect("it is read")).collect();
        assert_eq!(decoder.next(), Ok(None));
        (events, index.damage())
    }

    fn event(time: u64, thread: u64, address: u64, kind: Kind) -> Event {
        Event { time: time + START, thread, address, kind, stack: 1, seen: 0 }
    }

    fn sample() -> File {
        File::default().stack(9, &[1]).events(
            5,
            &[
                (0, Happens::New(0x2000, 24), 9),
                (3, Happens::New(0x1000, 0), 9),
                (3, Happens::Thread(6), 0),
                (7, Happens::Delete(0x2000, u64::MAX), 9),
            ],
        )
    }

    #[test]
    fn events_have_differences() {
        let expected = [
            event(0, 5, 0x2000, Kind::Allocation(24)),
            event(3, 5, 0x1000, Kind::Allocation(0)),
            event(7, 6, 0x2000, Kind::Deletion(u64::MAX)),
        ];
        assert_eq!(decoded(&sample()), (expected.to_vec(), vec![]));
        let mut cut = sample();
        cut.bytes.truncate(cut.bytes.len() - 1);
        assert_eq!(decoded(&cut), (expected[..2].to_vec(), vec![]));
    }

    #[test]
    fn events_can_be_looked_at_in_advance() {
        let file = sample();
        let index = Index::read(Source::Memory(file.bytes)).expect("it is read");
        let mut decoder = Decoder::new(&index, &index.events[0]).expect("a head");
        assert_eq!(decoder.deletes(0x2000, START + 6), Ok(false));
        assert_eq!(decoder.deletes(0x2000, START + 7), Ok(true));
        assert_eq!(decoder.deletes(0x1000, START + 9), Ok(false));
        let times = std::iter::from_fn(|| decoder.next().expect("an event"));
        assert_eq!(times.map(|event| event.time - START).collect::<Vec<_>>(), [0, 3, 7]);
    }

    #[test]
    fn damaged_events_are_named() {
        let at = File::default().bytes.len();
        let of = |events: &[&[u8]]| {
            let payload = [&[5, 0, events.len() as u8][..], &events.concat()].concat();
            decoded(&File::default().chunk(b'E', &payload)).1
        };
        let expected = |what: &str| {
            let lost = "the events behind that are missing";
            [format!("the chunk E at byte {at} is damaged: {what}; {lost}")]
        };
        assert_eq!(of(&[&[3]]), expected("an event is of the unknown kind 3"));
        assert_eq!(
            of(&[&[0, 2, 8, 7]]),
            expected("an event has stack 7, which is not in the file")
        );
        assert_eq!(of(&[&[0, 2, 8]]), expected("it ends within a value"));
        assert_eq!(of(&[&[0, 2, 8, 0, 0]]), expected("there are bytes behind its last event"));
        let mut late = Vec::new();
        number(&mut late, u64::MAX - 1);
        late.push(6);
        let repeated: Vec<&[u8]> = vec![&late; 5];
        assert_eq!(of(&repeated), expected("a time has more than 64 bits"));
    }
}
