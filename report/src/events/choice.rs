//! What a filter says about events and blocks of a recording.

use std::rc::Rc;

use super::decoder::Event;
use super::filter::{Filter, Range};
use super::ledger::{Block, Origin};
use super::names::Names;

/// The index of the empty stack, which old blocks have.
const NO_STACK: u32 = 0;

/// A filter and the stacks that it chooses.
pub(super) struct Choice<'f> {
    filter: &'f Filter,
    pid: u64,
    /// Whether each stack is chosen; none if all are.
    stacks: Option<Vec<bool>>,
}

impl Choice<'_> {
    /// Looks at all stacks, once for all events.
    pub(super) fn new<'f>(filter: &'f Filter, names: &Names<'_>) -> Choice<'f> {
        let stacks = filter.stack.as_ref().map(|pattern| {
            let stacks = 0..names.stack_count();
            stacks.map(|stack| pattern.is_match(&names.stack(stack))).collect()
        });
        Choice { filter, pid: names.recording().process().pid, stacks }
    }

    /// Whether something about both events of a block is chosen.
    pub(super) fn is_of_blocks(&self) -> bool {
        self.filter.is_of_blocks()
    }

    /// Whether the line of an event is shown, by its own thread and stack.
    pub(super) fn has_line(&self, event: &Event) -> bool {
        self.filter.has_thread(self.pid, event.thread) && self.has_stack(event.stack)
    }

    /// Whether lines of old blocks are shown, by their thread 0-0 and their empty stack.
    pub(super) fn has_old_lines(&self) -> bool {
        self.filter.has_thread(0, 0) && self.has_stack(NO_STACK)
    }

    /// Whether both events of a block are shown, by its size, its age, its type and its origin.
    /// `end` is when it was deleted, or the recording ended.
    pub(super) fn has_events_of(
        &self,
        block: &Block,
        deletion: Option<&Event>,
        end: u64,
        names: &mut Names<'_>,
    ) -> bool {
        let filter = self.filter;
        filter.size.contains(block.size)
            && filter.has_origin(block.is_old())
            && filter.has_age(block.age(end, names.recording()), block.is_old())
            && (filter.kind.is_none() || filter.has_type(&kind(block, deletion, names)))
    }

    /// Whether a block is shown, by everything that is chosen.
    pub(super) fn has_block(
        &self,
        block: &Block,
        deletion: Option<&Event>,
        end: u64,
        names: &mut Names<'_>,
    ) -> bool {
        let events = || block.allocation().into_iter().chain(deletion);
        let has_thread = block.is_old() && self.filter.has_thread(0, 0)
            || events().any(|event| self.filter.has_thread(self.pid, event.thread));
        let has_stack = block.is_old() && self.has_stack(NO_STACK)
            || events().any(|event| self.has_stack(event.stack));
        has_thread && has_stack && self.has_events_of(block, deletion, end, names)
    }

    /// Whether the deletion of a block is shown of which nothing else is known.
    pub(super) fn has_unknown(&self, event: &Event, names: &mut Names<'_>) -> bool {
        let is_old = names.recording().may_be_old(event.time);
        let kind = names.of_deletion(event).unwrap_or_else(|| names.unknown(event.word()));
        let filter = self.filter;
        filter.size == Range::ALL
            && filter.age == Range::ALL
            && filter.has_origin(is_old)
            && filter.has_type(&kind)
    }

    fn has_stack(&self, stack: u32) -> bool {
        self.stacks.as_ref().is_none_or(|stacks| stacks[stack as usize])
    }
}

