//! How long the records of slabs are: two cache lines, and two words for each 64 blocks.

use crate::ground::size_class::{MAX_WORDS, SizeClass};

/// How many lengths records have: one for each log2 of their words.
pub(crate) const RECORD_CLASSES: usize = MAX_WORDS.trailing_zeros() as usize + 1;

/// Bytes of a record without its words.
pub(super) const LINES: usize = 128;

/// log2 of the words that a record for `class` needs.
pub(crate) fn lg_words(class: SizeClass) -> usize {
    class.words().next_power_of_two().trailing_zeros() as usize
}

/// Bytes of the free words, or of the remote words. Each kind begins on a cache line of its own.
pub(super) const fn words_bytes(lg: usize) -> usize {
    let bytes = 8 << lg;
    if bytes < 64 { 64 } else { bytes }
}

/// Bytes of a record with `1 << lg` words.
pub(crate) const fn record_bytes(lg: usize) -> usize {
    LINES + 2 * words_bytes(lg)
}
