//! Everything of an event file but the events: the process, mappings, stacks, messages, and where
//! the events lie.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::chunks::{Chunk, find};
use super::mappings::Mappings;
use super::source::{Input, Source, Trouble};
use super::stacks::Stacks;
use crate::profile::Mapping;

/// The process that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u64,
    /// The monotonic clock at the start of the recording, in nanoseconds.
    pub start: u64,
    /// The same moment in nanoseconds since 1970.
    pub epoch: u64,
    /// The allocator and its version.
    pub allocator: String,
    /// The path of the program.
    pub program: String,
}

/// A message of the allocator, which found a misuse and ended the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The monotonic clock.
    pub time: u64,
    /// The text.
    pub text: String,
}

/// A chunk with events of one buffer.
pub(crate) struct Events {
    /// Where they lie.
    pub(super) chunk: Chunk,
    /// The time of the first one.
    pub(super) time: u64,
    /// The number of parts with mappings before the chunk.
    pub(super) seen: u32,
}

/// A chunk with blocks that were live when the recording began, or ended.
pub(crate) struct OldBlocks {
    /// Where they lie.
    pub(super) chunk: Chunk,
    /// When they were looked at.
    pub(super) time: u64,
    /// The number of parts with mappings before the chunk.
    pub(super) seen: u32,
}

/// What an event file contains.
pub(crate) struct Index {
    /// The bytes.
    pub(super) source: Source,
    /// The process.
    pub(super) process: Process,
    /// What was mapped.
    pub(super) mappings: Mappings,
    /// The stacks.
    pub(super) stacks: Stacks,
    /// The chunks with events, in the order of their first times.
    pub(super) events: Vec<Events>,
    /// The chunks with old blocks, in the order of their times.
    pub(super) old: Vec<OldBlocks>,
    /// The chunks with blocks that were live near the end.
    pub(super) live: Vec<OldBlocks>,
    /// What the allocator said.
    pub(super) messages: Vec<Message>,
    /// How many events could not be written.
    pub(super) dropped: u64,
    /// The last time of a chunk without events: that of the end, if the file has it.
    pub(super) last: u64,
    /// Whether the end of the file is missing.
    pub(super) is_cut: bool,
    /// The chunks of which not everything could be read, by their places, and what is missing by
    /// that. Chunks of events are read later than the others, and more than once.
    damage: RefCell<BTreeMap<u64, String>>,
    /// Whether more chunks than those are damaged.
    has_more_damage: Cell<bool>,
}

/// Of so many damaged chunks the damage is told.
const MOST_DAMAGE: usize = 100;

impl Index {
    /// Reads a file. The error says why nothing of it can be shown.
    pub(super) fn read(source: Source) -> Result<Index, String> {
        let (chunks, is_cut) = find(&source)?;
        let Some((first, rest)) = chunks.split_first() else {
            return Err("the file is cut off before it names the process".to_owned());
        };
        if first.tag != b'P' {
            let tag = char::from(first.tag).escape_default();
            return Err(format!("its first chunk is {tag} and not P, which names the process"));
        }
        let process = read_process(&mut first.input(&source)).or_else(|trouble| {
            first.trouble(trouble)?;
            Err("the file is cut off before it names the process".to_owned())
        })?;
        let mut index = Index {
            source: Source::Memory(Vec::new()),
            last: process.start,
            process,
            mappings: Mappings::default(),
            stacks: Stacks::default(),
            events: Vec::new(),
            old: Vec::new(),
            live: Vec::new(),
            messages: Vec::new(),
            dropped: 0,
            is_cut: is_cut || chunks.last().is_none_or(|last| last.tag != b'Z'),
            damage: RefCell::default(),
            has_more_damage: Cell::new(false),
        };
        for chunk in rest {
            if let Err(trouble) = index.read_chunk(*chunk, &mut chunk.input(&source))
                && index.note(chunk, trouble)?
            {
                index.stacks.are_incomplete |= chunk.tag == b'S';
            }
        }
        index.stacks.add_later(&index.mappings);
        index.source = source;
        index.events.sort_by_key(|events| events.time);
        index.old.sort_by_key(|old| old.time);
        Ok(index)
    }

