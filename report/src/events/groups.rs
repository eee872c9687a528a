//! The rows of a table: blocks that have something in common.

use std::collections::HashMap;
use std::rc::Rc;

use super::choice::kind;
use super::decoder::Event;
use super::ledger::Block;
use super::names::Names;

/// Stands for the stack of old blocks, which is not known.
const OLDER: &str = "(older than the recording)";

/// What the blocks of a row have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The function of the program that allocated them, with the line.
    #[default]
    Site,
    /// The functions of the whole stack.
    Stack,
    /// The type.
    Type,
}

impl By {
    /// Its name in a document.
    pub(super) fn name(self) -> &'static str {
        match self {
            By::Site => "site",
            By::Stack => "stack",
            By::Type => "type",
        }
    }

    /// The beginning of a heading.
    pub(super) fn heading(self) -> &'static str {
        match self {
            By::Site => "Sites",
            By::Stack => "Stacks",
            By::Type => "Types",
        }
    }
}

/// The groups so far. Each has a number, from 0 on.
pub(super) struct Groups {
    by: By,
    lines: Vec<Vec<String>>,
    by_lines: HashMap<Vec<String>, usize>,
    by_stack: HashMap<u32, usize>,
    by_type: HashMap<Rc<str>, usize>,
}

impl Groups {
    /// There are none yet.
    pub(super) fn new(by: By) -> Groups {
        Groups {
            by,
            lines: Vec::new(),
            by_lines: HashMap::new(),
            by_stack: HashMap::new(),
            by_type: HashMap::new(),
        }
    }

    /// The group of a block.
    pub(super) fn of(
        &mut self,
        block: &Block,
        deletion: Option<&Event>,
        names: &mut Names<'_>,
    ) -> usize {
        match (self.by, block.allocation()) {
            (By::Type, _) => self.of_type(kind(block, deletion, names)),
            (_, Some(allocation)) => self.of_stack(allocation.stack, names),
            (_, None) => self.of_lines(vec![OLDER.to_owned()]),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    /// The text of a group.
    pub(super) fn lines(&self, group: usize) -> &[String] {
        &self.lines[group]
    }

    /// The texts of all groups, in the order of their numbers.
    pub(super) fn into_lines(self) -> Vec<Vec<String>> {
        self.lines
    }

    fn of_type(&mut self, kind: Rc<str>) -> usize {
        if let Some(group) = self.by_type.get(&kind) {
            return *group;
        }
        let group = self.of_lines(vec![kind.to_string()]);
        self.by_type.insert(kind, group);
        group
    }

    fn of_stack(&mut self, stack: u32, names: &Names<'_>) -> usize {
        if let Some(group) = self.by_stack.get(&stack) {
            return *group;
        }
        let lines = match self.by {
            By::Stack => names.calls(stack),
            _ => vec![names.site(stack)],
        };
        let group = self.of_lines(lines);
        self.by_stack.insert(stack, group);
        group
    }

    fn of_lines(&mut self, lines: Vec<String>) -> usize {
        let all = &mut self.lines;
        *self.by_lines.entry(lines).or_insert_with_key(|lines| {
            all.push(lines.clone());
            all.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Ledger;
    use super::super::recording::Recording;
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    #[test]
    fn blocks_have_the_text_of_their_group() {
        let file = File::default()
            .stack(1, &[0x101, 0x301])
            .stack(2, &[0x101, 0x201])
            .old(1, &[[0x10, 8, 0]])
            .events(1, &[(2, Happens::New(0x20, 8), 1), (3, Happens::New(0x30, 8), 2)]);
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut of = |by| {
            let mut ledger = Ledger::new(&recording);
            for event in recording.events() {
                ledger.apply(&event.expect("an event"));
            }
            let (mut groups, live) = (Groups::new(by), ledger.into_live());
            let numbers: Vec<_> = live.iter().map(|it| groups.of(it, None, &mut names)).collect();
            assert_eq!(groups.count(), groups.lines.len());
            let text = |group: &usize| groups.lines(*group).join("|");
            (numbers.iter().map(text).collect::<Vec<_>>(), numbers)
        };
        let expected = |texts: [&str; 3], numbers| (texts.map(str::to_owned).to_vec(), numbers);
        assert_eq!(of(By::Site), expected([OLDER, "0x100", "0x100"], vec![0, 1, 1]));
        assert_eq!(of(By::Stack), expected([OLDER, "0x100|0x300", "0x100|0x200"], vec![0, 1, 2]));
        assert_eq!(of(By::Type), expected(["novtbl", "notype", "notype"], vec![0, 1, 1]));
    }
}
