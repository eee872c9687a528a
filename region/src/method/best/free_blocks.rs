//! The free blocks of a region: a list for each small size, and a tree of the larger ones by size
//! and address.
//!
//! The larger one that was added last is on its own, not in the tree: a block that one block after
//! the other is cut from or joined with does not change the tree.

use super::block::{Block, SMALLEST};
use crate::segments::{Link, Number};
use crate::tree::{Key, Tree};
use crate::words::{GRANULE, Words};

/// Small sizes: 32, 48, up to 528.
const LISTS: usize = 32;
const LARGEST_SMALL: usize = SMALLEST + (LISTS - 1) * GRANULE;

/// The places of the links in a free block, counted from its address.
const NEXT: usize = 0;
const PREVIOUS: usize = 8;

/// Lists and tree.
#[repr(C)]
pub(super) struct FreeBlocks {
    /// A bit for each list that is not empty.
    occupied: Number,
    /// The distance of each list's first block, or 0.
    lists: [Number; LISTS],
    /// The distance of the block on its own, or 0.
    single: Number,
    root: Link,
}

impl FreeBlocks {
    pub(super) fn begin(&self, words: Words) {
        self.occupied.set(0);
        for list in &self.lists {
            list.set(0);
        }
        self.single.set(0);
        words.set_link(self.root.place(), 0);
    }

    /// Returns the smallest free block of at least `size` bytes, or 0. Of two large ones of a size,
    /// it is the one with the lower address.
    #[inline]
    pub(super) fn find(&self, words: Words, size: usize) -> usize {
        if size <= LARGEST_SMALL {
            let list = list_of(size);
            let occupied = self.occupied.get() >> list;
            if occupied != 0 {
                let list = list + occupied.trailing_zeros() as usize;
                return self.lists.get(list).map_or(0, |list| words.address(list.get()));
            }
        }
        self.find_large(words, size)
    }

    fn find_large(&self, words: Words, size: usize) -> usize {
        let in_tree = self.tree(words).at_least((size, 0));
        let single = words.address(self.single.get());
        let key = |at| (size_of(words, at), at);
        let fits = self.single.get() != 0 && size_of(words, single) >= size;
        if fits && (in_tree == 0 || key(single) < key(in_tree)) { single } else { in_tree }
    }

    /// Adds a block.
    #[inline]
    pub(super) fn insert(&self, words: Words, at: usize, size: usize) {
        let distance = words.distance(at);
        let Some(list) = self.list(size) else {
            let other = self.single.get();
            self.single.set(distance);
            if other != 0 {
                self.tree(words).insert(words.address(other));
            }
            return;
        };
        let next = list.get();
        words.set_linked(at + NEXT, next);
        words.set_linked(at + PREVIOUS, 0);
        if next != 0 {
            words.set_linked(words.address(next) + PREVIOUS, distance);
        }
        list.set(distance);
        self.occupied.set(self.occupied.get() | 1 << list_of(size));
    }

    /// Takes a block out. Returns false if its words were overwritten, and then it stays unused.
    #[inline]
    pub(super) fn remove(&self, words: Words, at: usize, size: usize) -> bool {
        let distance = words.distance(at);
        let Some(list) = self.list(size) else {
            if self.single.get() == distance {
                self.single.set(0);
                return true;
            }
            return self.tree(words).remove(at);
        };
        let (next, previous) = (words.linked(at + NEXT), words.linked(at + PREVIOUS));
        if previous == 0 {
            if list.get() != distance {
                return false;
            }
            list.set(next);
            if next == 0 {
                self.occupied.set(self.occupied.get() & !(1 << list_of(size)));
            }
        } else {
            let link = words.address(previous) + NEXT;
            if words.linked(link) != distance {
                return false;
            }
            words.set_linked(link, next);
        }
        if next != 0 {
            words.set_linked(words.address(next) + PREVIOUS, previous);
        }
        true
    }

    #[inline]
    fn list(&self, size: usize) -> Option<&Number> {
        self.lists.get(list_of(size))
    }

    fn tree(&self, words: Words) -> Tree<impl Fn(usize) -> Key> {
        Tree::new(words, self.root.place(), move |at| (size_of(words, at), at))
    }
}

#[cfg(test)]
impl FreeBlocks {
    /// Checks lists and tree, and returns all free blocks.
    pub(super) fn checked(&self, words: Words) -> std::vec::Vec<usize> {
        let mut all = std::vec![];
        for (index, list) in self.lists.iter().enumerate() {
            let (mut next, mut previous) = (list.get(), 0);
            assert_eq!(self.occupied.get() >> index & 1 == 1, next != 0);
            while next != 0 {
                let at = words.address(next);
                assert_eq!(size_of(words, at), SMALLEST + index * GRANULE);
                assert_eq!(words.unseal_link(at + PREVIOUS), Some(previous));
                all.push(at);
                (next, previous) = (words.unseal_link(at + NEXT).unwrap(), next);
            }
        }
        let first_large = all.len();
        all.extend((self.single.get() != 0).then(|| words.address(self.single.get())));
        let mut at = self.tree(words).at_least((0, 0));
        while at != 0 {
            all.push(at);
            at = self.tree(words).at_least((size_of(words, at), at + 1));
        }
        assert!(all[first_large..].iter().all(|&at| size_of(words, at) > LARGEST_SMALL));
        all
    }
}

/// Returns the size of a free block, or 0 if its header was overwritten.
fn size_of(words: Words, at: usize) -> usize {
    Block::read(words, at).map_or(0, Block::size)
}

#[inline]
fn list_of(size: usize) -> usize {
    (size - SMALLEST) / GRANULE
}
