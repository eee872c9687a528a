//! The words before, in and behind a block of the best-fit method.
//!
//! ```text
//!          ◀────────────────── size: a multiple of 16, at least 32 ─────────────────▶
//!   busy   [header] what the program has: size - 8 bytes                    [header of the next
//!   kept   [header] [link] ...                                              [header of the next
//!   free   [header] [link] [link] ...                     [size, at the end] [header of the next
//!                   ▲ the block's address, a multiple of 16
//! ```
//!
//! A header holds the size of its block, how many of its bytes the program did not ask for, whether
//! the block is busy or kept, and whether the block before is free. A kept block is one that the
//! program freed and that was not joined with its neighbours yet: for them it is busy. A segment
//! ends with a header of size 0.

use crate::words::{GRANULE, Words, in_order};

/// The bytes of a header.
pub(super) const HEADER: usize = 8;

/// The smallest block: header, two links, and the size at the end.
pub(super) const SMALLEST: usize = 32;

/// No block is larger: 35 bits of granules.
pub(super) const LARGEST: usize = (1 << 39) - GRANULE;

/// The block for a request is not larger, nor is a piece of memory that is longer than a block can
/// be: what is left then is long enough for a block.
const PIECE: usize = LARGEST - SMALLEST;

const BUSY: u64 = 1;
const AFTER_FREE: u64 = 2;
const KEPT: u64 = 4;
const FLAG_BITS: u32 = 3;

/// The bits of a header that tell how many bytes at the end the program did not ask for: less than
/// two granules, and more if a smaller block was asked for than there is.
const PADDING_BITS: u32 = 6;
const PADDING: u64 = ((1 << PADDING_BITS) - 1) << FLAG_BITS;
const SIZE_SHIFT: u32 = FLAG_BITS + PADDING_BITS;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(u64);

impl Block {
    /// A block that is busy, after one that is busy.
    #[inline]
    pub(super) fn busy(size: usize) -> Block {
        Block::free(size).used()
    }

    /// A block that is free, after one that is busy.
    #[inline]
    pub(super) fn free(size: usize) -> Block {
        Block(((size / GRANULE) as u64) << SIZE_SHIFT)
    }

    #[inline]
    pub(super) fn size(self) -> usize {
        (self.0 >> SIZE_SHIFT) as usize * GRANULE
    }

    /// Returns how many bytes the program asked for.
    #[inline]
    pub(super) fn requested(self) -> usize {
        self.size() - HEADER - ((self.0 & PADDING) >> FLAG_BITS) as usize
    }

    /// The same block, for a program that asked for so many bytes.
    #[inline]
    pub(super) fn for_request(self, bytes: usize) -> Block {
        let padding = ((self.size() - HEADER - bytes) as u64) << FLAG_BITS;
        Block(self.0 & !PADDING | padding & PADDING)
    }

    /// Returns whether the block is free and joined with its neighbours.
    #[inline]
    pub(super) fn is_free(self) -> bool {
        self.0 & BUSY == 0
    }

    /// Returns whether the program has the block.
    #[inline]
    pub(super) fn is_used(self) -> bool {
        self.0 & (BUSY | KEPT) == BUSY
    }

    /// Returns whether the block was freed, and not joined with its neighbours.
    #[inline]
    pub(super) fn is_kept(self) -> bool {
        self.0 & KEPT != 0
    }

    /// Returns whether the block before is free.
    #[inline]
    pub(super) fn is_after_free(self) -> bool {
        self.0 & AFTER_FREE != 0
    }

    /// The same block with another size, all of which the program asked for.
    #[inline]
    pub(super) fn with_size(self, size: usize) -> Block {
        Block(Block::free(size).0 | self.0 & (BUSY | AFTER_FREE | KEPT))
    }

    /// The same block, after one that is free or not.
    #[inline]
    pub(super) fn after(self, is_free: bool) -> Block {
        Block(self.0 & !AFTER_FREE | if is_free { AFTER_FREE } else { 0 })
    }

    /// The same block, which was kept, and which the program has now.
    #[inline]
    pub(super) fn unkept(self) -> Block {
        Block(self.0 & !KEPT)
    }

    /// The same block, which was free, and which the program has now.
    #[inline]
    pub(super) fn used(self) -> Block {
        Block(self.0 | BUSY)
    }

    /// The same block, which the program had, and which is kept now.
    #[inline]
    pub(super) fn kept(self) -> Block {
        Block(self.0 & !PADDING | KEPT)
    }

    /// Reads the header of the block at an address. Returns `None` if it was overwritten, or if no
    /// block begins there.
    #[inline]
    pub(super) fn read(words: Words, at: usize) -> Option<Block> {
        words.unseal(at - HEADER).map(Block)
    }

    /// Writes the header of the block at an address.
    #[inline]
    pub(super) fn write(self, words: Words, at: usize) {
        // A process may end at any instruction. What the header leads to is written before.
        in_order();
        words.seal(at - HEADER, self.0);
    }

    /// Makes the header of a block that is no more invalid.
    #[inline]
    pub(super) fn erase(words: Words, at: usize) {
        in_order();
        words.erase(at - HEADER);
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
    if request > PIECE - HEADER {
        return None;
    }
    Some((request + HEADER).next_multiple_of(GRANULE).max(SMALLEST))
}

/// Divides free memory, which is long enough for a block, into pieces of which each can be a block:
/// their addresses and sizes. It is one piece unless it is very long.
pub(super) fn pieces(
    start: usize,
    end: usize,
) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<> {
    let others = (end - start).saturating_sub(LARGEST).div_ceil(PIECE);
    let last = start + others * PIECE;
    let others = (0..others).map(move |index| (start + index * PIECE, PIECE));
    others.chain(core::iter::once((last, end - last)))
}
