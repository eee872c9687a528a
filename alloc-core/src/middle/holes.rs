//! Holes: whole free pages inside sparse slabs, whose memory goes back to the system while other
//! blocks of the slab are in use.
//!
//! The decay pass looks at slabs four times in a decay time, the sparsest first. A page that was
//! free at every look for a whole decay time is given back, once: its mark stands until a block
//! that lies in it is handed out. Marks and purging are under the lock of the slab's guard, as free
//! bits are, and only so many system calls are made while it is held.

use super::arena::{self, Arena};
use super::slab::Slab;
use super::slab_list::SlabList;
use crate::back::chunk_notes;
use crate::back::contents;
use crate::ground::counters::SharedCount;
use crate::ground::units::{LG_PAGE, PAGE};
use core::cell::Cell;

/// Looks in one decay time.
pub(crate) const LOOKS: u64 = 4;
/// System calls while one lock is held, and in one look at one guard.
const CALLS: usize = 32;
const HOLDS: usize = 16;
/// Slabs of one list that are looked at, from its sparse end.
const LOOKED_AT: usize = 4096;
/// Slabs in huge pages are given holes from this part of their pages on.
const PART_OF_HUGE: u32 = 8;

/// Pages ever given back so.
pub(crate) static PURGED: SharedCount = SharedCount::new();

/// A bit for each page of a slab.
type Pages = u16;

/// What is known of a slab's pages. Guarded as the slab's free bits are.
pub(crate) struct Holes {
    /// Given back, and not used since.
    purged: Cell<Pages>,
    /// Free at every look since the one with that number.
    idle: Cell<Pages>,
    since: Cell<u16>,
}

impl Holes {
    /// All pages have memory, or never had.
    pub(crate) const fn new() -> Holes {
        Holes { purged: Cell::new(0), idle: Cell::new(0), since: Cell::new(0) }
    }

    /// Whether there are marks that a block handed out might contradict.
    #[inline(always)]
    pub(crate) fn is_marked(&self) -> bool {
        self.purged.get() | self.idle.get() != 0
    }

    /// Forgets all marks; answers how many pages were without memory.
    pub(crate) fn clear(&self) -> u64 {
        self.idle.set(0);
        u64::from(self.purged.take().count_ones())
    }

    /// Notes that the bytes from `from` up to `to` of the slab are used again; answers how many
    /// pages get memory by that.
    fn touch(&self, from: usize, to: usize) -> u64 {
        let touched = range(from >> LG_PAGE, (to - 1) >> LG_PAGE);
        let before = self.purged.get();
        self.purged.set(before & !touched);
        self.idle.set(self.idle.get() & !touched);
        u64::from((before & touched).count_ones())
    }
}

/// The bits of pages `first` to `last`.
fn range(first: usize, last: usize) -> Pages {
    Pages::MAX >> (15 - last.min(15)) & Pages::MAX << first.min(15)
}

/// Notes that the blocks of `mask` in word `word` are handed out.
#[cold]
#[inline(never)]
pub(crate) fn note_taken(slab: &Slab, word: usize, mask: u64) {
    let size = slab.class().size();
    let (mut bits, mut refilled) = (mask, 0);
    while bits != 0 {
        let offset = (word * 64 + bits.trailing_zeros() as usize) * size;
        refilled += slab.holes.touch(offset, offset + size);
        bits &= bits - 1;
    }
    if refilled > 0
        && let Some(arena) = arena::by_id(slab.arena())
    {
        arena.holes.sub(refilled);
    }
}

/// One look at the slabs of one guard or of many.
pub(crate) struct Look<'a> {
    /// Its number, and how many looks ago a page must have been free; 0: now.
    number: u16,
    age: u16,
    /// Which arenas' pages are given back.
    wanted: &'a dyn Fn(&Arena) -> bool,
    calls: usize,
    /// Pages wait for their time, or for the next look.
    pub(crate) waiting: bool,
}