/// The type of a block: what its deletion tells, or its first word at the end of the recording,
/// else what its allocation does.
pub(super) fn kind(block: &Block, deletion: Option<&Event>, names: &mut Names<'_>) -> Rc<str> {
    let by_deletion = deletion.and_then(|event| names.of_deletion(event));
    let last = block
        .allocation()
        .filter(|_| deletion.is_none())
        .and_then(|allocation| names.recording().last_word(block.address, allocation.time));
    let by_word = last.and_then(|(word, seen)| names.class(word, seen));
    let known = by_deletion.or(by_word).or_else(|| match block.origin {
        Origin::Old(index) => {
            let old = names.old_block(index);
            names.class(old.word, old.seen)
        }
        Origin::Event(_, event) => names.of_allocation(event.stack),
    });
    let word = deletion.map(Event::word).or_else(|| match block.origin {
        Origin::Old(index) => Some(names.old_block(index).word),
        Origin::Event(..) => last.map(|(word, _)| word),
    });
    known.unwrap_or_else(|| names.unknown(word.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::super::filter::Thread;
    use super::super::ledger::{Ledger, Step};
    use super::super::recording::Recording;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;
    use regex::Regex;

    /// Which of three blocks are chosen: an old one that thread 2 deletes with stack 2, one that
    /// thread 1 allocates with stack 1 and thread 2 deletes with stack 2, and a live one.
    fn chosen(filter: &Filter) -> [bool; 3] {
        let file = File::default()
            .stack(1, &[0x101])
            .stack(2, &[0x201])
            .old(1, &[[0x10, 8, 0]])
            .events(1, &[(2, Happens::New(0x20, 8), 1), (3, Happens::New(0x30, 8), 1)])
            .events(2, &[(4, Happens::Delete(0x10, 0), 2), (5, Happens::Delete(0x20, 0), 2)]);
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let choice = Choice::new(filter, &names);
        let mut ledger = Ledger::new(&recording);
        let mut found = Vec::new();
        for event in recording.events() {
            let event = event.expect("an event");
            if let Step::Deleted(block) = ledger.apply(&event) {
                found.push(choice.has_block(&block, Some(&event), event.time, &mut names));
            }
        }
        let live = ledger.into_live();
        [found[0], found[1], choice.has_block(&live[0], None, 9, &mut names)]
    }

    #[test]
    fn a_live_block_has_the_type_of_its_last_word() {
        let new = Happens::New;
        let file = File::default()
            .old(1, &[[0x10, 8, 0]])
            .events(1, &[(2, new(0x20, 8), 0), (3, new(0x30, 8), 0), (6, new(0x40, 8), 0)])
            .events(2, &[(4, Happens::New(0x50, 8), 0)])
            .live(5, &[[0x10, 8, 1], [0x20, 8, 0], [0x30, 8, 1], [0x40, 8, 0]]);
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut ledger = Ledger::new(&recording);
        for event in recording.events() {
            ledger.apply(&event.expect("an event"));
        }
        let live = ledger.into_live();
        let kinds = live.iter().map(|block| (block.address, kind(block, None, &mut names)));
        let kinds: Vec<(u64, Rc<str>)> = kinds.collect();
        // That at 0x40 was allocated after the look, and that at 0x50 was not seen by it.
        let expected = ["novtbl", "novtbl", "notype", "notype", "notype"].map(Rc::from);
        let expected: Vec<_> = [0x10, 0x20, 0x30, 0x50, 0x40].into_iter().zip(expected).collect();
        assert_eq!(kinds, expected);
    }

    #[test]
    fn a_block_is_chosen_by_either_event() {
        let thread = |pid, tid| Filter { thread: Some(Thread { pid, tid }), ..Filter::default() };
        assert_eq!(chosen(&Filter::default()), [true, true, true]);
        assert_eq!(chosen(&thread(None, 1)), [false, true, true]);
        assert_eq!(chosen(&thread(Some(22), 2)), [true, true, false]);
        assert_eq!(chosen(&thread(Some(0), 0)), [true, false, false]);
        let stack = |pattern| Filter { stack: Regex::new(pattern).ok(), ..Filter::default() };
        assert_eq!(chosen(&stack("0x100")), [false, true, true]);
        assert_eq!(chosen(&stack("0x200")), [true, true, false]);
        assert_eq!(chosen(&stack("^$")), [true, false, false]);
    }
}
