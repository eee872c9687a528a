//! The search for holes: the decay pass looks at slabs four times in a decay time, the sparsest
//! first, and gives back the pages that were free at every look for a whole decay time.
//!
//! The locks of guards are held for a limited number of system calls at a time.

use crate::back::runs::chunk_notes;
use crate::back::runs::contents;
use crate::ground::size_class::SizeClass;
use crate::ground::units::{LG_PAGE, PAGE};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::owners::owner::Owner;
use crate::middle::slabs::holes::{Holes, Pages, range};
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_list::SlabList;
use core::cell::Cell;

/// Looks in one decay time.
pub(crate) const LOOKS: u64 = 4;
/// System calls while one lock is held, and how often one look takes a guard's lock.
const CALLS: usize = 32;
const HOLDS: usize = 16;
/// Slabs of one list that are looked at, from its sparse end.
const LOOKED_AT: usize = 4096;
/// A slab in huge pages gives holes back only if they are at least this part of its pages.
const PART_OF_HUGE: u32 = 8;

/// One look at the slabs of one guard or of many.
pub(crate) struct Look<'a> {
    /// The number of this look, and how many looks ago a page must have been free; 0: now.
    number: u16,
    age: u16,
    /// The arenas whose pages are given back.
    wanted: &'a dyn Fn(&Arena) -> bool,
    calls: usize,
    /// Whether pages wait for their time, or for the next look.
    pub(crate) waiting: bool,
}

impl<'a> Look<'a> {
    /// A look for pages that were free for [`LOOKS`] whole looks; with `at_once`, for all free
    /// ones.
    pub(crate) fn new(number: u64, at_once: bool, wanted: &'a dyn Fn(&Arena) -> bool) -> Look<'a> {
        let age = if at_once { 0 } else { LOOKS as u16 + 1 };
        Look { number: number as u16, age, wanted, calls: 0, waiting: false }
    }

    /// Calls `hold` with this look, several times if there is much to do. Each time `hold` takes
    /// the lock of a guard anew.
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
        let free = slab.holes.with_memory(free_pages(slab));
        let ripe = if self.age == 0 { free } else { self.ripe(&slab.holes, free) };
        if ripe == 0 || (self.age != 0 && is_worth_less(slab, ripe)) {
            return;
        }
        slab.holes.forget_idle(ripe);
        let arena = arena_list::by_id(slab.arena());
        if let Some(arena) = arena.filter(|arena| (self.wanted)(arena) && !arena.is_hooked()) {
            self.purge(slab, arena, ripe);
        }
    }

    /// Those of the `free` pages that were free long enough.
    fn ripe(&mut self, holes: &Holes, free: Pages) -> Pages {
        let ripe = holes.ripe(free, self.number, self.age);
        self.waiting |= ripe == 0 && holes.is_any_idle();
        ripe
    }

    /// Gives pages back, with one call for pages that follow each other.
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
            slab.holes.note_purged(run, slab.arena());
        }
    }
}

/// Whether holes are worth less than the huge page that they would break.
fn is_worth_less(slab: &Slab, pages: Pages) -> bool {
    let few = pages.count_ones() * PART_OF_HUGE < u32::from(slab.class().row().slab_pages);
    few && slab.extent().is_some_and(chunk_notes::is_in_huge_pages)
}

/// How many pages of a slab a purge of its arena would give back, with all blocks where they are.
/// The caller holds the lock of the slab's guard.
pub(crate) fn purgeable_pages(slab: &Slab) -> usize {
    let may_purge = |arena: &Arena| !arena.is_hooked();
    match arena_list::by_id(slab.arena()).is_some_and(may_purge) {
        true => slab.holes.with_memory(free_pages(slab)).count_ones() as usize,
        false => 0,
    }
}

/// The pages of a slab that hold blocks, all of them free.
fn free_pages(slab: &Slab) -> Pages {
    let class = slab.class();
    let slots = class.slots();
    // The free blocks are less than a page, so no page is free.
    if (slots - slab.used()) * class.size() < PAGE {
        return 0;
    }
    let mut free = 0;
    for page in 0..usize::from(class.row().slab_pages) {
        let first = class.slot_around(page << LG_PAGE);
        let end = (class.slot_around((page << LG_PAGE) + PAGE - 1) + 1).min(slots);
        if first < end && are_free(slab, first, end) {
            free |= 1 << page;
        }
    }
    free
}

/// Whether all blocks of a slab from slot `first` up to `end` are free.
fn are_free(slab: &Slab, first: usize, end: usize) -> bool {
    let mut slot = first;
    while slot < end {
        let n = (end - slot).min(64 - slot % 64);
        let mask = (!0 >> (64 - n)) << (slot % 64);
        let word = slab.free_words().get(slot / 64).map_or(0, Cell::get);
        if word & mask != mask {
            return false;
        }
        slot += n;
    }
    true
}

/// Looks for holes in the slabs that the bins of an arena guard.
pub(crate) fn look_in_bins(arena: &'static Arena, look: &mut Look<'_>) {
    for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
        look.by_holds(|look| look.at_list(&arena.bin(class).slabs.lock().partial));
    }
}

/// Looks for holes in the slabs of an owner.
pub(crate) fn look_in_owner(owner: &'static Owner, look: &mut Look<'_>) {
    look.by_holds(|look| {
        let state = owner.state.lock();
        state.bins.iter().for_each(|slabs| look.at_list(&slabs.partial));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middle::slabs::slab::tests::slab;

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
        holes.note_taken(0, PAGE, 0, 0b10);
        look.number = 12;
        assert_eq!(look.ripe(&holes, 0b111), 0b100, "what was used meanwhile stays");
        holes.forget_idle(Pages::MAX);
        look.waiting = false;
        assert_eq!(look.ripe(&holes, 0), 0);
        assert!(!look.waiting, "nothing is free");
    }

    #[test]
    fn blocks_are_free_from_one_slot_to_another() {
        let slab = slab(SizeClass::of(64));
        let slots = slab.class().slots();
        assert!(are_free(slab, 0, slots) && are_free(slab, 3, 3));
        slab.take_lowest(70, |_| ());
        assert!(are_free(slab, 70, slots) && !are_free(slab, 69, slots));
        assert!(!are_free(slab, 0, 1) && !are_free(slab, 60, 70));
        slab.put(1, 1, 1).unwrap();
        assert!(are_free(slab, 64, 65) && !are_free(slab, 64, 66));
        assert_eq!(free_pages(slab) & 0b111, 0b100);
    }
}
