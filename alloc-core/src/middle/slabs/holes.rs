//! Holes: whole free pages inside sparse slabs, whose memory is given back to the system while
//! other blocks of the slab are in use.
//!
//! A page that was free at every look for a whole decay time is given back, once. Its mark stands
//! until a block that lies in it is handed out. Marks and purging are under the lock of the slab's
//! guard, as free bits are. [`crate::middle::passes::hole_pass`] looks for holes.

use crate::back::aging::{held, soft_limit};
use crate::ground::counters::SharedCount;
use crate::ground::units::LG_PAGE;
use crate::middle::arena_counts::MAX_ARENAS;
use core::cell::Cell;

/// Pages ever given back as holes.
pub(crate) static PURGED: SharedCount = SharedCount::new();
/// Pages of slabs in use that have no memory, by arena.
static IN_ARENAS: [SharedCount; MAX_ARENAS] = [const { SharedCount::new() }; MAX_ARENAS];

/// A bit for each page of a slab.
pub(in crate::middle) type Pages = u16;

/// What is known of a slab's pages. Guarded by the same lock as the slab's free bits.
pub(crate) struct Holes {
    /// Pages given back, and not used since.
    purged: Cell<Pages>,
    /// Pages free at every look since the one with number `since`.
    idle: Cell<Pages>,
    since: Cell<u16>,
}

/// Pages of slabs in use that have no memory, of the arena with index `arena`.
pub(crate) fn in_arena(arena: u32) -> usize {
    IN_ARENAS.get(arena as usize).map_or(0, SharedCount::get) as usize
}

impl Holes {
    /// No page has a mark.
    pub(in crate::middle) const fn new() -> Holes {
        Holes { purged: Cell::new(0), idle: Cell::new(0), since: Cell::new(0) }
    }

    /// Whether there are marks that have to go when a block is handed out.
    #[inline(always)]
    pub(in crate::middle) fn is_marked(&self) -> bool {
        self.purged.get() | self.idle.get() != 0
    }

    /// Whether any page is free and may be given back later.
    pub(in crate::middle) fn is_any_idle(&self) -> bool {
        self.idle.get() != 0
    }

    /// Forgets all marks. `arena` is the arena of the slab.
    pub(in crate::middle) fn clear(&self, arena: u32) {
        self.idle.set(0);
        let purged = self.purged.take().count_ones();
        self.note_refilled(purged, arena);
    }

    /// Forgets that `pages` were free.
    pub(in crate::middle) fn forget_idle(&self, pages: Pages) {
        self.idle.set(self.idle.get() & !pages);
    }

    /// Those of `pages` that have memory, as far as is known.
    pub(in crate::middle) fn with_memory(&self, pages: Pages) -> Pages {
        pages & !self.purged.get()
    }

    /// How many pages have no memory, as far as is known.
    pub(in crate::middle) fn without_memory(&self) -> usize {
        self.purged.get().count_ones() as usize
    }

    /// Those of the `free` pages that were free at each of the last `age` looks. `number` is the
    /// number of this look. 0: there are none.
    pub(in crate::middle) fn ripe(&self, free: Pages, number: u16, age: u16) -> Pages {
        let still = self.idle.get() & free;
        if still == 0 {
            self.begin_idle(free, number);
            return 0;
        }
        self.idle.set(still);
        if number.wrapping_sub(self.since.get()) >= age { still } else { 0 }
    }

    /// Notes that the `free` pages are free from the look with this number on, and no others.
    pub(in crate::middle) fn begin_idle(&self, free: Pages, number: u16) {
        self.idle.set(free);
        self.since.set(number);
    }

    /// Notes that `pages` of a slab of `arena` were given back.
    pub(in crate::middle) fn note_purged(&self, pages: Pages, arena: u32) {
        self.purged.set(self.purged.get() | pages);
        let count = u64::from(pages.count_ones());
        PURGED.add(count);
        if let Some(all) = IN_ARENAS.get(arena as usize) {
            all.add(count);
            held::note_holes(pages.count_ones());
        }
    }

