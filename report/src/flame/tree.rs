//! All stacks as a tree, from the outermost function inwards.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::report::Report;
use crate::views::{Tally, Value};

/// The place of the whole profile.
pub(super) const ROOT: usize = 0;

/// A function with the callers that it was called by.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// Its number; nothing for the whole profile.
    pub(super) function: Option<usize>,
    /// The sum of all stacks through it.
    pub(super) tally: Tally,
    /// The places of what it called, by function.
    children: BTreeMap<usize, usize>,
}

/// The tree.
pub(super) struct Tree {
    nodes: Vec<Node>,
    value: Value,
}

impl Tree {
    /// Puts the stacks of a profile together.
    pub(super) fn new(report: &Report, value: Value) -> Tree {
        let mut tree = Tree { nodes: vec![Node::default()], value };
        for sample in &report.profile().samples {
            let tally = Tally::of(sample, report.profile());
            if tally.value(value) == 0 {
                continue;
            }
            let mut at = ROOT;
            for frame in report.stack_below_main(sample.stack).rev() {
                at = tree.child(at, frame.function);
                tree.nodes[at].tally.add(&tally);
            }
        }
        tree.nodes[ROOT].tally = Tally::whole(report.profile());
        tree
    }

    fn child(&mut self, of: usize, function: usize) -> usize {
        let next = self.nodes.len();
        let at = *self.nodes[of].children.entry(function).or_insert(next);
        if at == next {
            self.nodes.push(Node { function: Some(function), ..Node::default() });
        }
        at
    }

    /// The function at a place.
    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    /// The number that widths stand for.
    pub(super) fn value(&self, at: usize) -> i64 {
        self.nodes[at].tally.value(self.value)
    }

    /// The places of what a function called, the largest first.
    pub(super) fn children(&self, of: usize) -> Vec<usize> {
        let mut children: Vec<usize> = self.nodes[of].children.values().copied().collect();
        children.sort_by_key(|child| Reverse(self.value(*child)));
        children
    }
}
