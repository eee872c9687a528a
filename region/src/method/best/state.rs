//! What the best-fit method keeps of a region's blocks, and how blocks are cut and joined.

use super::block::{Block, HEADER, LARGEST, SMALLEST, free_before, pieces, write_end};
use super::free_blocks::FreeBlocks;
use super::kept::Kept;
use crate::words::Words;

/// The kept blocks and the free ones.
#[repr(C)]
pub struct State {
    pub(super) kept: Kept,
    pub(super) free: FreeBlocks,
}

impl State {
    /// Makes the state of a region without blocks.
    pub(super) fn begin(&self, words: Words) {
        self.kept.begin();
        self.free.begin(words);
    }

    /// Keeps a busy block that the program freed. Returns false if it is to be joined: there are
    /// enough of its size, or it was overrun.
    #[inline]
    pub(super) fn keep(&self, words: Words, at: usize, block: Block) -> bool {
        Block::read(words, at + block.size()).is_some() && self.kept.add(words, at, block)
    }

    /// Returns a block of at least `size` bytes: the smallest that is kept or free. Kept blocks are
    /// joined if none is large enough.
    pub(super) fn take(&self, words: Words, size: usize) -> Option<usize> {
        self.take_best(words, size)
            .or_else(|| if self.join_kept(words) { self.take_best(words, size) } else { None })
    }

    fn take_best(&self, words: Words, size: usize) -> Option<usize> {
        let at = self.free.find(words, size);
        if let Some(least) = self.kept.least(size)
            && (at == 0 || Block::read(words, at).is_some_and(|block| block.size() > least))
        {
            if let Some(at) = self.kept.take(words, least, least - HEADER) {
                self.cut_back(words, at, size);
                return Some(at);
            }
            self.kept.abandon(words, least);
        }
        if at == 0 { None } else { self.take_free(words, at, size) }
    }

    /// Cuts a block from the free block at an address.
    fn take_free(&self, words: Words, at: usize, size: usize) -> Option<usize> {
        let found = Block::read(words, at).filter(|block| block.is_free() && block.size() >= size);
        let Some(block) = found.filter(|block| self.free.remove(words, at, block.size())) else {
            return self.abandon(words, at);
        };
        let rest = block.size() - size;
        if rest >= SMALLEST {
            self.add_free(words, at + size, Block::free(rest));
            block.with_size(size).used().write(words, at);
        } else {
            block.used().write(words, at);
            set_after_free(words, at + block.size(), false);
        }
        Some(at)
    }

    /// Gives up all free blocks after the words of one were overwritten: what they lead to is
    /// unknown.
    #[cold]
    fn abandon(&self, words: Words, at: usize) -> Option<usize> {
        crate::damage::report(words.address(0), at);
        self.free.begin(words);
        None
    }

    /// Joins all kept blocks with their neighbours. Returns whether there were any.
    #[cold]
    pub(super) fn join_kept(&self, words: Words) -> bool {
        let mut any = false;
        while let Some(at) = self.kept.take_any(words) {
            if let Some(block) = Block::read(words, at) {
                self.put_back(words, at, block);
            }
            any = true;
        }
        any
    }

    /// Writes the words of a free block, and adds it to the free blocks.
    pub(super) fn add_free(&self, words: Words, at: usize, block: Block) {
        block.write(words, at);
        write_end(words, at, block.size());
        self.free.insert(words, at, block.size());
    }

    /// Adds memory of a segment, which ends there, to the free blocks. It is behind one or not.
    pub(super) fn add_memory(&self, words: Words, start: usize, end: usize, after_free: bool) {
        // The headers lead from each block to the next at any time, so the last piece comes first.
        for (at, size) in pieces(start, end).rev() {
            let block = Block::busy(size).after(after_free && at == start);
            block.kept().write(words, at);
            self.put_back(words, at, block);
        }
    }