    /// Notes what is wrong with a chunk. Returns whether something of it is missing by that, beside
    /// what is cut off. The error says why the file cannot be read.
    pub(super) fn note(&self, chunk: &Chunk, trouble: Trouble) -> Result<bool, String> {
        let Some(loss) = chunk.loss(trouble)? else { return Ok(false) };
        let mut damage = self.damage.borrow_mut();
        if damage.len() < MOST_DAMAGE {
            damage.entry(chunk.at()).or_insert(loss);
        } else if !damage.contains_key(&chunk.at()) {
            self.has_more_damage.set(true);
        }
        Ok(true)
    }

    /// What is damaged in the first damaged chunks that were read so far, in the order of the file.
    pub(super) fn damage(&self) -> Vec<String> {
        self.damage.borrow().values().cloned().collect()
    }

    /// Whether more chunks are damaged than [`damage`](Self::damage) has.
    pub(super) fn has_more_damage(&self) -> bool {
        self.has_more_damage.get()
    }

    fn read_chunk(&mut self, chunk: Chunk, input: &mut Input<'_>) -> Result<(), Trouble> {
        let seen = self.mappings.count();
        match chunk.tag {
            b'P' => return Err(Trouble::damaged("the process is named a second time")),
            b'M' => self.read_mappings(input)?,
            b'S' => self.read_stacks(input)?,
            b'E' => {
                input.number()?;
                let time = input.number()?;
                input.number()?;
                self.events.push(Events { chunk, time, seen });
            }
            b'O' => {
                let time = input.number()?;
                self.old.push(OldBlocks { chunk, time, seen });
            }
            b'L' => {
                let time = input.number()?;
                self.live.push(OldBlocks { chunk, time, seen });
            }
            b'X' => {
                let (dropped, time) = (input.number()?, input.number()?);
                self.dropped = self.dropped.max(dropped);
                self.last = self.last.max(time);
            }
            b'F' => {
                let message = Message { time: input.number()?, text: input.text()? };
                self.last = self.last.max(message.time);
                self.messages.push(message);
            }
            b'Z' => {
                let (time, _, dropped) = (input.number()?, input.number()?, input.number()?);
                self.last = self.last.max(time);
                self.dropped = self.dropped.max(dropped);
            }
            _ => {}
        }
        Ok(())
    }

    fn read_mappings(&mut self, input: &mut Input<'_>) -> Result<(), Trouble> {
        self.mappings.begin();
        while input.left() > 0 {
            let (start, limit, offset) = (input.number()?, input.number()?, input.number()?);
            let (file, build_id) = (input.path()?, input.text()?);
            if limit < start {
                return Err(Trouble::damaged("a mapping ends before it begins"));
            }
            self.mappings.add(Mapping { start, limit, offset, file, build_id });
        }
        Ok(())
    }

    fn read_stacks(&mut self, input: &mut Input<'_>) -> Result<(), Trouble> {
        let mut addresses = Vec::new();
        while input.left() > 0 {
            let (number, depth) = (input.number()?, input.number()?);
            addresses.clear();
            for _ in 0..depth {
                let next = match addresses.last() {
                    None => input.number()?,
                    Some(last) => input.signed(*last)?,
                };
                addresses.push(next);
            }
            self.stacks.add(number, &addresses, self.mappings.count());
        }
        Ok(())
    }
}

