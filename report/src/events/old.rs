//! The blocks that were live when the recording began, and when it ended.

use std::collections::{HashMap, HashSet};

use super::index::{Index, OldBlocks};
use super::merge::Merge;
use super::source::Trouble;

/// A block that was allocated before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldBlock {
    /// Its first byte.
    pub(super) address: u64,
    /// The usable size.
    pub(super) size: u64,
    /// The first word, as in a deletion.
    pub(super) word: u64,
    /// The number of parts with mappings before the chunk.
    pub(super) seen: u32,
}

/// What a block began with near the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    /// A time before it was read.
    time: u64,
    /// The first word, as in a deletion.
    word: u64,
    /// The number of parts with mappings before the chunk.
    seen: u32,
}

impl Last {
    /// The first word of the block that was allocated at a time and not deleted since, and the
    /// mappings that were known. `None` if another block was read at its address.
    pub(super) fn of_allocation(self, time: u64) -> Option<(u64, u32)> {
        (time <= self.time).then_some((self.word, self.seen))
    }
}

/// Returns what the blocks that were live near the end began with, by their addresses.
pub(super) fn find_last(index: &Index) -> Result<HashMap<u64, Last>, String> {
    let mut found = HashMap::new();
    for live in &index.live {
        let mut blocks = Vec::new();
        if let Err(trouble) = read(index, live, &mut blocks) {
            index.note(&live.chunk, trouble)?;
        }
        found.extend(blocks.into_iter().map(|OldBlock { address, word, seen, .. }| {
            (address, Last { time: live.time, word, seen })
        }));
    }
    Ok(found)
}

/// Returns the old blocks in the order of the file. A block that an event before allocated is not
/// old, although it was live when the old blocks were looked at.
pub(super) fn find(index: &Index) -> Result<Vec<OldBlock>, String> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    // The blocks that the events so far allocated and did not delete.
    let mut new = HashSet::new();
    let mut events = Merge::new(index).map_while(Result::ok).peekable();
    for old in &index.old {
        while let Some(event) = events.next_if(|event| event.time <= old.time) {
            match event.is_allocation() {
                true => new.insert(event.address),
                false => new.remove(&event.address),
            };
        }
        let mut blocks = Vec::new();
        if let Err(trouble) = read(index, old, &mut blocks) {
            index.note(&old.chunk, trouble)?;
        }
        found.extend(
            blocks
                .into_iter()
                .filter(|block| !new.contains(&block.address) && known.insert(block.address)),
        );
    }
    Ok(found)
}

fn read(index: &Index, old: &OldBlocks, into: &mut Vec<OldBlock>) -> Result<(), Trouble> {
    let mut input = old.chunk.input(&index.source);
    input.number()?;
    let mut address = 0;
    while input.left() > 0 {
        address = input.signed(address)?;
        let (size, word, seen) = (input.number()?, input.number()?, old.seen);
        into.push(OldBlock { address, size, word, seen });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::super::testing::{File, Happens};
    use super::*;

    fn found(file: &File) -> (Vec<u64>, Vec<String>) {
        let index = Index::read(Source::Memory(file.bytes.clone())).expect("it is read");
        let blocks = find(&index).expect("they are read");
        (blocks.iter().map(|block| block.address).collect(), index.damage())
    }

    #[test]
    fn a_block_of_an_earlier_event_is_not_old() {
        let new = |address| Happens::New(address, 8);
        let delete = |address| Happens::Delete(address, 0);
        let file = File::default()
            .old(10, &[[0x10, 8, 0], [0x20, 8, 1], [0x30, 8, 0], [0x40, 8, 0]])
            .old(20, &[[0x50, 8, 0], [0x10, 8, 0], [0x60, 8, 0]])
            .events(1, &[(1, new(0x20), 0), (2, new(0x30), 0), (11, new(0x40), 0)])
            .events(2, &[(3, delete(0x30), 0), (12, new(0x50), 0), (21, new(0x60), 0)]);
        assert_eq!(found(&file), (vec![0x10, 0x30, 0x40, 0x60], vec![]));
    }

    #[test]
    fn a_damaged_chunk_is_named_and_the_others_are_read() {
        let at = File::default().bytes.len();
        let file = File::default().chunk(b'O', &[1, 0x20, 8, 0, 2, 3]).old(9, &[[0x30, 8, 0]]);
        let what = format!(
            "the chunk O at byte {at} is damaged: it ends within a value; the old blocks behind \
             that are missing"
        );
        assert_eq!(found(&file), (vec![0x10, 0x30], vec![what]));
        let mut cut = File::default().old(1, &[[0x10, 8, 0], [0x20, 8, 0]]);
        cut.bytes.truncate(cut.bytes.len() - 1);
        assert_eq!(found(&cut), (vec![0x10], vec![]));
    }

    #[test]
    fn damaged_events_leave_the_old_blocks() {
        let file = File::default().chunk(b'E', &[5, 0, 1, 3]).old(9, &[[0x30, 8, 0]]);
        assert_eq!(found(&file).0, [0x30]);
    }
}
