//! Which events are shown, where that depends on both events of their block.

use super::choice::Choice;
use super::ledger::{Ledger, Origin, Step};
use super::names::Names;
use crate::error::Result;

/// The old blocks and the events that are shown.
pub(super) struct Selection {
    old: Vec<bool>,
    /// A bit for each event.
    events: Vec<u64>,
}

impl Selection {
    /// Reads all events; none if the choice does not need that.
    pub(super) fn find(names: &mut Names<'_>, choice: &Choice<'_>) -> Result<Option<Selection>> {
        if !choice.is_of_blocks() {
            return Ok(None);
        }
        let recording = names.recording();
        let old = vec![false; recording.old_blocks().len()];
        let mut selection = Selection { old, events: Vec::new() };
        let mut ledger = Ledger::new(recording);
        for event in recording.events() {
            let (event, number) = (event?, ledger.count());
            match ledger.apply(&event) {
                Step::Allocated => {}
                Step::Replaced(block) => {
                    if choice.has_events_of(&block, None, event.time, names) {
                        selection.add(block.origin);
                    }
                }
                Step::Deleted(block) => {
                    if choice.has_events_of(&block, Some(&event), event.time, names) {
                        selection.add(block.origin);
                        selection.add_event(number);
                    }
                }
                Step::Unknown if choice.has_unknown(&event, names) => {
                    selection.add_event(number);
                }
                Step::Unknown => {}
            }
        }
        let end = ledger.last();
        for block in ledger.into_live() {
            if choice.has_events_of(&block, None, end, names) {
                selection.add(block.origin);
            }
        }
        Ok(Some(selection))
    }

    /// Whether an old block is shown.
    pub(super) fn has_old(&self, index: usize) -> bool {
        self.old[index]
    }

    /// Whether an event is shown, by its number.
    pub(super) fn has_event(&self, number: u64) -> bool {
        let word = self.events.get((number / 64) as usize);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn add(&mut self, origin: Origin) {
        match origin {
            Origin::Old(index) => self.old[index] = true,
            Origin::Event(number, _) => self.add_event(number),
        }
    }

    fn add_event(&mut self, number: u64) {
        let word = (number / 64) as usize;
        if word >= self.events.len() {
            self.events.resize(word + 1, 0);
        }
        self.events[word] |= 1 << (number % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Filter, Old, Range};
    use super::super::recording::Recording;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;
    use regex::Regex;

    /// The times of the chosen events, and the addresses of the chosen old blocks.
    fn chosen(filter: &Filter) -> (Vec<u64>, Vec<u64>) {
        let file = File::default()
            .old(5, &[[0x10, 64, 0], [0x20, 32, 1]])
            .events(
                1,
                &[
                    (10, Happens::New(0x30, 16), 0),
                    (20, Happens::New(0x40, 32), 0),
                    (30, Happens::Delete(0x30, 1), 0),
                    (40, Happens::Delete(0x20, 0), 0),
                    (50, Happens::New(0x30, 64), 0),
                    (60, Happens::Delete(0x70, 0), 0),
                    (70, Happens::New(0x40, 16), 0),
                ],
            )
            .end(100, 0);
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let choice = Choice::new(filter, &names);
        let selection = Selection::find(&mut names, &choice).expect("events").expect("a selection");
        let events = (0..70).filter(|number| selection.has_event(*number));
        let old = recording.old_blocks().iter().enumerate();
        let old = old.filter(|(index, _)| selection.has_old(*index));
        (events.map(|number| (number + 1) * 10).collect(), old.map(|(_, it)| it.address).collect())
    }

    #[test]
    fn both_events_of_a_block_are_chosen() {
        let size = |min, max| Filter { size: Range { min, max }, ..Filter::default() };
        assert_eq!(chosen(&size(16, 16)), (vec![10, 30, 70], vec![]));
        assert_eq!(chosen(&size(32, 32)), (vec![20, 40], vec![0x20]));
        assert_eq!(chosen(&size(33, u64::MAX)), (vec![50], vec![0x10]));
        let age = |min, max| Filter { age: Range { min, max }, ..Filter::default() };
        assert_eq!(chosen(&age(20, 20)), (vec![10, 30], vec![]));
        // The block of 50 is alive at 100, the one of 20 was replaced at 70.
        assert_eq!(chosen(&age(50, 60)), (vec![20, 50], vec![]));
        assert_eq!(chosen(&age(41, u64::MAX)), (vec![20, 50], vec![0x10]));
    }

    #[test]
    fn old_blocks_are_chosen_with_their_deletions() {
        let old = |old| Filter { old, ..Filter::default() };
        assert_eq!(chosen(&old(Old::Only)), (vec![40], vec![0x10, 0x20]));
        assert_eq!(chosen(&old(Old::Excluded)), (vec![10, 20, 30, 50, 60, 70], vec![]));
    }

    #[test]
    fn types_are_those_of_blocks() {
        let kind = |pattern| Filter { kind: Regex::new(pattern).ok(), ..Filter::default() };
        assert_eq!(chosen(&kind("novtbl")), (vec![40, 60], vec![0x10, 0x20]));
        assert_eq!(chosen(&kind("notype")), (vec![10, 20, 30, 50, 70], vec![]));
        assert_eq!(chosen(&kind("Widget")), (vec![], vec![]));
    }

    #[test]
    fn nothing_is_read_without_need() {
        let recording = Recording::of(&File::default().chunk(b'E', &[1, 0, 1, 3]));
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let filter = Filter::default();
        let choice = Choice::new(&filter, &names);
        assert!(matches!(Selection::find(&mut names, &choice), Ok(None)));
    }
}