fn read_process(input: &mut Input<'_>) -> Result<Process, Trouble> {
    Ok(Process {
        pid: input.number()?,
        start: input.number()?,
        epoch: input.number()?,
        allocator: input.text()?,
        program: input.text()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EPOCH, File, START, number};
    use super::*;

    fn read(file: &File) -> Result<Index, String> {
        Index::read(Source::Memory(file.bytes.clone()))
    }

    fn error(file: &File) -> String {
        read(file).err().expect("an error")
    }

    #[test]
    fn everything_is_read() {
        let file = File::default()
            .mapping([0x1000, 0x2000, 0], "/bin/x", "ab")
            .stack(3, &[0x1010, 0x1001])
            .chunk(b'?', b"unknown")
            .message(7, "double free")
            .dropped(2, 8)
            .end(9, 5);
        let index = read(&file).expect("it is read");
        let process = Process {
            pid: 22,
            start: START,
            epoch: EPOCH,
            allocator: "lumalloc 0.1.0".into(),
            program: "/bin/x".into(),
        };
        assert_eq!(index.process, process);
        assert_eq!(index.mappings.order(1).collect::<Vec<_>>(), [0]);
        assert_eq!(index.stacks.iter().nth(1), Some((&[0x1010, 0x1001][..], 1)));
        assert_eq!(index.messages, [Message { time: START + 7, text: "double free".into() }]);
        assert_eq!((index.dropped, index.last, index.is_cut), (5, START + 9, false));
    }

    #[test]
    fn a_file_without_an_end_is_cut_off() {
        let file = File::default().dropped(2, 8);
        let index = read(&file).expect("it is read");
        assert_eq!((index.dropped, index.last, index.is_cut), (2, START + 8, true));
        let mut file = File::default().stack(3, &[1, 2]).end(9, 0);
        file.bytes.truncate(file.bytes.len() - 1);
        assert!(read(&file).expect("it is read").is_cut);
        let mut file = File::default().stack(3, &[1, 2]);
        file.bytes.truncate(file.bytes.len() - 1);
        let index = read(&file).expect("it is read");
        assert_eq!((index.stacks.index(3, 0), index.is_cut), (None, true));
    }

    #[test]
    fn damaged_chunks_are_named() {
        let at = File::default().bytes.len();
        let mut huge = vec![1];
        number(&mut huge, u64::MAX);
        for (tag, payload, what) in [
            ('P', &b""[..], "the process is named a second time"),
            ('M', &[2, 1, 0, 0, 0], "a mapping ends before it begins"),
            ('S', &[1, 9, 5], "it ends within a value"),
            ('S', &huge, "it ends within a value"),
            ('E', &[1], "it ends within a value"),
            ('F', &[1, 200, 1], "it ends within a value"),
            ('Z', &[0xff; 10], "a number has more than 64 bits"),
        ] {
            let file = File::default().chunk(tag as u8, payload).end(9, 5);
            let index = read(&file).expect("it is read");
            let begin = format!("the chunk {tag} at byte {at} is damaged: {what}; ");
            let damage = index.damage();
            let [damage] = &damage[..] else { panic!("{damage:?}") };
            assert!(damage.starts_with(&begin), "{damage}");
            // What follows is read.
            assert_eq!((index.dropped, index.last, index.is_cut), (5, START + 9, false));
        }
    }

    #[test]
    fn of_much_damage_a_part_is_named() {
        let mut file = File::default();
        for _ in 0..MOST_DAMAGE + 5 {
            file = file.chunk(b'P', b"");
        }
        let index = read(&file).expect("it is read");
        assert_eq!((index.damage().len(), index.has_more_damage()), (MOST_DAMAGE, true));
    }

    #[test]
    fn the_number_of_a_lost_stack_is_no_damage() {
        let lost = File::default().stack(3, &[1, 2]).chunk(b'S', &[4, 2, 1]).stack(5, &[3]);
        let index = read(&lost).expect("it is read");
        assert_eq!(
            [3, 4, 5, 0].map(|number| index.stacks.index(number, 0)),
            [1, 0, 2, 0].map(Some)
        );
    }

    #[test]
    fn the_process_comes_first() {
        let mut bytes = File::default().bytes;
        bytes.truncate(8);
        let cut = "the file is cut off before it names the process";
        assert_eq!(error(&File { bytes: bytes.clone() }), cut);
        let other = File { bytes }.chunk(b'S', b"");
        assert_eq!(error(&other), "its first chunk is S and not P, which names the process");
        let mut bytes = File::default().bytes;
        bytes.truncate(bytes.len() - 1);
        assert_eq!(error(&File { bytes }), cut);
    }
}
