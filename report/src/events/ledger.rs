//! The blocks that are live at a time, and which event is about which block.

use std::collections::HashMap;

use super::decoder::{Event, Kind};
use super::recording::Recording;

/// Where a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was there when the recording began: the index of the old block.
    Old(usize),
    /// An event allocated it: the number of the event among all events.
    Event(u64, Event),
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its first byte.
    pub(super) address: u64,
    /// Its requested size; the usable one of an old block.
    pub(super) size: u64,
    /// Where it comes from.
    pub(super) origin: Origin,
}

impl Block {
    /// Whether it was there when the recording began.
    pub(super) fn is_old(&self) -> bool {
        matches!(self.origin, Origin::Old(_))
    }

    /// The number of the event that allocated it.
    pub(super) fn number(&self) -> Option<u64> {
        match self.origin {
            Origin::Old(_) => None,
            Origin::Event(number, _) => Some(number),
        }
    }

    /// The event that allocated it.
    pub(super) fn allocation(&self) -> Option<&Event> {
        match &self.origin {
            Origin::Old(_) => None,
            Origin::Event(_, event) => Some(event),
        }
    }

    /// Its age at a moment; that of an old block is at least as much.
    pub(super) fn age(&self, now: u64, recording: &Recording) -> u64 {
        let since = self.allocation().map_or(recording.process().start, |event| event.time);
        now.saturating_sub(since)
    }
}

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It allocates a block.
    Allocated,
    /// It allocates a block where another one is live.
    Replaced(Block),
    /// It deletes a block.
    Deleted(Block),
    /// It deletes at an address where no block is live.
    Unknown,
}

/// The live blocks.
pub(crate) struct Ledger {
    live: HashMap<u64, Block>,
    /// How many events there were.
    count: u64,
    /// The time of the last one.
    last: u64,
}

impl Ledger {
    /// Begins with the old blocks.
    pub(super) fn new(recording: &Recording) -> Ledger {
        let old = recording.old_blocks().iter().enumerate().map(|(index, old)| {
            let origin = Origin::Old(index);
            (old.address, Block { address: old.address, size: old.size, origin })
        });
        Ledger { live: old.collect(), count: 0, last: recording.last() }
    }

    /// Adds the next event.
    pub(super) fn apply(&mut self, event: &Event) -> Step {
        let number = self.count;
        self.count += 1;
        self.last = self.last.max(event.time);
        match event.kind {
            Kind::Deletion(_) => {
                self.live.remove(&event.address).map_or(Step::Unknown, Step::Deleted)
            }
            Kind::Allocation(size) => {
                let origin = Origin::Event(number, *event);
                let block = Block { address: event.address, size, origin };
                self.live.insert(event.address, block).map_or(Step::Allocated, Step::Replaced)
            }
        }
    }

    /// The live block around an address that is not its first byte, of those that an event
    /// allocated. All blocks are looked at.
    pub(super) fn around(&self, address: u64) -> Option<Block> {
        let is_inside = |block: &&Block| {
            let offset = address.wrapping_sub(block.address);
            !block.is_old() && offset > 0 && offset < block.size
        };
        self.live.values().find(is_inside).copied()
    }

    /// How many events there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The time of the last event, or of the end of the recording.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The live blocks: old ones in the order of the file, then the others by their times.
    pub(super) fn into_live(self) -> Vec<Block> {
        let mut live: Vec<Block> = self.live.into_values().collect();
        live.sort_unstable_by_key(|block| match block.origin {
            Origin::Old(index) => (0, index as u64),
            Origin::Event(number, _) => (1, number),
        });
        live
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{File, Happens, START};
    use super::*;

    #[test]
    fn events_are_about_blocks() {
        let new = |address, size| Happens::New(address, size);
        let delete = |address| Happens::Delete(address, 0);
        let file = File::default()
            .old(1, &[[0x50, 8, 0], [0x10, 16, 0]])
            .events(
                1,
                &[
                    (2, new(0x20, 24), 0),
                    (3, new(0x20, 32), 0),
                    (4, delete(0x10), 0),
                    (5, delete(0x10), 0),
                    (6, delete(0x20), 0),
                    (7, new(0x30, 40), 0),
                    (8, new(0x10, 48), 0),
                ],
            )
            .end(20, 0);
        let recording = Recording::of(&file);
        let mut ledger = Ledger::new(&recording);
        let steps: Vec<Step> =
            recording.events().map(|event| ledger.apply(&event.expect("it"))).collect();
        let [Step::Allocated, Step::Replaced(first), Step::Deleted(old), Step::Unknown, rest @ ..] =
            &steps[..]
        else {
            panic!("{steps:?}");
        };
        assert_eq!((first.size, first.is_old(), first.age(START + 9, &recording)), (24, false, 7));
        assert_eq!((old.size, old.is_old(), old.age(START + 9, &recording)), (16, true, 9));
        let [Step::Deleted(second), Step::Allocated, Step::Allocated] = rest else {
            panic!("{rest:?}");
        };
        assert_eq!(second.size, 32);
        assert_eq!((ledger.count(), ledger.last()), (7, START + 20));
        let around = |address| ledger.around(address).map(|block| block.address);
        assert_eq!([0x10, 0x41, 0x57, 0x58].map(around), [None, Some(0x30), Some(0x30), None]);
        let live: Vec<u64> = ledger.into_live().iter().map(|block| block.address).collect();
        assert_eq!(live, [0x50, 0x30, 0x10]);
    }
}
