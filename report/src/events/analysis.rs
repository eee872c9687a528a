//! The analyser: what went wrong, the live blocks, and those that were deleted last.

use std::collections::{HashMap, VecDeque};

use super::choice::Choice;
use super::decoder::Event;
use super::filter::Filter;
use super::ledger::{Block, Ledger, Step};
use super::names::Names;
use super::recording::Recording;
use crate::error::Result;

/// At most so many anomalies are kept. The others are counted.
const ANOMALIES: usize = 1000;
/// For at most so many deletions all live blocks are searched.
const SEARCHES: u64 = 100;

/// What is shown.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which blocks.
    pub filter: Filter,
    /// The most deleted blocks.
    pub deleted: usize,
}

/// Something that should not have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anomaly {
    /// A deletion where no block was, of which the allocator complained.
    BadAddress(Event),
    /// A deletion inside a block.
    InsideBlock(Block, Event),
    /// A second deletion: the block if it is known, and both.
    DoubleDeletion(Option<Block>, Event, Event),
    /// An allocation that returned the address of a live block.
    LiveAddress(Block, Event),
}

/// What is found in a recording.
pub(super) struct Analysis {
    /// What went wrong, in the order of time.
    pub(super) anomalies: Vec<Anomaly>,
    /// How many more there were.
    pub(super) more_anomalies: u64,
    /// The number of allocations.
    pub(super) allocations: u64,
    /// The number of deletions.
    pub(super) deletions: u64,
    /// How many old blocks were deleted before they were looked at.
    pub(super) deleted_unseen: u64,
    /// Deletions of blocks that were never seen before, and that the allocator did not complain of:
    /// the list of old blocks lacks what a thread was just allocating when the recording began.
    pub(super) unlisted: Vec<Event>,
    /// How many more there were.
    pub(super) more_unlisted: u64,
    /// The time of the last event, or of the end of the recording.
    pub(super) end: u64,
    /// The live blocks.
    pub(super) live: Vec<Block>,
    /// The blocks that were deleted last, with their deletions; the last one comes first.
    pub(super) deleted: Vec<(Block, Event)>,
}

impl Analysis {
    /// Reads all events.
    pub(super) fn new(names: &mut Names<'_>, options: &Options) -> Result<Analysis> {
        let recording = names.recording();
        let choice = Choice::new(&options.filter, names);
        let mut ledger = Ledger::new(recording);
        let mut findings = Findings::default();
        let mut deleted = VecDeque::new();
        for event in recording.events() {
            let event = event?;
            let step = ledger.apply(&event);
            findings.add(step, &event, recording, &ledger);
            if let Step::Deleted(block) = step
                && options.deleted > 0
                && choice.has_block(&block, Some(&event), event.time, names)
            {
                if deleted.len() == options.deleted {
                    deleted.pop_back();
                }
                deleted.push_front((block, event));
            }
        }
        let end = ledger.last();
        let mut live = ledger.into_live();
        live.retain(|block| choice.has_block(block, None, end, names));
        Ok(Analysis {
            anomalies: findings.anomalies,
            more_anomalies: findings.more,
            allocations: findings.allocations,
            deletions: findings.deletions,
            deleted_unseen: findings.unseen,
            unlisted: findings.unlisted,
            more_unlisted: findings.more_unlisted,
            end,
            live,
            deleted: deleted.into(),
        })
    }
}

/// What is found while the events are read.
#[derive(Default)]
struct Findings {
    anomalies: Vec<Anomaly>,
    more: u64,
    allocations: u64,
    deletions: u64,
    unseen: u64,
    unlisted: Vec<Event>,
    more_unlisted: u64,
    searches: u64,
    /// The last deletion at each address where no block is live.
    gone: HashMap<u64, (Option<Block>, Event)>,
}

impl Findings {
    fn add(&mut self, step: Step, event: &Event, recording: &Recording, ledger: &Ledger) {
        match event.is_allocation() {
            true => self.allocations += 1,
            false => self.deletions += 1,
        }
        match step {
            Step::Allocated => {
                self.gone.remove(&event.address);
            }
            // A block was taken for an old one while a thread was about to record its allocation,
            // or just freed it unrecorded.
            Step::Replaced(block) if block.is_old() => self.unseen += 1,
            Step::Replaced(block) => self.anomaly(Anomaly::LiveAddress(block, *event)),
            Step::Deleted(block) => {
                self.gone.insert(event.address, (Some(block), *event));
            }
            Step::Unknown => self.unknown(event, recording, ledger),
        }
    }

    fn unknown(&mut self, event: &Event, recording: &Recording, ledger: &Ledger) {
        if let Some((block, first)) = self.gone.get(&event.address).copied() {
            self.anomaly(Anomaly::DoubleDeletion(block, first, *event));
        } else if let Some(block) = self.block_around(event, ledger) {
            self.anomaly(Anomaly::InsideBlock(block, *event));
        } else if recording.may_be_old(event.time) {
            self.unseen += 1;
            self.gone.insert(event.address, (None, *event));
        } else if recording.is_complained_of(event.address) {
            self.anomaly(Anomaly::BadAddress(*event));
        } else {
            self.gone.insert(event.address, (None, *event));
            match self.unlisted.len() < ANOMALIES {
                true => self.unlisted.push(*event),
                false => self.more_unlisted += 1,
            }
        }
    }

