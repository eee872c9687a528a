//! The first pass that makes the tree of names from the rows, at compile time: it adds the
//! components of each row to lists of siblings. The second pass makes the [nodes](crate::node).
//! Rows may stand in any order; the order of the tree is that in which components are first seen.
//!
//! Rows that do not form a tree stop the compiler: a name that occurs twice or is also a branch, an
//! index beside named siblings, an index without a rule, a name that is too deep.
use crate::row::{Index, Spec};
use crate::rows::{INDICES, ROWS};

/// The largest number of components of any name. `mallctlnametomib` never needs a longer array.
pub const MAX_DEPTH: usize = 8;

/// How many elements the lists have together.
const fn count<T>(lists: &[&[T]]) -> usize {
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        count += lists[list].len();
        list += 1;
    }
    count
}

/// The elements of all lists, of which there are `N`, in their order.
const fn flat<T, const N: usize>(lists: &'static [&'static [T]]) -> [&'static T; N] {
    let mut flat = [&lists[0][0]; N];
    let (mut used, mut list) = (0, 0);
    while list < lists.len() {
        let mut at = 0;
        while at < lists[list].len() {
            flat[used] = &lists[list][at];
            used += 1;
            at += 1;
        }
        list += 1;
    }
    flat
}

/// The number of rows.
pub(crate) const ROW_COUNT: usize = count(ROWS);

/// All rows, in the order of the files.
pub(crate) static FLAT: [&Spec; ROW_COUNT] = flat(ROWS);

const RULE_COUNT: usize = count(INDICES);

/// The rules of all indices.
pub(crate) static RULES: [&Index; RULE_COUNT] = flat(INDICES);

/// Stands for no node, no row and no rule.
pub(crate) const NONE: usize = usize::MAX;

/// An upper bound on the number of nodes.
const ROOM: usize = 4 * ROW_COUNT + 64;

/// A node of the first pass.
#[derive(Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) name: &'static [u8],
    /// The row whose name ends here.
    pub(crate) row: usize,
    /// The first row that has this component, and where it begins in its name.
    pub(crate) first_row: usize,
    pub(crate) begin: usize,
    pub(crate) rule: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) next: usize,
    pub(crate) count: usize,
}

const EMPTY: Draft = Draft {
    name: b"",
    row: NONE,
    first_row: 0,
    begin: 0,
    rule: NONE,
    first: NONE,
    last: NONE,
    next: NONE,
    count: 0,
};

/// All nodes of the first pass; the root is the first one.
pub(crate) struct Drafts {
    pub(crate) nodes: [Draft; ROOM],
    used: usize,
}

pub(crate) static DRAFTS: Drafts = draft();

/// The number of nodes, including the root.
pub(crate) const NODE_COUNT: usize = DRAFTS.used;

/// The first pass: makes the nodes and lists of siblings.
const fn draft() -> Drafts {
    let mut drafts = Drafts { nodes: [EMPTY; ROOM], used: 1 };
    let mut row = 0;
    while row < ROW_COUNT {
        let name = FLAT[row].name.as_bytes();
        let (mut node, mut begin, mut depth) = (0, 0, 0);
        while begin <= name.len() {
            let end = component_end(name, begin);
            assert!(depth < MAX_DEPTH, "a name has too many components");
            assert!(drafts.nodes[node].row == NONE, "a name is also a branch");
            node = child(&mut drafts, node, row, (begin, end));
            begin = end + 1;
            depth += 1;
        }
        let leaf = &mut drafts.nodes[node];
        assert!(leaf.row == NONE && leaf.first == NONE, "a name is there twice, or also a branch");
        leaf.row = row;
        row += 1;
    }
    drafts
}

/// The child with a component of a row's name, which is made if it is new.
const fn child(
    drafts: &mut Drafts,
    parent: usize,
    row: usize,
    (begin, end): (usize, usize),
) -> usize {
    let whole = FLAT[row].name.as_bytes();
    let name = part(whole, begin, end);
    let last = drafts.nodes[parent].last;
    if last != NONE && is_same(drafts.nodes[last].name, name) {
        return last;
    }
    let mut sibling = drafts.nodes[parent].first;
    while sibling != NONE {
        if is_same(drafts.nodes[sibling].name, name) {
            return sibling;
        }
        sibling = drafts.nodes[sibling].next;
    }
    assert!(!name.is_empty(), "a name has an empty component");
    let is_index = name[0] == b'<';
    let alone = last == NONE || !is_index && drafts.nodes[last].rule == NONE;
    assert!(alone, "an index stands beside other components");
    let new = drafts.used;
    drafts.used += 1;
    drafts.nodes[new].name = name;
    drafts.nodes[new].first_row = row;
    drafts.nodes[new].begin = begin;
    if is_index {
        drafts.nodes[new].rule = rule_of(part(whole, 0, end));
    }
    if last == NONE {
        drafts.nodes[parent].first = new;
    } else {
        drafts.nodes[last].next = new;
    }
    drafts.nodes[parent].last = new;
    drafts.nodes[parent].count += 1;
    new
}

/// The place among [`RULES`] of the rule of the index at the end of a path.
const fn rule_of(path: &[u8]) -> usize {
    let mut rule = 0;
    while rule < RULE_COUNT {
        if is_same(RULES[rule].path.as_bytes(), path) {
            return rule;
        }
        rule += 1;
    }
    panic!("an index has no rule")
}

/// For each place in the order of the tree, the place of its row in [`FLAT`]. Rows that share a
/// branch are neighbours.
pub(crate) static ORDER: [usize; ROW_COUNT] = in_order();

const fn in_order() -> [usize; ROW_COUNT] {
    let mut rows = [0; ROW_COUNT];
    // The nodes on the way down. The siblings of each are still to come.
    let mut path = [NONE; MAX_DEPTH + 1];
    let (mut depth, mut used) = (0, 0);
    path[0] = DRAFTS.nodes[0].first;
    loop {
        if path[depth] == NONE {
            if depth == 0 {
                return rows;
            }
            depth -= 1;
            path[depth] = DRAFTS.nodes[path[depth]].next;
            continue;
        }
        let node = &DRAFTS.nodes[path[depth]];
        if node.row == NONE {
            depth += 1;
            path[depth] = node.first;
        } else {
            rows[used] = node.row;
            used += 1;
            path[depth] = node.next;
        }
    }
}

/// Where the component that starts at `begin` ends.
pub(crate) const fn component_end(name: &[u8], begin: usize) -> usize {
    let mut end = begin;
    while end < name.len() && name[end] != b'.' {
        end += 1;
    }
    end
}

pub(crate) const fn part(name: &'static [u8], begin: usize, end: usize) -> &'static [u8] {
    name.split_at(end).0.split_at(begin).1
}

pub(crate) const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // Backwards, because siblings differ at their ends.
    let mut at = a.len();
    while at > 0 {
        at -= 1;
        if a[at] != b[at] {
            return false;
        }
    }
    true
}
