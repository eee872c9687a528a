//! How much of a block is the program's, and how large a block a request takes.
//!
//! In the hardened tier each small block ends with a canary, so that any thread may free what any
//! other allocated, cached or not: the options say so once, at start.

use super::hardened::canary;
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass, size_for_align};

/// What a sized free says of its block: the size and the alignment that were asked for.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub(crate) size: usize,
    pub(crate) align: usize,
}

impl Given {
    /// The bin that serves such a request in the hardened tier; 0 for a large block's.
    #[inline(always)]
    pub(crate) fn hardened_bin(self) -> usize {
        match canary::room(self.size, self.align) {
            Some(room) if room <= MAX_CACHED => SizeClass::of(room).bin(),
            _ => 0,
        }
    }

    /// The bin that serves such a request in any other tier; 0 for a large block's.
    pub(crate) fn bin(self) -> usize {
        match size_for_align(self.size, self.align) {
            Some(rounded) if rounded <= MAX_CACHED => SizeClass::of(rounded).bin(),
            _ => 0,
        }
    }
}

/// What a request takes, rounded so that its class is a multiple of `align`. Above [`MAX_CACHED`]
/// it is a large block, of the size that was asked for. The options must be known.
#[inline]
pub(crate) fn room(size: usize, align: usize) -> Option<usize> {
    if options::current().hardened {
        canary::room(size, align)
    } else {
        size_for_align(size, align)
    }
}

/// Bytes of a class's block that are the program's.
#[inline]
pub(crate) fn usable(class: SizeClass) -> usize {
    if options::current().hardened { class.size() - canary::BYTES } else { class.size() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_takes_its_part_of_the_class() {
        let bins = |size, align| {
            let given = Given { size, align };
            (given.bin(), given.hardened_bin())
        };
        let bin = |size| SizeClass::of(size).bin();
        assert_eq!(bins(100, 1), (bin(100), bin(108)));
        assert_eq!(bins(112, 1), (bin(112), bin(128)));
        assert_eq!(bins(100, 64), (bin(128), bin(128)));
        assert_eq!(bins(MAX_CACHED, 1), (bin(MAX_CACHED), 0));
        assert_eq!(bins(MAX_CACHED + 1, 1), (0, 0));
        assert_eq!(bins(usize::MAX, 4096), (0, 0));
    }
}