    fn block_around(&mut self, event: &Event, ledger: &Ledger) -> Option<Block> {
        self.searches += 1;
        if self.searches <= SEARCHES { ledger.around(event.address) } else { None }
    }

    fn anomaly(&mut self, anomaly: Anomaly) {
        match self.anomalies.len() < ANOMALIES {
            true => self.anomalies.push(anomaly),
            false => self.more += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{File, Happens, START};
    use super::*;
    use crate::symbols::Search;

    fn new(address: u64) -> Happens {
        Happens::New(address, 8)
    }

    fn delete(address: u64) -> Happens {
        Happens::Delete(address, 0)
    }

    fn analysis(file: &File, deleted: usize) -> Analysis {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let options = Options { filter: Filter::default(), deleted };
        Analysis::new(&mut names, &options).expect("an analysis")
    }

    fn what(anomaly: &Anomaly) -> (&'static str, u64, Option<u64>) {
        match anomaly {
            Anomaly::BadAddress(event) => ("bad", event.time - START, None),
            Anomaly::InsideBlock(block, event) => {
                let before = block.allocation().map(|event| event.time - START);
                ("inside", event.time - START, before)
            }
            Anomaly::LiveAddress(block, event) => {
                let before = block.allocation().map(|event| event.time - START);
                ("live", event.time - START, before)
            }
            Anomaly::DoubleDeletion(block, first, second) => {
                let kind = if block.is_some() { "double" } else { "double, unseen" };
                (kind, second.time - START, Some(first.time - START))
            }
        }
    }

    /// Its thread was about to record the allocation when the block was listed, or had just freed
    /// it without that.
    #[test]
    fn an_allocation_where_an_old_block_was_is_none() {
        let file = File::default().old(10, &[[0x10, 8, 0]]).events(1, &[(15, new(0x10), 0)]);
        let found = analysis(&file, 9);
        assert_eq!((found.anomalies.len(), found.deleted_unseen), (0, 1));
    }

    #[test]
    fn anomalies_are_told_apart() {
        let file = File::default().old(10, &[[0x10, 8, 0]]).events(
            1,
            &[
                (1, delete(0x90), 0),
                (2, delete(0x90), 0),
                (11, delete(0x20), 0),
                (12, delete(0x10), 0),
                (13, delete(0x10), 0),
                (14, new(0x10), 0),
                (15, new(0x10), 0),
                (16, delete(0x10), 0),
                (17, delete(0x10), 0),
                (18, new(0x40), 0),
                (19, delete(0x44), 0),
                (20, delete(0x48), 0),
            ],
        );
        let file = file.message(18, "<lumalloc>: invalid free of 0x20");
        let found = analysis(&file, 9);
        let expected = [
            ("double, unseen", 2, Some(1)),
            ("bad", 11, None),
            ("double", 13, Some(12)),
            ("live", 15, Some(14)),
            ("double", 17, Some(16)),
            ("inside", 19, Some(18)),
        ];
        assert_eq!(found.anomalies.iter().map(what).collect::<Vec<_>>(), expected);
        assert_eq!((found.allocations, found.deletions, found.deleted_unseen), (3, 9, 1));
    }

    /// A thread that was just allocating it when the recording began recorded nothing, and the list
    /// may have been written before it was done.
    #[test]
    fn a_deletion_that_nobody_complained_of_is_none() {
        let events = [(11, delete(0x20), 0), (12, delete(0x20), 0), (13, new(0x20), 0)];
        let found = analysis(&File::default().old(10, &[]).events(1, &events), 9);
        assert_eq!(found.unlisted.iter().map(|it| it.address).collect::<Vec<_>>(), [0x20]);
        assert_eq!(
            found.anomalies.iter().map(what).collect::<Vec<_>>(),
            [("double, unseen", 12, Some(11))]
        );
    }

    #[test]
    fn without_a_list_of_old_blocks_each_unknown_one_may_be_old() {
        let found = analysis(&File::default().events(1, &[(5, delete(0x10), 0)]), 9);
        assert_eq!((found.anomalies.len(), found.deleted_unseen), (0, 1));
    }

    #[test]
    fn the_blocks_that_were_deleted_last_are_kept() {
        let mut events = Vec::new();
        for number in 0..10 {
            events.extend([(number * 2, new(number), 0), (number * 2 + 1, delete(number), 0)]);
        }
        let file = File::default().events(1, &events);
        let addresses = |found: Analysis| -> Vec<u64> {
            found.deleted.iter().map(|(block, _)| block.address).collect()
        };
        assert_eq!(addresses(analysis(&file, 3)), [9, 8, 7]);
        assert_eq!(addresses(analysis(&file, 0)), [0; 0]);
        assert_eq!(analysis(&file, 3).end, START + 19);
    }

    #[test]
    fn the_number_of_anomalies_is_bounded() {
        let events: Vec<_> = (0..1005)
            .flat_map(|at| [(2 * at + 2, delete(at), 0), (2 * at + 3, delete(at), 0)])
            .collect();
        let found = analysis(&File::default().old(1, &[]).events(1, &events), 1);
        assert_eq!((found.anomalies.len(), found.more_anomalies), (1000, 5));
        assert_eq!((found.unlisted.len(), found.more_unlisted), (1000, 5));
    }
}
