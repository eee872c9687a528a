//! The search for holes: the decay pass looks at slabs four times in a decay time, the sparsest
//! first, and gives back the pages that were free at every look for a whole decay time.
//!
//! The locks of guards are held for a limited number of slabs and system calls at a time. The next
//! hold goes on behind the slabs that were looked at.

use crate::back::runs::chunk_notes;
use crate::back::runs::contents;
use crate::back::system::page_provider::{PageProvider, Purged};
use crate::ground::size_class::SizeClass;
use crate::ground::sync::aside::{FEW, SOON};
use crate::ground::sync::lock::{self, RankedMutex};
use crate::ground::sync::wait;
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
const HOLDS: usize = 64;
/// System calls while one lock is held, if all free pages are to go now.
const CALLS_AT_ONCE: usize = 256;
/// If all free pages are to go now, calls and slabs are at least this part of those passed over.
const PART_OF_SEEN: usize = 16;
/// Slabs that are looked at while one lock is held.
const LOOKED_AT: usize = 4096;
/// A look ends when the system has refused so many calls, as it does for locked memory.
const MOST_REFUSED: usize = 32;
/// A slab in huge pages gives holes back only if they are at least this part of its pages.
const PART_OF_HUGE: u32 = 8;

/// One look at the slabs of one guard or of many.
pub(crate) struct Look<'a> {
    /// The number of this look, and how many looks ago a page must have been free; 0: now.
    number: u16,
    age: u16,
    /// The arenas whose pages are given back.
    wanted: &'a dyn Fn(&Arena) -> bool,
    /// What may be done until the lock is given up: calls, and slabs to look at.
    calls: usize,
    left: usize,
    /// Slabs of the guard that were looked at, and of these, those still to be passed over.
    seen: usize,
    passed_over: usize,
    /// Pages that were given back.
    given: usize,
    /// Calls that the system refused.
    refused: usize,
    /// Whether pages wait for their time, or for the next look.
    waiting: bool,
    /// Locks that were held, and how many of them may be waited for.
    held: usize,
    waits: usize,
}

impl<'a> Look<'a> {
    /// A look for pages that were free at this look, and at each one for a whole decay time before
    /// it; with `at_once`, for all free ones.
    pub(crate) fn new(number: u64, at_once: bool, wanted: &'a dyn Fn(&Arena) -> bool) -> Look<'a> {
        let age = if at_once { 0 } else { LOOKS as u16 };
        let number = number as u16;
        let [calls, left, seen, passed_over, given, refused, held, waits] = [0; 8];
        let waiting = false;
        Look {
            number,
            age,
            wanted,
            calls,
            left,
            seen,
            passed_over,
            given,
            refused,
            waiting,
            held,
            waits,
        }
    }

    /// Lets this look wait a little for a few locks, if `held` locks at the look before were few.
    pub(crate) fn wait_where_few_were_held(&mut self, held: usize) {
        self.waits = if held <= FEW { FEW } else { 0 };
    }

    /// Returns how many locks were held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Whether another look has something to do.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting && !self.is_refused()
    }

