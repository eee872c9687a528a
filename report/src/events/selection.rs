//! Which events are shown, where that depends on both events of their block.

use super::decoder::Event;
use super::filter::Filter;
use super::ledger::{Block, Ledger, Origin, Step};
use super::names::{NO_TYPE, Names, without_type};
use super::recording::Recording;
use crate::error::Result;

/// The old blocks and the events that are shown.
pub(super) struct Selection {
    old: Vec<bool>,
    /// A bit for each event.
    events: Vec<u64>,
}

impl Selection {
    /// Reads all events; none if the filter does not need that.
    pub(super) fn find(
        recording: &Recording,
        names: &mut Names<'_>,
        filter: &Filter,
    ) -> Result<Option<Selection>> {
        if !filter.is_of_blocks() {
            return Ok(None);
        }
        let old = vec![false; recording.old_blocks().len()];
        let mut selection = Selection { old, events: Vec::new() };
        let mut ledger = Ledger::new(recording);
        for event in recording.events() {
            let (event, number) = (event?, ledger.count());
            match ledger.apply(&event) {
                Step::Allocated => {}
                Step::Replaced(block) => {
                    if is_shown(filter, &block, None, event.time, recording, names) {
                        selection.add(block.origin);
                    }
                }
                Step::Deleted(block) => {
                    if is_shown(filter, &block, Some(&event), event.time, recording, names) {
                        selection.add(block.origin);
                        selection.add_event(number);
                    }
                }
                Step::Unknown if has_unknown(filter, &event, recording, names) => {
                    selection.add_event(number);
                }
                Step::Unknown => {}
            }
        }
        let end = ledger.last();
        for block in ledger.into_live() {
            if is_shown(filter, &block, None, end, recording, names) {
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

/// Whether a block is shown, by its size, its age, its type and its origin. `end` is when it was
/// deleted, or the recording ended.
pub(super) fn is_shown(
    filter: &Filter,
    block: &Block,
    deletion: Option<&Event>,
    end: u64,
    recording: &Recording,
    names: &mut Names<'_>,
) -> bool {
    filter.size.contains(block.size)
        && filter.has_origin(block.is_old())
        && filter.has_age(block.age(end, recording), block.is_old())
        && (filter.kind.is_none() || filter.has_type(&kind(block, deletion, recording, names)))
}

/// The type of a block: what its deletion tells, else what its allocation does.
pub(super) fn kind(
    block: &Block,
    deletion: Option<&Event>,
    recording: &Recording,
    names: &mut Names<'_>,
) -> String {
    let by_deletion = deletion.and_then(|event| names.of_deletion(event));
    let known = by_deletion.or_else(|| match block.origin {
        Origin::Old(index) => {
            let old = &recording.old_blocks()[index];
            names.class(old.word, old.seen)
        }
        Origin::Event(_, event) => names.of_allocation(event.stack),
    });
    let word = deletion.map(Event::word).or_else(|| match block.origin {
        Origin::Old(index) => Some(recording.old_blocks()[index].word),
        Origin::Event(..) => None,
    });
    known.map_or_else(|| word.map_or(NO_TYPE, without_type).to_owned(), |known| known.to_string())
}

/// Whether the deletion of a block is shown of which nothing else is known.
fn has_unknown(
    filter: &Filter,
    event: &Event,
    recording: &Recording,
    names: &mut Names<'_>,
) -> bool {
    use super::filter::Range;
    let is_old = !recording.has_old() || event.time <= recording.old_until();
    let kind = names.of_deletion(event);
    let kind = kind.as_deref().unwrap_or(without_type(event.word()));
    filter.size == Range::ALL
        && filter.age == Range::ALL
        && filter.has_origin(is_old)
        && filter.has_type(kind)
}
