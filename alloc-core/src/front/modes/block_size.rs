//! How many bytes of a block belong to the program, and how large a block a request needs.
//!
//! In the hardened tier every block has a canary, so that any thread may free what any other thread
//! allocated, cached or not. The options decide this once, at start.

use super::guarded;
use super::hardened::canary;
use crate::back::map::extent::Extent;
use crate::back::map::page_map;
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass, size_for_align};
use crate::ground::units::PAGE;
use crate::middle::arenas::large;
use crate::middle::blocks::empty_blocks;
use crate::middle::slabs::slab::Slab;

/// What a sized free says of its block: the requested size and alignment.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Whether the size may be less than the requested one, in the same class.
    pub(crate) or_less: bool,
}

impl Given {
    /// Returns whether this is the size of a block for which `requested` bytes were requested.
    #[inline(always)]
    pub(crate) fn is_of(self, requested: usize) -> bool {
        let size = self.size.max(1);
        size == requested || (self.or_less && size < requested)
    }

    /// Returns whether the size is the requested one, although it may be of another class: of
    /// `sdallocx` the size alone is demanded, as `sallocx` tells it.
    #[inline(always)]
    pub(crate) fn is_size_alone(self, requested: usize) -> bool {
        self.or_less && self.align <= 1 && self.size == requested
    }

    /// Returns the bin that serves such a request in the hardened tier, or 0 for a large block.
    #[inline(always)]
    pub(crate) fn hardened_bin(self) -> usize {
        match canary::room(self.size, self.align) {
            Some(room) if room <= MAX_CACHED => SizeClass::of(room).bin(),
            _ => 0,
        }
    }

    /// Returns the bin that serves such a request in any other tier, or 0 for a large block.
    pub(crate) fn bin(self) -> usize {
        match size_for_align(self.size, self.align) {
            Some(rounded) if rounded <= MAX_CACHED => SizeClass::of(rounded).bin(),
            _ => 0,
        }
    }
}

/// Returns the bytes that a request needs, rounded so that the class is a multiple of `align`.
/// Above [`MAX_CACHED`] the request gets a large block, of the requested size. The options must
/// have been read.
#[inline]
pub(crate) fn room(size: usize, align: usize) -> Option<usize> {
    if options::current().hardened {
        canary::room(size, align)
    } else {
        size_for_align(size, align)
    }
}

/// Returns how many bytes of a block of a class belong to the program at most.
#[inline]
pub(crate) fn usable(class: SizeClass) -> usize {
    if options::current().hardened { class.size() - canary::BYTES } else { class.size() }
}

/// Returns how many bytes of a block of a class belong to the program that requested `size` bytes:
/// in the hardened tier no more than these.
#[inline]
pub(crate) fn usable_of(class: SizeClass, size: usize) -> usize {
    if options::current().hardened { size.max(1) } else { class.size() }
}

/// Returns how many bytes of a large block in use belong to the program: in the hardened tier those
/// that were requested.
#[inline]
pub(crate) fn usable_of_large(extent: &Extent) -> usize {
    extent.requested().unwrap_or(extent.bytes())
}

/// Returns how many bytes a large block gets for a request of `size` bytes: those of its class. In
/// the hardened tier whole pages get no more, so that a page without access may follow. `None`: the
/// size is above the largest.
#[inline]
pub(crate) fn of_large(size: usize) -> Option<usize> {
    if size.is_multiple_of(PAGE) && options::current().hardened {
        large::whole_pages(size)
    } else {
        large::usable(size)
    }
}

/// Returns how many bytes a small block of the hardened tier may hold at most, whatever was
/// requested. `None` for other blocks, whose usable size does not depend on it.
pub(crate) fn most_in_place(block: *const u8) -> Option<usize> {
    if !options::current().hardened {
        return None;
    }
    Slab::of(page_map::lookup(block as usize)).map(|slab| usable(slab.class()))
}

/// Returns the number of bytes that the block at an address may hold at most, or `None` if no block
/// of this allocator begins there. A small block may be one that was freed. Reads nothing of the
/// block, because its slab may go at this moment.
#[inline]
pub(crate) fn of_block(ptr: *const u8) -> Option<usize> {
    let address = ptr as usize;
    let entry = page_map::lookup(address);
    if let Some(slab) = Slab::of(entry) {
        let slot = slab.class().slot_at(address.wrapping_sub(slab.base()));
        return slot.map(|_| usable(slab.class()));
    }
    match entry.extent() {
        Some(extent) => extent.is_block_at(address).then(|| extent.bytes()),
        None if empty_blocks::is_block_at(address) => Some(0),
        None => guarded::usable_size(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_takes_its_part_of_the_class() {
        let bins = |size, align| {
            let given = Given { size, align, or_less: false };
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
