//! The free blocks of a region: a list for each small size, and a tree of the larger ones by size
//! and address.

use super::block::{Block, SMALLEST};
use crate::segments::{Link, Number};
use crate::tree::{Key, Tree};
use crate::words::{GRANULE, Words};

/// Small sizes: 32, 48, up to 1040.
const LISTS: usize = 64;
const LARGEST_SMALL: usize = SMALLEST + (LISTS - 1) * GRANULE;

/// The places of the links in a free block, counted from its address.
const NEXT: usize = 0;
const PREVIOUS: usize = 8;

/// Lists and tree.
#[repr(C)]
pub(crate) struct FreeBlocks {
    /// A bit for each list that is not empty.
    occupied: Number,
    lists: [Link; LISTS],
    root: Link,
}

impl FreeBlocks {
    pub(super) fn begin(&self, words: Words) {
        self.occupied.set(0);
        for list in &self.lists {
            words.set_link(list.place(), 0);
        }
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
                return self.lists.get(list).map_or(0, |list| words.link(list.place()));
            }
        }
        self.tree(words).at_least((size, 0))
    }

    /// Adds a block.
    #[inline]
    pub(super) fn insert(&self, words: Words, at: usize, size: usize) {
        let Some(list) = self.list(size) else {
            self.tree(words).insert(at);
            return;
        };
        let next = words.link(list.place());
        words.set_link(at + NEXT, next);
        words.set_link(at + PREVIOUS, 0);
        if next != 0 {
            words.set_link(next + PREVIOUS, at);
        }
        words.set_link(list.place(), at);
        self.occupied.set(self.occupied.get() | 1 << list_of(size));
    }

    /// Takes a block out. Returns false if its words were overwritten, and then it stays unused.
    #[inline]
    pub(super) fn remove(&self, words: Words, at: usize, size: usize) -> bool {
        let Some(list) = self.list(size) else {
            return self.tree(words).remove(at);
        };
        let (next, previous) = (words.link(at + NEXT), words.link(at + PREVIOUS));
        let from = if previous == 0 { list.place() } else { previous + NEXT };
        if words.link(from) != at {
            return false;
        }
        words.set_link(from, next);
        if next != 0 {
            words.set_link(next + PREVIOUS, previous);
        } else if previous == 0 {
            self.occupied.set(self.occupied.get() & !(1 << list_of(size)));
        }
        true
    }

    #[inline]
    fn list(&self, size: usize) -> Option<&Link> {
        self.lists.get(list_of(size))
    }

    fn tree(&self, words: Words) -> Tree<impl Fn(usize) -> Key> {
        let size_of = move |at| Block::read(words, at).map_or(0, |block| block.size);
        Tree::new(words, self.root.place(), move |at| (size_of(at), at))
    }
}

#[inline]
fn list_of(size: usize) -> usize {
    (size - SMALLEST) / GRANULE
}