    /// Notes that the blocks of `mask` in word `word` are handed out. The slab is of `arena`, with
    /// blocks of `size` bytes.
    #[cold]
    #[inline(never)]
    pub(in crate::middle) fn note_taken(&self, arena: u32, size: usize, word: usize, mask: u64) {
        let (mut bits, mut refilled) = (mask, 0);
        while bits != 0 {
            let offset = (word * 64 + bits.trailing_zeros() as usize) * size;
            refilled += self.touch(offset, offset + size);
            bits &= bits - 1;
        }
        self.note_refilled(refilled, arena);
    }

    /// Notes that the bytes from `from` up to `to` of the slab are used again. Returns how many
    /// pages get memory by this use.
    fn touch(&self, from: usize, to: usize) -> u32 {
        let touched = range(from >> LG_PAGE, (to - 1) >> LG_PAGE);
        let before = self.purged.get();
        self.purged.set(before & !touched);
        self.forget_idle(touched);
        (before & touched).count_ones()
    }

    fn note_refilled(&self, pages: u32, arena: u32) {
        if pages > 0
            && let Some(all) = IN_ARENAS.get(arena as usize)
        {
            all.sub(u64::from(pages));
            soft_limit::note_filled_holes(pages);
        }
    }
}

/// The bits of pages `first` to `last`.
pub(in crate::middle) fn range(first: usize, last: usize) -> Pages {
    Pages::MAX >> (15 - last.min(15)) & Pages::MAX << first.min(15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::size_class::SizeClass;
    use crate::ground::units::PAGE;
    use crate::middle::slabs::slab::tests::slab;

    #[test]
    fn a_slab_s_pages_fit_the_marks() {
        for class in SizeClass::all() {
            assert!(usize::from(class.row().slab_pages) <= Pages::BITS as usize);
        }
        assert_eq!((range(0, 0), range(0, 15), range(3, 4)), (1, Pages::MAX, 0b11000));
    }

    #[test]
    fn marks_go_where_blocks_are_handed_out() {
        // An index that no arena of the tests has.
        const ARENA: u32 = MAX_ARENAS as u32 - 1;
        let holes = Holes::new();
        assert!(!holes.is_marked() && !holes.is_any_idle());
        holes.note_purged(0b1110, ARENA);
        holes.idle.set(0b1_0000);
        assert!(holes.is_marked() && holes.is_any_idle());
        assert_eq!((in_arena(ARENA), holes.with_memory(0b11)), (3, 1));
        assert_eq!(holes.touch(PAGE - 64, PAGE), 0, "the page before");
        // Across two pages.
        holes.note_taken(ARENA, 128, 0, 1 << 63);
        assert_eq!((holes.purged.get(), in_arena(ARENA)), (0b1100, 2));
        holes.note_taken(ARENA, 3 * PAGE / 2, 0, 0b10);
        assert_eq!((holes.purged.get(), holes.idle.get()), (0b1000, 0b1_0000));
        assert_eq!(holes.touch(4 * PAGE, 5 * PAGE), 0);
        assert_eq!(in_arena(ARENA), 1);
        holes.clear(ARENA);
        assert!(!holes.is_marked() && in_arena(ARENA) == 0);
        assert_eq!(in_arena(MAX_ARENAS as u32), 0);
    }

    #[test]
    fn a_block_that_is_taken_clears_the_marks_of_its_pages_alone() {
        // Eight blocks a page, and eight pages a word of bits.
        let slab = slab(SizeClass::of(512));
        slab.holes.idle.set(Pages::MAX);
        slab.take_lowest(3, |_| ());
        assert_eq!(slab.holes.idle.get(), Pages::MAX - 1);
        slab.holes.idle.set(Pages::MAX);
        slab.take_lowest(8, |_| ());
        assert_eq!(slab.holes.idle.get(), Pages::MAX - 0b11);
        slab.holes.idle.set(Pages::MAX);
        slab.take_lines(8, |_| ());
        assert_eq!(slab.holes.idle.get(), Pages::MAX - 0b110);
    }
}
