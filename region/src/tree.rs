//! A balanced tree whose nodes are pieces of a region's memory: free blocks by size, segments by
//! address.
//!
//! It is a treap: ordered by key from left to right, and by a random rank from top to bottom, which
//! makes its depth logarithmic whatever the order of insertions. The rank follows from the node's
//! address, so a node needs two words: the links to its left and right subtree, at its start.

use crate::words::Words;

const LEFT: usize = 0;
const RIGHT: usize = 8;

/// What the nodes of a tree are ordered by. Two nodes never have the same key.
pub(crate) type Key = (usize, usize);

/// A tree: the address of the word that links to its root, and how to find the key of a node.
#[derive(Clone, Copy)]
pub(crate) struct Tree<F: Fn(usize) -> Key> {
    words: Words,
    root: usize,
    key: F,
}

impl<F: Fn(usize) -> Key> Tree<F> {
    /// The tree whose root is linked by the word at `root`.
    #[inline]
    pub(crate) fn new(words: Words, root: usize, key: F) -> Tree<F> {
        Tree { words, root, key }
    }

    /// Puts a node into the tree.
    pub(crate) fn insert(&self, node: usize) {
        let (words, rank) = (self.words, self.words.rank(node));
        let key = (self.key)(node);
        let mut link = self.root;
        let mut at = words.link(link);
        while at != 0 && words.rank(at) > rank {
            link = self.towards(at, key);
            at = words.link(link);
        }
        self.split(at, key, node);
        words.set_link(link, node);
    }

    /// Makes of the subtree at `at` two subtrees of `node`: keys below `key`, and the others.
    fn split(&self, mut at: usize, key: Key, node: usize) {
        let words = self.words;
        let (mut left, mut right) = (node + LEFT, node + RIGHT);
        while at != 0 {
            if (self.key)(at) < key {
                words.set_link(left, at);
                left = at + RIGHT;
                at = words.link(left);
            } else {
                words.set_link(right, at);
                right = at + LEFT;
                at = words.link(right);
            }
        }
        words.set_link(left, 0);
        words.set_link(right, 0);
    }

    /// Takes a node out of the tree. Returns whether it was there.
    pub(crate) fn remove(&self, node: usize) -> bool {
        let words = self.words;
        let key = (self.key)(node);
        let mut link = self.root;
        let mut at = words.link(link);
        while at != node {
            if at == 0 {
                return false;
            }
            link = self.towards(at, key);
            at = words.link(link);
        }
        self.join(link, words.link(node + LEFT), words.link(node + RIGHT));
        true
    }

    /// Makes one tree of two, all keys of the first below those of the second.
    fn join(&self, mut link: usize, mut low: usize, mut high: usize) {
        let words = self.words;
        while low != 0 && high != 0 {
            if words.rank(low) > words.rank(high) {
                words.set_link(link, low);
                link = low + RIGHT;
                low = words.link(link);
            } else {
                words.set_link(link, high);
                link = high + LEFT;
                high = words.link(link);
            }
        }
        words.set_link(link, if low != 0 { low } else { high });
    }

    /// Returns the node with the least key that is not below `key`, or 0.
    pub(crate) fn at_least(&self, key: Key) -> usize {
        let mut best = 0;
        let mut at = self.words.link(self.root);
        while at != 0 {
            if (self.key)(at) >= key {
                best = at;
                at = self.words.link(at + LEFT);
            } else {
                at = self.words.link(at + RIGHT);
            }
        }
        best
    }

    /// Returns the node with the greatest key that is not above `key`, or 0.
    pub(crate) fn at_most(&self, key: Key) -> usize {
        let mut best = 0;
        let mut at = self.words.link(self.root);
        while at != 0 {
            if (self.key)(at) <= key {
                best = at;
                at = self.words.link(at + RIGHT);
            } else {
                at = self.words.link(at + LEFT);
            }
        }
        best
    }

    #[inline]
    fn towards(&self, at: usize, key: Key) -> usize {
        if key < (self.key)(at) { at + LEFT } else { at + RIGHT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    /// Room for so many nodes of 16 bytes, and the root.
    const NODES: usize = 200;

    fn on_tree(test: impl FnOnce(&Tree<fn(usize) -> Key>, usize)) {
        let memory: Vec<u128> = std::vec![0; NODES + 2];
        let base = memory.as_ptr().expose_provenance();
        // SAFETY: the vector lives as long as the closure runs.
        let words = unsafe { Words::new(base, 99) };
        words.set_link(base, 0);
        let key: fn(usize) -> Key = |node| (node / 16 % 7, node);
        test(&Tree::new(words, base, key), base + 16);
    }

    proptest! {
        #[test]
        fn a_tree_finds_what_a_set_finds(
            steps in proptest::collection::vec((0..NODES, 0..7usize), 1..400)
        ) {
            on_tree(|tree, first| {
                let mut model: BTreeSet<Key> = BTreeSet::new();
                for &(index, size) in &steps {
                    let node = first + index * 16;
                    let key = (node / 16 % 7, node);
                    if model.remove(&key) {
                        assert!(tree.remove(node));
                    } else {
                        tree.insert(node);
                        model.insert(key);
                    }
                    let bound = (size, node);
                    let above = model.range(bound..).next().map_or(0, |key| key.1);
                    let below = model.range(..=bound).next_back().map_or(0, |key| key.1);
                    assert_eq!(tree.at_least(bound), above);
                    assert_eq!(tree.at_most(bound), below);
                }
            });
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_not_removed() {
        on_tree(|tree, first| {
            assert!(!tree.remove(first));
            tree.insert(first);
            assert!(!tree.remove(first + 16));
        });
    }
}