impl<'a> Look<'a> {
    /// A look that gives back what has been free for [`LOOKS`] whole looks; or all at once.
    pub(crate) fn new(number: u64, at_once: bool, wanted: &'a dyn Fn(&Arena) -> bool) -> Look<'a> {
        let age = if at_once { 0 } else { LOOKS as u16 + 1 };
        Look { number: number as u16, age, wanted, calls: 0, waiting: false }
    }

    /// Calls `hold` with this look, a few times over if there is much to do. Each time it takes the
    /// lock of a guard anew.
    pub(crate) fn by_holds(&mut self, mut hold: impl FnMut(&mut Look<'a>)) {
        for _ in 0..if self.age == 0 { usize::MAX } else { HOLDS } {
            self.calls = CALLS;
            hold(self);
            if self.calls > 0 {
                return;
            }
        }
        self.waiting = true;
    }

    /// Looks at the slabs of a list. The caller holds the lock of their guard.
    pub(crate) fn at_list(&mut self, list: &SlabList) {
        for slab in list.sparsest_first().take(LOOKED_AT) {
            if self.calls == 0 {
                return;
            }
            self.at_slab(slab);
        }
    }

    fn at_slab(&mut self, slab: &'static Slab) {
        let holes = &slab.holes;
        let free = free_pages(slab) & !holes.purged.get();
        let ripe = if self.age == 0 { free } else { self.ripe(holes, free) };
        if ripe == 0 || (self.age != 0 && is_worth_less(slab, ripe)) {
            return;
        }
        holes.idle.set(holes.idle.get() & !ripe);
        let Some(arena) =
            arena::by_id(slab.arena()).filter(|arena| (self.wanted)(arena) && !arena.is_hooked())
        else {
            return;
        };
        self.purge(slab, arena, ripe);
    }

    /// The pages whose time has come, the free ones being known.
    fn ripe(&mut self, holes: &Holes, free: Pages) -> Pages {
        let still = holes.idle.get() & free;
        if still == 0 {
            holes.idle.set(free);
            holes.since.set(self.number);
        } else {
            holes.idle.set(still);
            if self.number.wrapping_sub(holes.since.get()) >= self.age {
                return still;
            }
        }
        self.waiting |= holes.idle.get() != 0;
        0
    }

    /// Gives pages back, those that follow each other by one call.
    fn purge(&mut self, slab: &'static Slab, arena: &Arena, pages: Pages) {
        let Some(extent) = slab.extent() else { return };
        let provider = arena.provider();
        let mut left = pages;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let count = (left >> first).trailing_ones() as usize;
            let run = range(first, first + count - 1);
            left &= !run;
            self.calls = self.calls.saturating_sub(1);
            if !contents::purge_part(provider, extent, first << LG_PAGE, count << LG_PAGE) {
                return;
            }
            slab.holes.purged.set(slab.holes.purged.get() | run);
            arena.holes.add(count as u64);
            PURGED.add(count as u64);
        }
    }
}

/// Whether holes are worth less than the huge page that they would cost.
fn is_worth_less(slab: &Slab, pages: Pages) -> bool {
    let few = pages.count_ones() * PART_OF_HUGE < u32::from(slab.class().row().slab_pages);
    few && slab.extent().is_some_and(chunk_notes::is_in_huge_pages)
}

/// The pages of a slab in which blocks lie, all of them free.
fn free_pages(slab: &Slab) -> Pages {
    let class = slab.class();
    let slots = class.slots();
    // Less than a page in free blocks: no page is free.
    if (slots - slab.used()) * class.size() < PAGE {
        return 0;
    }
    let mut free = 0;
    for page in 0..usize::from(class.row().slab_pages) {
        let first = class.slot_around(page << LG_PAGE);
        let end = (class.slot_around((page << LG_PAGE) + PAGE - 1) + 1).min(slots);
        if first < end && slab.are_free(first, end) {
            free |= 1 << page;
        }
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::size_class::SizeClass;
    use crate::middle::slab::tests::slab;

    #[test]
    fn a_slab_s_pages_fit_the_marks() {
        for class in SizeClass::all() {
            assert!(usize::from(class.row().slab_pages) <= Pages::BITS as usize);
        }
        assert_eq!((range(0, 0), range(0, 15), range(3, 4)), (1, Pages::MAX, 0b11000));
    }

    #[test]
    fn marks_go_where_blocks_are_handed_out() {
        let holes = Holes::new();
        assert!(!holes.is_marked());
        holes.purged.set(0b1110);
        holes.idle.set(0b1_0000);
        assert_eq!(holes.touch(PAGE - 64, PAGE), 0, "the page before");
        assert_eq!(holes.touch(2 * PAGE - 64, 2 * PAGE + 64), 2, "across two of them");
        assert_eq!((holes.purged.get(), holes.idle.get()), (0b1000, 0b1_0000));
        assert_eq!(holes.touch(4 * PAGE, 5 * PAGE), 0);
        assert_eq!(holes.clear(), 1);
        assert!(!holes.is_marked());
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

    #[test]
    fn pages_ripen_over_a_whole_decay_time_without_use() {
        let wanted = |_: &Arena| true;
        let mut look = Look::new(7, false, &wanted);
        let holes = Holes::new();
        assert_eq!(look.ripe(&holes, 0b110), 0);
        assert!(look.waiting);
        for number in 8..12 {
            look.number = number;
            assert_eq!(look.ripe(&holes, 0b111), 0, "{number}");
        }
        holes.touch(PAGE, PAGE + 64);
        look.number = 12;
        assert_eq!(look.ripe(&holes, 0b111), 0b100, "what was used meanwhile stays");
        holes.idle.set(0);
        look.waiting = false;
        assert_eq!(look.ripe(&holes, 0), 0);
        assert!(!look.waiting, "nothing is free");
    }
}
