//! An event file: what `lumalloc events` reads.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::chunks::MAGIC;
use super::index::{Index, Message, Process};
use super::mappings::Mappings;
use super::merge::Merge;
use super::old::{self, Last, OldBlock};
use super::source::Source;
use super::stacks::Stacks;
use crate::error::{Error, Result, reason};
use crate::symbols::printable;

/// Returns whether a regular file begins as a recording does. Of a pipe what is read is gone.
pub fn is_recording(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let is_read = path.is_file()
        && File::open(path).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok());
    is_read && begin == MAGIC
}

/// A recording of the heap monitor.
///
/// The events are read anew for each view, so that a file may be larger than the memory.
pub struct Recording {
    path: PathBuf,
    index: Index,
    old: Vec<OldBlock>,
    last: HashMap<u64, Last>,
}

impl Recording {
    /// Reads a file, without its events.
    ///
    /// # Errors
    ///
    /// The message names the file and says why nothing of it can be shown. That the file is cut off
    /// is no error, and what is damaged behind its begin neither: see [`Recording::damage`].
    pub fn open(path: &Path) -> Result<Recording> {
        let source =
            Source::open(path, MAGIC).map_err(|error| Error::of_file(path, reason(&error)))?;
        Recording::read(source, path).map_err(|what| Error::of_file(path, what))
    }

    fn read(source: Source, path: &Path) -> std::result::Result<Recording, String> {
        let index = Index::read(source)?;
        let (old, last) = (old::find(&index)?, old::find_last(&index)?);
        Ok(Recording { path: path.to_owned(), index, old, last })
    }

    /// The process that was recorded.
    pub fn process(&self) -> &Process {
        &self.index.process
    }

    /// What the allocator said when it ended the process.
    pub fn messages(&self) -> &[Message] {
        &self.index.messages
    }

    /// How many events could not be written.
    pub fn dropped(&self) -> u64 {
        self.index.dropped
    }