    /// Frees a block, and joins it with its free neighbours, unless that is more than a block can
    /// be. The block after them says from now on that the block before it is free.
    pub(super) fn put_back(&self, words: Words, at: usize, block: Block) {
        let (mut start, mut end) = (at, at + block.size());
        let mut after_free = block.is_after_free();
        let next = Block::read(words, end).filter(|next| next.is_free());
        let next = next.filter(|next| end - start + next.size() <= LARGEST);
        match next.filter(|next| self.free.remove(words, end, next.size())) {
            Some(next) => end += next.size(),
            None => set_after_free(words, end, true),
        }
        let mut joined = None;
        if after_free
            && let Some((before, size)) = free_before(words, at)
            && let Some(other) = Block::read(words, before)
            && other.is_free()
            && other.size() == size
            && end - before <= LARGEST
            && self.free.remove(words, before, size)
        {
            start = before;
            after_free = other.is_after_free();
            joined = Some(at);
        }
        self.add_free(words, start, Block::free(end - start).after(after_free));
        // The headers lead from each block to the next at any time, so this comes last.
        if let Some(at) = joined {
            Block::erase(words, at);
        }
    }

    /// Takes the free memory before the end of a segment out of the free blocks. Returns where it
    /// begins.
    pub(super) fn take_end(&self, words: Words, end: usize) -> usize {
        let mut start = end;
        // Memory that is longer than a block can be is several blocks.
        while Block::read(words, start).is_some_and(Block::is_after_free)
            && let Some((before, size)) = free_before(words, start)
            && let Some(block) = Block::read(words, before)
            && block.is_free()
            && block.size() == size
            && self.free.remove(words, before, size)
        {
            start = before;
        }
        start
    }

    /// Notes how many bytes the program asked for of the busy block at an address. Returns the
    /// address.
    pub(super) fn note_request(&self, words: Words, at: usize, bytes: usize) -> usize {
        if let Some(block) = Block::read(words, at) {
            block.for_request(bytes).write(words, at);
        }
        at
    }

    /// Adds the free block behind a busy one to it, if both together are at least `wanted` bytes
    /// long.
    pub(super) fn take_behind(&self, words: Words, at: usize, size: usize, wanted: usize) -> bool {
        let behind = Block::read(words, at + size).filter(|block| block.is_free());
        let (Some(block), Some(behind)) = (Block::read(words, at), behind) else { return false };
        let together = size + behind.size();
        if together < wanted || !self.free.remove(words, at + size, behind.size()) {
            return false;
        }
        if together > LARGEST {
            // More than a block can be: some of it stays free.
            self.add_free(words, at + wanted, Block::free(together - wanted));
            block.with_size(wanted).write(words, at);
        } else {
            block.with_size(together).write(words, at);
            set_after_free(words, at + together, false);
        }
        true
    }

    /// Frees what a busy block has behind its first `size` bytes, if that is enough for a block.
    pub(super) fn cut_back(&self, words: Words, at: usize, size: usize) {
        let block = Block::read(words, at).filter(|block| block.size() >= size + SMALLEST);
        let Some(block) = block else { return };
        let rest = Block::busy(block.size() - size);
        // The headers lead from each block to the next at any time, so the second comes first.
        rest.kept().write(words, at + size);
        block.with_size(size).write(words, at);
        self.put_back(words, at + size, rest);
    }

    /// Frees what a busy block has before its first address that has a multiple of `align` `lead`
    /// bytes behind it. Returns this address.
    pub(super) fn cut_front(&self, words: Words, at: usize, align: usize, lead: usize) -> usize {
        let Some(block) = Block::read(words, at) else { return at };
        let multiple = (at + lead).checked_next_multiple_of(align);
        let mut aligned = multiple.map_or(at, |multiple| multiple - lead);
        if aligned == at {
            return at;
        }
        while aligned - at < SMALLEST {
            aligned += align;
        }
        let front = aligned - at;
        Block::busy(block.size() - front).after(true).write(words, aligned);
        self.put_back(words, at, block.with_size(front));
        aligned
    }
}

/// Notes in the header at `at` whether the block before it is free.
fn set_after_free(words: Words, at: usize, after_free: bool) {
    match Block::read(words, at) {
        Some(block) => block.after(after_free).write(words, at),
        None => crate::damage::report(words.address(0), at - HEADER),
    }
}

/// Writes the header that ends a segment.
pub(super) fn mark_end(words: Words, end: usize, after_free: bool) {
    Block::busy(0).after(after_free).write(words, end);
}
