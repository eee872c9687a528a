//! What memory a run may be made of, and new memory for one.

use super::block_end;
use super::dense;
use super::huge;
use super::in_hand::InHand;
use super::page_allocator::PageAllocator;

/// Which memory an allocation may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// Unused pages that still have memory.
    Resident,
    /// Addresses without memory as well.
    Any,
    /// The same, and most of it will be written soon.
    Filled,
    /// The same, but little of the huge page in which it ends.
    Begun,
    /// Most of it will be written soon, and more such runs will follow.
    Followed,
}

impl Memory {
    /// The same memory, by who will write most of it soon.
    pub(crate) fn filled_if(self, filled: bool) -> Memory {
        if filled && self == Memory::Any { Memory::Filled } else { self }
    }

    /// The same memory, by who has written many such runs already.
    pub(crate) fn followed_if(self, followed: bool) -> Memory {
        if followed && self == Memory::Any { Memory::Followed } else { self }
    }
}

impl PageAllocator {
    /// A run of new memory, as far as `memory` lets it and bounds do.
    pub(super) fn allocate_fresh(
        &mut self,
        pages: usize,
        align: usize,
        memory: Memory,
    ) -> Option<InHand> {
        if memory == Memory::Resident || !self.admits(pages) {
            return None;
        }
        let (run, new) = match memory {
            Memory::Filled => {
                self.take_to_fill(pages, align, block_end::backed(pages), dense::LARGE_HEAP)?
            }
            Memory::Begun => self.take_to_fill(pages, align, pages, dense::LARGE_HEAP)?,
            Memory::Followed => self.take_to_fill(pages, align, pages, dense::SMALL_HEAP)?,
            _ => (self.take_addresses(pages, align)?, pages),
        };
        self.debt.incur(new, self.dirty.pages(), self.counts.active);
        self.report();
        Some(run)
    }

    /// A run for who will write most of it, and how many of its pages had no memory. In huge pages
    /// it takes `whole` pages, and leaves what it does not need to others. A heap of `heap` pages
    /// is large enough for a chunk.
    fn take_to_fill(
        &mut self,
        pages: usize,
        align: usize,
        whole: usize,
        heap: usize,
    ) -> Option<(InHand, usize)> {
        if let Some(made) = self.take_from_unused(pages, align, whole) {
            return Some(made);
        }
        let fresh = self
            .take_dense(pages, align, heap)
            .or_else(|| self.take_whole_huge(pages, align, whole))
            .or_else(|| self.take_addresses(pages, huge::best_align(pages, align)))
            .or_else(|| self.take_addresses(pages, align))?;
        Some((fresh, pages))
    }
}
