//! Freed blocks that are kept for a while, so that writes to them are noticed.

use super::block;
use crate::segments::{Link, Number};
use crate::words::Words;

/// How many bytes of freed blocks are kept, and how many blocks.
const MOST_BYTES: usize = 256 << 10;
const MOST_BLOCKS: usize = 1024;

/// A queue of freed blocks, linked from the oldest to the newest.
#[repr(C)]
pub(crate) struct Quarantine {
    oldest: Link,
    newest: Link,
    bytes: Number,
    blocks: Number,
}

impl Quarantine {
    /// Makes the queue empty.
    pub(super) fn begin(&self, words: Words) {
        words.set_link(self.oldest.place(), 0);
        words.set_link(self.newest.place(), 0);
        self.bytes.set(0);
        self.blocks.set(0);
    }

    /// Adds a freed block of so many bytes.
    pub(super) fn push(&self, words: Words, at: usize, bytes: usize) {
        words.set_link(block::link(at), 0);
        let newest = words.link(self.newest.place());
        let from = if newest == 0 { self.oldest.place() } else { block::link(newest) };
        words.set_link(from, at);
        words.set_link(self.newest.place(), at);
        self.bytes.add(bytes);
        self.blocks.add(1);
    }

    /// Returns whether the queue is longer than it may be.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.get() > MOST_BYTES || self.blocks.get() > MOST_BLOCKS
    }

    /// Returns the oldest block, or 0.
    pub(super) fn oldest(&self, words: Words) -> usize {
        words.link(self.oldest.place())
    }

    /// Takes the oldest block out, which has so many bytes.
    pub(super) fn pop(&self, words: Words, at: usize, bytes: usize) {
        let next = words.link(block::link(at));
        words.set_link(self.oldest.place(), next);
        if next == 0 {
            // The end, or a link that was overwritten: what is behind it stays unused.
            self.begin(words);
        } else {
            self.bytes.subtract(bytes);
            self.blocks.subtract(1);
        }
    }
}
