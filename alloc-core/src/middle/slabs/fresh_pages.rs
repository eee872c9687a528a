//! How far a fresh slab has been used: its pages that no block was taken of yet.
//!
//! Blocks are taken lowest first, or by whole lines. So `n` blocks that are in use at a time have
//! touched at least the pages that they fill. A page that was touched once stays so. The pages of
//! all slabs together are counted in [`crate::back::placement::untouched`]. A slab that was used up
//! once is no longer looked at.

use crate::back::map::extent::Extent;
use crate::back::placement::untouched;
use crate::back::runs::chunk_notes;
use crate::ground::units::PAGE;
use core::cell::Cell;

/// The pages of a slab that are untouched. Guarded as the slab's free bits are.
pub(crate) struct FreshPages {
    left: Cell<u8>,
    in_huge: Cell<bool>,
    were_zero: Cell<bool>,
}

impl FreshPages {
    /// No untouched pages.
    pub(crate) const fn new() -> FreshPages {
        FreshPages { left: Cell::new(0), in_huge: Cell::new(false), were_zero: Cell::new(false) }
    }

    /// Counts the pages of a fresh slab as untouched, if they have not been used before.
    pub(in crate::middle) fn begin(&self, run: &Extent) {
        self.were_zero.set(run.zeroed.get() || run.was_wiped());
        if run.zeroed.get() {
            self.in_huge.set(chunk_notes::is_in_huge_pages(run));
            self.left.set(run.pages().min(usize::from(u8::MAX)) as u8);
            untouched::add(self.left(), self.in_huge.get());
        }
    }

    /// Returns whether all pages read zero when the slab was made. Bytes to which the program wrote
    /// after a free may not.
    pub(crate) fn were_zero(&self) -> bool {
        self.were_zero.get()
    }

    /// Whether untouched pages are left.
    #[inline(always)]
    pub(in crate::middle) fn are_left(&self) -> bool {
        self.left.get() != 0
    }

    fn left(&self) -> usize {
        usize::from(self.left.get())
    }

    /// Notes that blocks of `used` bytes, of the slab's `pages`, have touched what they fill.
    #[inline(never)]
    pub(in crate::middle) fn note_used(&self, used: usize, pages: usize) {
        self.end_at(pages.saturating_sub(used.div_ceil(PAGE)));
    }

    /// Notes that at most `most` untouched pages are left.
    pub(in crate::middle) fn end_at(&self, most: usize) {
        let left = self.left();
        if most < left {
            self.left.set(most as u8);
            untouched::sub(left - most, self.in_huge.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::mmap::Mmap;
    use crate::ground::size_class::SizeClass;
    use crate::middle::slabs::slab::Slab;
    use crate::middle::slabs::slab_record::lg_words;

    fn slab(class: SizeClass, run: &'static Extent) -> &'static Slab {
        let slab = Slab::new_record(lg_words(class), run.arena()).unwrap();
        slab.prepare(run, class);
        slab.fresh.begin(run);
        slab
    }

    #[test]
    fn pages_are_touched_by_the_blocks_that_fill_them_and_stay_so() {
        for class in SizeClass::all() {
            let mut pages = PageAllocator::for_test(&Mmap);
            let (whole, size) = (usize::from(class.row().slab_pages), class.size());
            let run = pages.allocate(whole, class.slab_align(), Memory::Any).unwrap();
            let slab = slab(class, run);
            assert_eq!(slab.fresh.left(), whole);
            slab.take_lowest(1, |_| ());
            assert_eq!(slab.fresh.left(), whole - size.div_ceil(PAGE));
            slab.put(0, 1, 1).unwrap();
            slab.take_lowest(1, |_| ());
            assert_eq!(slab.fresh.left(), whole - size.div_ceil(PAGE), "not twice");
            slab.take_lowest(class.slots(), |_| ());
            assert!(slab.is_full() && !slab.fresh.are_left(), "class of {size}");
        }
    }

    #[test]
    fn pages_that_were_used_before_are_not_fresh() {
        let class = SizeClass::of(64);
        let mut pages = PageAllocator::for_test(&Mmap);
        let whole = usize::from(class.row().slab_pages);
        let run = pages.allocate(whole, class.slab_align(), Memory::Any).unwrap();
        pages.free(run);
        let again = pages.allocate(whole, class.slab_align(), Memory::Any).unwrap();
        assert!(!slab(class, again).fresh.are_left());
    }

    #[test]
    fn a_slab_that_goes_takes_its_pages_along() {
        let class = SizeClass::of(64);
        let mut pages = PageAllocator::for_test(&Mmap);
        let whole = usize::from(class.row().slab_pages);
        let slab = slab(class, pages.allocate(whole, 1 << 16, Memory::Any).unwrap());
        slab.fresh.end_at(0);
        assert!(!slab.fresh.are_left());
        slab.fresh.end_at(3);
        assert!(!slab.fresh.are_left());
    }
}
