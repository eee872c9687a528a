//! What the heap monitor notes of an allocation or a free.

use crate::back::map::page_map::{self, Entry};

/// An allocation or a free, as the heap monitor records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened, in nanoseconds of the system's monotonic clock.
    pub time: u64,
    /// Where the block is.
    pub address: usize,
    /// What happened.
    pub what: What,
    /// The number of the stack: see [`stacks_from`](crate::control::monitor::stacks_from). 0:
    /// there was no memory for it.
    pub stack: u32,
    /// The system's number of the thread.
    pub thread: u32,
}

/// What happened to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was allocated.
    Allocated {
        /// The bytes that were requested.
        size: usize,
    },
    /// It was freed.
    Freed {
        /// What the block began with: see [`first_word`].
        first: usize,
    },
}

#[cfg(test)]
impl Event {
    pub(super) const NONE: Event =
        Event { time: 0, address: 0, what: What::Allocated { size: 0 }, stack: 0, thread: 0 };
}

/// What [`first_word`] returns for a word that is neither zero nor an address outside of the heap.
pub const NO_POINTER: usize = 1;

/// The largest address of a program.
const LARGEST: usize = 1 << 47;
/// The smallest address of a program, which is not the number of elements of an array.
const SMALLEST: usize = 1 << 16;

/// Returns the word by which the C++ type of an object can be found in a block that begins with
/// these words: the first one, or the second one if the first is the number of elements of an
/// array. A word that is no address is returned as [`NO_POINTER`], and so is an address in the
/// heap, because no table of virtual functions lies there.
#[must_use]
pub fn first_word(words: [usize; 2], size: usize) -> usize {
    let [first, second] = words;
    let is_count = (1..SMALLEST).contains(&first) && first <= size / size_of::<usize>();
    let word = if is_count { second } else { first };
    let is_pointer = (SMALLEST..LARGEST).contains(&word) && word.is_multiple_of(8);
    match word {
        0 if !is_count => 0,
        _ if is_pointer && page_map::lookup(word) == Entry::NONE => word,
        _ => NO_POINTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: [usize; 4] = [0; 4];

    #[test]
    fn the_word_is_a_possible_table_of_functions_or_nil() {
        let table = TABLE.as_ptr() as usize;
        assert_eq!(first_word([0, table], 64), 0);
        assert_eq!(first_word([table, 0], 64), table);
        assert_eq!(first_word([8, table], 64), table, "eight elements of an array");
        assert_eq!(first_word([9, table], 64), NO_POINTER, "there is no room for nine");
        assert_eq!(first_word([8, 0], 64), NO_POINTER);
        for word in [table + 1, 4096, usize::MAX, 1 << 60, 0x6c6c_6f20_6f6c_6548] {
            assert_eq!(first_word([word, table], 64), NO_POINTER, "{word:#x}");
        }
    }
}
