//! The words before, in and behind a block of the best-fit method.
//!
//! ```text
//!          ◀────────────────── size: a multiple of 16, at least 32 ─────────────────▶
//!   busy   [header] what the program has: size - 8 bytes                    [header of the next
//!   free   [header] [link] [link] ...                     [size, at the end] [header of the next
//!                   ▲ the block's address, a multiple of 16
//! ```
//!
//! A header holds the size of its block, whether the block is busy, and whether the block before is
//! free. A segment ends with a header of size 0.

use crate::words::{GRANULE, Words};

/// The bytes of a header.
pub(super) const HEADER: usize = 8;

/// The smallest block: header, two links, and the size at the end.
pub(super) const SMALLEST: usize = 32;

/// No block is larger: 36 bits of granules.
pub(super) const LARGEST: usize = 1 << 39;

const BUSY: u64 = 1;
const AFTER_FREE: u64 = 2;
const FLAG_BITS: u32 = 2;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) size: usize,
    pub(super) busy: bool,
    /// Whether the block before is free.
    pub(super) after_free: bool,
}

impl Block {
    /// Reads the header of the block at an address. Returns `None` if it was overwritten, or if no
    /// block begins there.
    #[inline]
    pub(super) fn read(words: Words, at: usize) -> Option<Block> {
        let value = words.unseal(at - HEADER)?;
        Some(Block {
            size: (value >> FLAG_BITS) as usize * GRANULE,
            busy: value & BUSY != 0,
            after_free: value & AFTER_FREE != 0,
        })
    }

    /// Writes the header of the block at an address.
    #[inline]
    pub(super) fn write(self, words: Words, at: usize) {
        let flags = u64::from(self.busy) | u64::from(self.after_free) << 1;
        words.seal(at - HEADER, ((self.size / GRANULE) as u64) << FLAG_BITS | flags);
    }

    /// Makes the header of a block that is no more invalid: the tag gets another bit.
    #[inline]
    pub(super) fn erase(words: Words, at: usize) {
        words.write(at - HEADER, words.read(at - HEADER) ^ 1 << 63);
    }
}

/// Writes the size of a free block at its end.
#[inline]
pub(super) fn write_end(words: Words, at: usize, size: usize) {
    words.seal(at + size - 2 * HEADER, (size / GRANULE) as u64);
}

/// Returns the address of the free block before the one at `at`, with its size, or `None` if a word
/// was overwritten.
#[inline]
pub(super) fn free_before(words: Words, at: usize) -> Option<(usize, usize)> {
    let size = words.unseal(at - 2 * HEADER)? as usize * GRANULE;
    let before = at.wrapping_sub(size);
    (size >= SMALLEST).then_some((before, size))
}

/// Returns the size of the block for a request, or `None` if no block is so large.
#[inline]
pub(super) fn size_for(request: usize) -> Option<usize> {
    if request > LARGEST - SMALLEST {
        return None;
    }
    Some((request + HEADER).next_multiple_of(GRANULE).max(SMALLEST))
}
