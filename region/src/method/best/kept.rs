//! Blocks that the program freed, and that are kept as they are for the next request of their size.
//!
//! A kept block is not joined with its neighbours, so it costs neither a look at them nor the words
//! of a free block. There is a list for each small size, of few blocks.

use super::block::{Block, HEADER, SMALLEST};
use crate::segments::Number;
use crate::words::{GRANULE, Words};

/// Sizes that are kept: 32, 48, up to 528.
const LISTS: usize = 32;

/// The most blocks of one size, and the bits of a list that count them.
const MOST: usize = GRANULE - 1;

/// The lists of kept blocks.
#[repr(C)]
pub(super) struct Kept {
    /// A bit for each list that is not empty.
    occupied: Number,
    /// The distance of each list's first block, and in its lowest bits, how many there are.
    lists: [Number; LISTS],
}

impl Kept {
    pub(super) fn begin(&self) {
        self.occupied.set(0);
        for list in &self.lists {
            list.set(0);
        }
    }

    /// Returns the smallest size of at least `size` bytes of which there is a block.
    #[inline]
    pub(super) fn least(&self, size: usize) -> Option<usize> {
        let list = list_of(size);
        if list >= LISTS {
            return None;
        }
        let occupied = self.occupied.get() >> list;
        (occupied != 0).then(|| size + occupied.trailing_zeros() as usize * GRANULE)
    }

    /// Keeps a busy block. Returns false if there are enough of its size.
    #[inline]
    pub(super) fn add(&self, words: Words, at: usize, block: Block) -> bool {
        let index = list_of(block.size());
        let Some(list) = self.lists.get(index) else { return false };
        let first = list.get();
        if first % GRANULE == MOST {
            return false;
        }
        if first == 0 {
            self.occupied.set(self.occupied.get() | 1 << index);
        }
        block.kept().write(words, at);
        words.set_linked(at, first);
        list.set(words.distance(at) + first % GRANULE + 1);
        true
    }

    /// Returns a kept block of exactly `size` bytes, which is busy from now on, for a request of so
    /// many bytes. Returns `None` if there is none, or if its words were overwritten.
    #[inline]
    pub(super) fn take(&self, words: Words, size: usize, request: usize) -> Option<usize> {
        let index = list_of(size);
        let list = self.lists.get(index)?;
        let first = list.get();
        if first == 0 {
            return None;
        }
        let at = words.address(first - first % GRANULE);
        let block = Block::read(words, at)?;
        let next = words.unseal_link(at)?;
        if block.after(false) != Block::busy(size).kept() {
            return None;
        }
        list.set(if next == 0 { 0 } else { next + first % GRANULE - 1 });
        if next == 0 {
            self.occupied.set(self.occupied.get() & !(1 << index));
        }
        block.unkept().for_request(request).write(words, at);
        Some(at)
    }

    /// Gives up the blocks of a size after [`Kept::take`] returned `None`, if there are any: words
    /// of the first one were overwritten.
    pub(super) fn abandon(&self, words: Words, size: usize) {
        let index = list_of(size);
        let Some(list) = self.lists.get(index).filter(|list| list.get() != 0) else { return };
        let at = words.address(list.get() - list.get() % GRANULE);
        let is_link = Block::read(words, at).is_some();
        crate::damage::report(words.address(0), if is_link { at } else { at - HEADER });
        list.set(0);
        self.occupied.set(self.occupied.get() & !(1 << index));
    }

    /// Takes a kept block of any size.
    pub(super) fn take_any(&self, words: Words) -> Option<usize> {
        loop {
            let size = self.least(SMALLEST)?;
            match self.take(words, size, size - HEADER) {
                Some(at) => return Some(at),
                None => self.abandon(words, size),
            }
        }
    }
}

#[cfg(test)]
impl Kept {
    /// Checks the lists, and returns all kept blocks.
    pub(super) fn checked(&self, words: Words) -> std::vec::Vec<usize> {
        let mut all = std::vec![];
        for (index, list) in self.lists.iter().enumerate() {
            let before = all.len();
            let mut next = list.get() - list.get() % GRANULE;
            while next != 0 {
                let at = words.address(next);
                let block = Block::read(words, at).unwrap();
                assert_eq!(block.after(false), Block::busy(SMALLEST + index * GRANULE).kept());
                all.push(at);
                next = words.unseal_link(at).unwrap();
                next -= next % GRANULE;
            }
            assert_eq!(all.len() - before, list.get() % GRANULE);
            assert_eq!(self.occupied.get() >> index & 1 == 1, list.get() != 0);
        }
        all
    }
}

#[inline]
fn list_of(size: usize) -> usize {
    (size - SMALLEST) / GRANULE
}
