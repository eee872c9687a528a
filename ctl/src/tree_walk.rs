//! Branches of the tree: the nodes below a MIB.
use lumalloc_namespace::tree::{Node, node};

/// A node that is no leaf.
#[derive(Clone, Copy)]
pub(crate) struct Branch(&'static Node);

/// The branch that a MIB leads to, unless it is a leaf.
pub(crate) fn branch(mib: &[usize]) -> Option<Branch> {
    node(mib).filter(|node| node.row().is_none()).map(Branch)
}

/// The most indices that are listed: no fewer than there may be arenas.
const MOST: usize = 4096;

impl Branch {
    /// The children of a branch with this MIB, with their numbers. Of an index, the numbers from 0
    /// on.
    pub(crate) fn children(self, mib: &[usize]) -> Vec<(String, usize)> {
        let children = self.0.children();
        let Some(valid) = children.first().and_then(|child| child.index()) else {
            let text = |child: &Node| String::from_utf8_lossy(child.name()).into_owned();
            return children.iter().map(text).zip(0..).collect();
        };
        let mut below = mib.to_vec();
        below.push(0);
        let mut exists = |index: &usize| {
            below.pop();
            below.push(*index);
            valid(&below)
        };
        let indices: Vec<usize> = if matches!(self.0.name(), b"arena" | b"arenas") {
            // An arena may be missing between others. The first number of none means all of them.
            (0..lumalloc::control::narenas() as usize).filter(&mut exists).collect()
        } else {
            (0..MOST).take_while(&mut exists).collect()
        };
        indices.into_iter().map(|index| (index.to_string(), index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::read_json;
    use lumalloc::control::arenas;

    #[test]
    fn a_missing_arena_hides_none_behind_it_and_none_stands_for_all() {
        // Behind the automatic ones, of which most have not been made.
        let stays = arenas::create().expect("an arena");
        let all = lumalloc::control::narenas().to_string();
        for branch in ["arena", "stats.arenas"] {
            crate::write_json("epoch", &1.into()).expect("an epoch");
            let read = read_json(branch).expect("a branch");
            assert!(read.get(stays.to_string()).is_some(), "{branch}");
            assert!(read.get(&all).is_none(), "{branch}");
        }
    }
}