    /// Why events are missing, if they are. Damage of events is known once they have been read. An
    /// allocator that ends the process writes the events that it has.
    pub(super) fn lack(&self) -> Option<&'static str> {
        let is_cut = self.index.is_cut && self.messages().is_empty();
        let lacks = [
            (self.dropped() > 0, "were dropped"),
            (self.damage().is_some(), "are missing, because the file is damaged"),
            (is_cut, "are missing, because the file has no end"),
        ];
        lacks.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
    }

    /// What the user should know about the file.
    pub fn notes(&self) -> Vec<String> {
        let path = printable(self.path.display().to_string());
        let why = match self.messages().last() {
            Some(message) => {
                let text = printable(message.text.trim_end().replace('\n', " "));
                format!("the allocator ended the process, with the message \"{text}\"")
            }
            None => {
                "the process was killed, ended by _exit, became another program by exec, or is \
                     still recorded"
                    .to_owned()
            }
        };
        let cut = format!("{path}: it has no end: {why}; what is there is shown");
        let dropped = match self.dropped() {
            1 => format!("{path}: 1 event could not be written; its block is shown wrongly"),
            count => format!(
                "{path}: {count} events could not be written; their blocks are shown wrongly"
            ),
        };
        let notes = [(self.index.is_cut, cut), (self.dropped() > 0, dropped)];
        notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect()
    }

    /// What is damaged, and what is missing by that. The rest is shown. Damage of events is known
    /// once they have been read.
    pub fn damage(&self) -> Option<Error> {
        let damage = self.index.damage();
        let (first, others) = damage.split_first()?;
        let what = match others.len() {
            0 => first.clone(),
            1 => format!("{first}; 1 other chunk is damaged too"),
            count if self.index.has_more_damage() => {
                format!("{first}; more than {count} other chunks are damaged too")
            }
            count => format!("{first}; {count} other chunks are damaged too"),
        };
        Some(Error::of_file(&self.path, what))
    }

    /// A moment in microseconds since 1970.
    pub(crate) fn microseconds(&self, time: u64) -> u64 {
        let process = self.process();
        let nanoseconds = i128::from(process.epoch) + i128::from(time) - i128::from(process.start);
        u64::try_from(nanoseconds.max(0) / 1000).unwrap_or(u64::MAX)
    }

    /// The name of a thread: the process and the system's number of the thread.
    pub(crate) fn thread(&self, thread: u64) -> String {
        format!("{}-{thread}", self.process().pid)
    }

    /// Whether a block that is deleted at this time and of which nothing else is known may be older
    /// than the recording. Without a list of old blocks each one may.
    pub(crate) fn may_be_old(&self, time: u64) -> bool {
        self.index.old.last().is_none_or(|old| time <= old.time)
    }

    /// Whether the allocator ended the process with a message about this address.
    pub(crate) fn is_complained_of(&self, address: u64) -> bool {
        let address = format!("{address:#x}");
        let has = |text: &str| {
            text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == address)
        };
        self.messages().iter().any(|message| has(&message.text))
    }

    /// The last time of the file that belongs to no event.
    pub(crate) fn last(&self) -> u64 {
        self.index.last
    }

    /// The blocks that were live when the recording began.
    pub(crate) fn old_blocks(&self) -> &[OldBlock] {
        &self.old
    }

    /// The first word of a block that an event at this time allocated and none deleted, and the
    /// mappings that were known when it was read at the end. `None`: it was not read.
    pub(crate) fn last_word(&self, address: u64, allocated: u64) -> Option<(u64, u32)> {
        self.last.get(&address)?.of_allocation(allocated)
    }

    /// What was mapped.
    pub(crate) fn mappings(&self) -> &Mappings {
        &self.index.mappings
    }

    /// The stacks of the events.
    pub(crate) fn stacks(&self) -> &Stacks {
        &self.index.stacks
    }

    /// The events in the order of their times. What is wrong with the file names it.
    pub(crate) fn events(&self) -> impl Iterator<Item = Result<super::decoder::Event>> + '_ {
        Merge::new(&self.index).map(|event| event.map_err(|what| Error::of_file(&self.path, what)))
    }

    /// Reads a file from memory.
    #[cfg(test)]
    pub(crate) fn try_of(file: &super::testing::File) -> std::result::Result<Recording, String> {
        Recording::read(Source::Memory(file.bytes.clone()), Path::new("x.events"))
    }

    /// Reads a file from memory that is not damaged before its events.
    #[cfg(test)]
    pub(crate) fn of(file: &super::testing::File) -> Recording {
        Recording::try_of(file).expect("a recording")
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EPOCH, File, START};
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        assert_eq!(Recording::of(&File::default().end(1, 0)).notes(), [""; 0]);
        let cut = "x.events: it has no end: the process was killed, ended by _exit, became \
                   another program by exec, or is still recorded; what is there is shown";
        let one = "x.events: 1 event could not be written; its block is shown wrongly";
        let many = "x.events: 7 events could not be written; their blocks are shown wrongly";
        assert_eq!(Recording::of(&File::default().dropped(1, 1)).notes(), [cut, one]);
        assert_eq!(Recording::of(&File::default().end(1, 7)).notes(), [many]);
        let ended =
            File::default().message(3, "<lumalloc>: double free of 0x10\x1b\n").dropped(1, 1);
        let why = "x.events: it has no end: the allocator ended the process, with the message \
                   \"<lumalloc>: double free of 0x10\u{fffd}\"; what is there is shown";
        assert_eq!(Recording::of(&ended).notes(), [why, one]);
    }

    #[test]
    fn damage_beside_the_events_is_told() {
        let damage = |file: &File| Recording::of(file).damage().map(|it| it.to_string());
        let at = File::default().bytes.len();
        let file = File::default();
        assert_eq!(damage(&file), None);
        let one = format!(
            "x.events: the chunk F at byte {at} is damaged: it ends within a value; its message of \
             the allocator is missing"
        );
        let file = file.chunk(b'F', &[]);
        assert_eq!(damage(&file), Some(one.clone()));
        let file = file.chunk(b'O', &[1, 2]);
        assert_eq!(damage(&file), Some(format!("{one}; 1 other chunk is damaged too")));
        let file = file.chunk(b'S', &[1]);
        assert_eq!(damage(&file), Some(format!("{one}; 2 other chunks are damaged too")));
        let file = (0..100).fold(file, |file, _| file.chunk(b'S', &[1]));
        assert_eq!(
            damage(&file),
            Some(format!("{one}; more than 99 other chunks are damaged too"))
        );
    }

    #[test]
    fn addresses_that_messages_are_about_are_known() {
        let text = "<lumalloc>: invalid free of 0x7a18: inside the block 0x7a10 (64 bytes)\n";
        let recording = Recording::of(&File::default().message(3, text));
        let about = [0x7a18, 0x7a10, 0x7a1, 0xa18, 64].map(|it| recording.is_complained_of(it));
        assert_eq!(about, [true, true, false, false, false]);
        assert!(!Recording::of(&File::default()).is_complained_of(0));
    }

    #[test]
    fn times_are_microseconds_since_1970() {
        let recording = Recording::of(&File::default());
        assert_eq!(recording.microseconds(START), EPOCH / 1000);
        assert_eq!(recording.microseconds(START + 2999), EPOCH / 1000 + 2);
        assert_eq!(recording.microseconds(START - 1), EPOCH / 1000 - 1);
        let most = (u128::from(EPOCH) + u128::from(u64::MAX - START)) / 1000;
        assert_eq!(u128::from(recording.microseconds(u64::MAX)), most);
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let error =
            |path: &str| Recording::open(Path::new(path)).err().expect("an error").to_string();
        assert_eq!(error("/nowhere/x.events"), "/nowhere/x.events: no such file or directory");
        assert_eq!(error("/"), "/: is a directory");
        assert_eq!(error("/dev/null"), "/dev/null: the file is empty");
    }

    #[test]
    fn damage_of_events_is_told_once() {
        let file = File::default().chunk(b'E', &[5, 0, 1, 3]).chunk(b'F', &[]);
        let at = File::default().bytes.len();
        let recording = Recording::of(&file);
        assert_eq!(recording.events().count() + recording.events().count(), 0);
        let what = format!(
            "x.events: the chunk E at byte {at} is damaged: an event is of the unknown kind 3; the \
             events behind that are missing; 1 other chunk is damaged too"
        );
        assert_eq!(recording.damage().map(|it| it.to_string()), Some(what));
    }
}
