//! The nodes of the tree of names, made at compile time by a second pass: it moves siblings side by
//! side, so that a number in a MIB is an offset.
use crate::key_table::{self, Part, Row, rows};
use crate::tree_draft::{DRAFTS, NODE_COUNT, NONE, ORDER, RULES};

/// Stands for no rule.
const NO_RULE: u8 = u8::MAX;

/// One component of a name.
#[derive(Clone, Copy)]
pub struct Node {
    /// The component, as part of the names of all keys; `<i>` for an index.
    pub(crate) text: Part,
    /// The first row that has this component in its name, and whether its name ends here.
    pub(crate) row: u16,
    pub(crate) is_leaf: bool,
    /// The rule of an index, or [`NO_RULE`]. A node with a rule has no siblings.
    pub(crate) rule: u8,
    /// The place of the first child among all nodes, and the number of children.
    pub(crate) first: u16,
    pub(crate) count: u16,
}

impl Node {
    const EMPTY: Node =
        Node { text: Part::EMPTY, row: 0, is_leaf: false, rule: NO_RULE, first: 0, count: 0 };

    /// The text of the component; `<i>` for an index.
    #[must_use]
    pub const fn name(self) -> &'static [u8] {
        self.text.of(key_table::names())
    }

    /// The row, if a name ends here.
    #[must_use]
    pub fn row(self) -> Option<&'static Row> {
        rows().get(usize::from(self.row)).filter(|_| self.is_leaf)
    }

    /// The rule of an index. Such a node has no siblings.
    #[must_use]
    pub fn index(self) -> Option<fn(&[usize]) -> bool> {
        RULES.get(usize::from(self.rule)).map(|index| index.valid)
    }

    /// The children, side by side.
    #[must_use]
    pub fn children(self) -> &'static [Node] {
        let first = usize::from(self.first);
        NODES.get(first..first + usize::from(self.count)).unwrap_or(&[])
    }

    /// The child that the last component of a MIB names.
    #[inline]
    pub(crate) fn child(self, mib: &[usize]) -> Option<&'static Node> {
        let number = *mib.last()?;
        let first = NODES.get(usize::from(self.first)).filter(|_| self.count > 0)?;
        match first.index() {
            Some(valid) => valid(mib).then_some(first),
            None if number < usize::from(self.count) => NODES.get(usize::from(self.first) + number),
            None => None,
        }
    }

    /// The number in the MIB for a component of a name. An index gets one whether it exists or not.
    pub(crate) fn number(self, text: &[u8]) -> Option<usize> {
        let children = self.children();
        if children.first()?.index().is_some() {
            return parse_index(text);
        }
        let is_named = |child: &Node| child.text.length() == text.len() && child.name() == text;
        children.iter().position(is_named)
    }
}

/// The root, then all other nodes level by level.
pub(crate) static NODES: [Node; NODE_COUNT] = nodes();

/// The second pass: moves siblings side by side, in the order of the first pass.
const fn nodes() -> [Node; NODE_COUNT] {
    let mut nodes = [Node::EMPTY; NODE_COUNT];
    // For each node that has its place, the index of its draft.
    let mut from = [0; NODE_COUNT];
    let (mut done, mut used) = (0, 1);
    while done < used {
        let draft = &DRAFTS.nodes[from[done]];
        nodes[done] = Node {
            text: rows()[place_of(draft.first_row)].name_part(draft.begin, draft.name.len()),
            row: place_of(draft.first_row) as u16,
            is_leaf: draft.row != NONE,
            rule: if draft.rule == NONE { NO_RULE } else { draft.rule as u8 },
            first: used as u16,
            count: draft.count as u16,
        };
        let mut child = draft.first;
        while child != NONE {
            from[used] = child;
            used += 1;
            child = DRAFTS.nodes[child].next;
        }
        done += 1;
    }
    assert!(used == NODE_COUNT && used < u16::MAX as usize, "the tree is whole");
    nodes
}

/// The place of a row in the order of the tree.
const fn place_of(row: usize) -> usize {
    let mut place = 0;
    while ORDER[place] != row {
        place += 1;
    }
    place
}

/// Reads a decimal index. The whole text must be digits.
fn parse_index(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0usize, |value, &byte| {
        let digit = byte.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value.checked_mul(10)?.checked_add(usize::from(digit))
    })
}