    /// Returns how many pages were given back.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    fn is_refused(&self) -> bool {
        self.refused >= MOST_REFUSED
    }

    /// Calls `hold` with this look, several times if there is much to do. Each time `hold` takes
    /// the lock of a guard anew.
    pub(crate) fn by_holds(&mut self, mut hold: impl FnMut(&mut Look<'a>)) {
        let holds = if self.age == 0 { usize::MAX } else { HOLDS };
        self.seen = 0;
        for _ in 0..holds {
            // Passing over takes time too, so as much is done behind many slabs as they took.
            let part = self.seen / PART_OF_SEEN;
            let (calls, left) = match self.age {
                0 => (CALLS_AT_ONCE.max(part), LOOKED_AT.max(part)),
                _ => (CALLS, LOOKED_AT),
            };
            (self.calls, self.left, self.passed_over) = (calls, left, self.seen);
            hold(self);
            if !self.is_stopped() || self.is_refused() {
                return;
            }
        }
        self.waiting = true;
    }

    /// Takes the lock of a guard. `None`: it is held, perhaps by a thread that does not run. Looks
    /// that are repeated wait for few locks or for none, and the next one looks at the guard.
    fn lock<'l, T>(&mut self, lock: &'l RankedMutex<T>) -> Option<lock::Guard<'l, T>> {
        if self.age == 0 {
            return Some(lock.lock());
        }
        let taken = wait::for_a_moment(|| lock.try_lock_again());
        if taken.is_some() {
            return taken;
        }
        self.held += 1;
        if self.held <= self.waits {
            let taken = lock.lock_within(SOON);
            self.waiting |= taken.is_none();
            return taken;
        }
        self.waiting = true;
        None
    }

    /// Whether nothing more is done before the lock was given up.
    fn is_stopped(&self) -> bool {
        self.calls == 0 || self.left == 0 || self.is_refused()
    }

    /// Looks at the slabs of a list. The caller holds the lock of their guard.
    pub(crate) fn at_list(&mut self, list: &SlabList) {
        let passed_over = self.passed_over.min(list.length());
        self.passed_over -= passed_over;
        for slab in list.sparsest_first().skip(passed_over) {
            if self.is_stopped() {
                return;
            }
            self.at_slab(slab);
            self.left -= 1;
            self.seen += 1;
        }
    }

    fn at_slab(&mut self, slab: &'static Slab) {
        let free = slab.holes.with_memory(free_pages(slab));
        let ripe = if self.age == 0 { free } else { self.ripe(&slab.holes, free) };
        if ripe == 0 {
            return;
        }
        if self.age != 0 && is_worth_less(slab, ripe) {
            return self.wait_for_more(&slab.holes, free, ripe);
        }
        slab.holes.forget_idle(ripe);
        let arena = arena_list::by_id(slab.arena());
        let arena = arena.filter(|arena| (self.wanted)(arena));
        // Hooks are not called under the lock of a guard.
        if let Some(provider) = arena.and_then(Arena::provider_unless_hooked) {
            self.purge(slab, provider, ripe);
        }
    }

    /// Those of the `free` pages that were free long enough.
    fn ripe(&mut self, holes: &Holes, free: Pages) -> Pages {
        let ripe = holes.ripe(free, self.number, self.age);
        self.waiting |= ripe == 0 && holes.is_any_idle();
        ripe
    }

    /// Waits for the pages that became free later than the `ripe` ones, which are not worth it
    /// alone.
    fn wait_for_more(&mut self, holes: &Holes, free: Pages, ripe: Pages) {
        if free != ripe {
            holes.begin_idle(free, self.number);
            self.waiting = true;
        }
    }

    /// Gives pages back, with one call for pages that follow each other.
    fn purge(&mut self, slab: &'static Slab, provider: &dyn PageProvider, pages: Pages) {
        let Some(extent) = slab.extent() else { return };
        let mut left = pages;
        while left != 0 {
            let first = left.trailing_zeros() as usize;
            let count = (left >> first).trailing_ones() as usize;
            let run = range(first, first + count - 1);
            left &= !run;
            self.calls = self.calls.saturating_sub(1);
            match contents::purge_part(provider, extent, first << LG_PAGE, count << LG_PAGE) {
                Purged::Zeroed => {
                    slab.holes.note_purged(run, slab.arena());
                    self.given += count;
                }
                // No whole pages of the system, or the system does not tell what is gone.
                Purged::Undefined => {}
                Purged::Refused => {
                    self.refused += 1;
                    return;
                }
            }
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

/// Looks for holes in the slabs that the bins of an arena guard, those of samples too.
pub(crate) fn look_in_bins(arena: &'static Arena, look: &mut Look<'_>) {
    for class in SizeClass::all().filter(|class| !arena.bin(*class).is_untouched()) {
        look.by_holds(|look| {
            let Some(slabs) = look.lock(&arena.bin(class).slabs) else { return };
            look.at_list(&slabs.partial);
            look.at_list(&slabs.samples);
        });
    }
}

/// Looks for holes in the slabs of an owner.
pub(crate) fn look_in_owner(owner: &'static Owner, look: &mut Look<'_>) {
    look.by_holds(|look| {
        let Some(state) = look.lock(&owner.state) else { return };
        state.bins.iter().for_each(|slabs| look.at_list(&slabs.partial));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::sync::lock_rank::LockRank;
    use crate::middle::slabs::slab::tests::slab;
    use crate::middle::slabs::slab_links::ListName;

    #[test]
    fn a_look_that_comes_again_leaves_out_a_guard_that_is_locked() {
        let (wanted, mutex) = (|_: &Arena| true, RankedMutex::new(LockRank::Cache, ()));
        let mut look = Look::new(7, false, &wanted);
        assert!(look.lock(&mutex).is_some() && !look.waiting);
        let held = mutex.lock();
        assert!(look.lock(&mutex).is_none() && look.waiting);
        drop(held);
        assert!(look.lock(&mutex).is_some());
    }

    #[test]
    fn pages_ripen_over_a_whole_decay_time_without_use() {
        let wanted = |_: &Arena| true;
        let mut look = Look::new(7, false, &wanted);
        let holes = Holes::new();
        assert_eq!(look.ripe(&holes, 0b110), 0);
        assert!(look.waiting);
        for number in 8..11 {
            look.number = number;
            assert_eq!(look.ripe(&holes, 0b111), 0, "{number}");
        }
        holes.note_taken(0, PAGE, 0, 0b10);
        look.number = 11;
        assert_eq!(look.ripe(&holes, 0b111), 0b100, "what was used meanwhile stays");
        holes.forget_idle(Pages::MAX);
        look.waiting = false;
        assert_eq!(look.ripe(&holes, 0), 0);
        assert!(!look.waiting, "nothing is free");
    }

    #[test]
    fn pages_that_are_not_worth_it_ripen_again_with_those_that_became_free_later() {
        let wanted = |_: &Arena| true;
        let mut look = Look::new(7, false, &wanted);
        let holes = Holes::new();
        look.ripe(&holes, 0b100);
        look.number = 11;
        assert_eq!(look.ripe(&holes, 0b111), 0b100);
        look.waiting = false;
        look.wait_for_more(&holes, 0b100, 0b100);
        assert!(!look.waiting, "there are no others");
        look.wait_for_more(&holes, 0b111, 0b100);
        assert!(look.waiting);
        for number in 12..15 {
            look.number = number;
            assert_eq!(look.ripe(&holes, 0b111), 0, "{number}");
        }
        look.number = 15;
        assert_eq!(look.ripe(&holes, 0b111), 0b111);
    }

    #[test]
    fn a_look_goes_on_behind_the_slabs_that_it_has_seen() {
        let slabs: Vec<&'static Slab> = (0..10).map(|_| slab(SizeClass::of(64))).collect();
        let (mut list, wanted) = (SlabList::new(), |_: &Arena| true);
        slabs.iter().for_each(|slab| list.push_front(slab, ListName::Partial));
        let mut look = Look::new(7, false, &wanted);
        let mut holds = Vec::new();
        look.by_holds(|look| {
            // As if so few slabs could be looked at under one lock.
            look.left = 4;
            let before = look.seen;
            look.at_list(&list);
            holds.push(look.seen - before);
        });
        assert_eq!(holds, [4, 4, 2]);
        assert!(slabs.iter().all(|slab| slab.holes.is_any_idle()), "each is seen");
        assert!(look.is_waiting());
        look.refused = MOST_REFUSED;
        holds.clear();
        look.by_holds(|look| holds.push(look.seen));
        assert_eq!(holds, [0], "the system refuses");
        assert!(!look.is_waiting());
        list.remove_if(|_| true);
    }

    #[test]
    fn a_purge_of_many_slabs_passes_over_few_of_them_again() {
        const SLABS: usize = 1 << 20;
        let wanted = |_: &Arena| true;
        let mut look = Look::new(0, true, &wanted);
        let mut passed_over = 0;
        look.by_holds(|look| {
            passed_over += look.passed_over;
            // As if each slab had a hole.
            let seen = look.calls.min(look.left).min(SLABS - look.seen);
            look.seen += seen;
            look.calls -= seen;
        });
        assert_eq!(look.seen, SLABS);
        assert!(passed_over < 32 * SLABS, "{passed_over}");
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
