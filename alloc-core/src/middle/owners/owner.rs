//! What a thread cache owns: slabs, under its lock. The owner of a slab is a *cache*, not a thread.
//!
//! Every slow path of a cache (refill, flush, collection, exit) holds its owner's lock:
//! uncontended, once per batch. Push and pop never take it. Any other holder of the lock (the decay
//! pass, a walker, fork) may drain, release or give up the slabs, so an idle owner never pins what
//! others have freed.

use super::ledger::{Counts, Ledger};
use super::overflow::Overflow;
use super::run_cache::{self, RunCache};
use crate::back::map::extent::Extent;
use crate::back::metadata;
use crate::ground::checked::{at, at_mut};
use crate::ground::counters::OwnedCount;
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::home_arena::HomeArena;
use crate::middle::events::{Event, EventCounts};
use crate::middle::handed_out::Untold;
use crate::middle::slabs::remote_free::{MAX_OWNER, PendingStack};
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_links::ListName;
use crate::middle::slabs::slab_list::SlabList;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The slow side of a thread cache.
pub(crate) struct Owner {
    id: AtomicU32,
    pending: [PendingStack; CLASSES],
    /// The blocks that the cache took and gave back, by arena. Written under the lock.
    pub(crate) ledger: Ledger,
    /// Blocks in the cache's overflow stacks now, by class.
    overflowed: [AtomicU32; CLASSES],
    /// Where new slabs and large blocks come from.
    pub(crate) home: HomeArena,
    /// What the slow paths did. Written under the lock.
    pub(crate) events: EventCounts,
    /// Slow paths so far. Written under the lock.
    pub(crate) activity: OwnedCount,
    /// The slabs, and what else the lock guards.
    pub(crate) state: RankedMutex<OwnerState>,
}

/// Bytes of slabs of one class that are kept while all their blocks are free. Making a slab and
/// taking it back costs as much as a few dozen blocks.
const SPARE_BYTES: usize = 128 << 10;

/// What the cache's lock guards.
pub(crate) struct OwnerState {
    pub(in crate::middle) bins: [OwnedSlabs; CLASSES],
    /// Large blocks that wait for their next use.
    pub(crate) runs: RunCache,
    /// Blocks beyond what the bins hold.
    pub(crate) overflow: Overflow,
    /// What the slabs gave to the cache, less what the cache gave back.
    pub(crate) untold: Untold,
    pub(in crate::middle) seen_activity: u64,
    /// When a pass first found the owner idle.
    pub(in crate::middle) idle_since: u64,
    /// All slabs were given up, and no slow path was taken since.
    pub(in crate::middle) at_rest: bool,
}

/// The slabs of one class.
pub(in crate::middle) struct OwnedSlabs {
    pub(in crate::middle) partial: SlabList,
    pub(in crate::middle) full: SlabList,
}

const BLOCK: usize = 4096;
struct Block([AtomicPtr<Owner>; BLOCK]);

static OWNERS: [AtomicPtr<Block>; (MAX_OWNER as usize + 1) / BLOCK] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; (MAX_OWNER as usize + 1) / BLOCK];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Where [`in_turn`] goes on.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The owner with number `id`.
#[inline]
pub(crate) fn by_id(id: u32) -> Option<&'static Owner> {
    let slot = OWNERS.get(id as usize / BLOCK)?;
    // Acquire: pairs with the Release in `register`.
    // SAFETY: blocks live for ever.
    let block = unsafe { slot.load(Ordering::Acquire).as_ref() }?;
    // SAFETY: the remainder is below BLOCK.
    let slot = unsafe { at(&block.0, id as usize % BLOCK) };
    // Acquire: pairs with the Release in `register`.
    // SAFETY: owners live for ever.
    unsafe { slot.load(Ordering::Acquire).as_ref() }
}

/// All owners, those of dead caches too.
pub(crate) fn all() -> impl Iterator<Item = &'static Owner> {
    // Acquire: pairs with the Release in `register`.
    (0..COUNT.load(Ordering::Acquire)).filter_map(by_id)
}

/// The next `most` owners, or all if there are fewer. A call goes on where the one before ended.
pub(crate) fn in_turn(most: u32) -> impl Iterator<Item = &'static Owner> {
    // Acquire: pairs with the Release in `register`.
    let count = COUNT.load(Ordering::Acquire);
    let next = move |_| NEXT.fetch_add(1, Ordering::Relaxed).checked_rem(count);
    (0..most.min(count)).filter_map(next).filter_map(by_id)
}

/// The next owner's number, with a place for it. `None`: no memory. Under the registry's lock.
pub(crate) fn next_id() -> Option<u32> {
    let id = COUNT.load(Ordering::Relaxed);
    let slot = OWNERS.get(id as usize / BLOCK)?;
    if slot.load(Ordering::Relaxed).is_null() {
        // SAFETY: null pointers are a valid block.
        let block = unsafe { metadata::allocate_zeroed::<Block>() }?;
        // Release: pairs with the Acquire in `by_id`.
        slot.store(core::ptr::from_ref(block).cast_mut(), Ordering::Release);
    }
    Some(id)
}

/// Makes an owner known under its number, which is [`next_id`]. Called under the registry's lock.
pub(crate) fn register(owner: &'static Owner) {
    let id = owner.id();
    let Some(slot) = OWNERS.get(id as usize / BLOCK) else { return };
    // SAFETY: stored by `next_id`; blocks live for ever.
    let Some(block) = (unsafe { slot.load(Ordering::Relaxed).as_ref() }) else { return };
    // SAFETY: the remainder is below BLOCK.
    let slot = unsafe { at(&block.0, id as usize % BLOCK) };
    // Release: pairs with the Acquire in `by_id`.
    slot.store(core::ptr::from_ref(owner).cast_mut(), Ordering::Release);
    // Release: pairs with the Acquire in `all`.
    COUNT.store(id + 1, Ordering::Release);
}

impl Owner {
    /// An owner without slabs, number and home: see [`Owner::begin`].
    pub(crate) const fn new() -> Owner {
        Owner {
            id: AtomicU32::new(0),
            pending: [const { PendingStack::new() }; CLASSES],
            ledger: Ledger::new(),
            overflowed: [const { AtomicU32::new(0) }; CLASSES],
            home: HomeArena::none(),
            events: EventCounts::new(),
            activity: OwnedCount::new(),
            state: RankedMutex::new(
                LockRank::Cache,
                OwnerState {
                    bins: [const { OwnedSlabs { partial: SlabList::new(), full: SlabList::new() } };
                        CLASSES],
                    runs: RunCache::new(),
                    overflow: Overflow::new(),
                    untold: Untold::of_owner(),
                    seen_activity: 0,
                    idle_since: 0,
                    at_rest: true,
                },
            ),
        }
    }

    /// Gives the owner its number and its first home. Called before another thread knows the owner.
    pub(crate) fn begin(&self, id: u32, home: &'static Arena) {
        self.id.store(id, Ordering::Relaxed);
        self.home.set(home);
    }

    /// The owner's number.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Ordering::Relaxed)
    }

    /// The stack on which other threads leave slabs of a class.
    #[inline(always)]
    pub(crate) fn pending(&self, class: SizeClass) -> &PendingStack {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at(&self.pending, class.index()) }
    }

    /// Blocks of a class in the cache's overflow stack now.
    pub(crate) fn in_overflow(&self, class: SizeClass) -> usize {
        self.overflowed
            .get(class.index())
            .map_or(0, |overflowed| overflowed.load(Ordering::Relaxed) as usize)
    }

    /// Notes how many blocks of a class are in the overflow stack. Called under the lock.
    pub(in crate::middle) fn set_overflowed(&self, class: SizeClass, count: u32) {
        if let Some(overflowed) = self.overflowed.get(class.index()) {
            overflowed.store(count, Ordering::Relaxed);
        }
    }

    /// Blocks of a class that the cache took and gave back. Called under the lock.
    pub(crate) fn counts(&self, class: SizeClass) -> Counts {
        self.ledger.counts(class.index())
    }

    /// Takes a run for a large block from the runs that the cache keeps.
    pub(crate) fn take_run(&self, pages: usize, align: usize) -> Option<&'static Extent> {
        let mut state = self.state.lock();
        self.activity.add(1);
        let run = state.runs.take(pages, align);
        if let Some(run) = run {
            self.events.add(Event::RunReused, 1);
            let slot = CLASSES + run_cache::length_class(pages);
            self.ledger.of(slot, run.arena()).filled.add(1);
        }
        run
    }

    /// Keeps a run that the cache's thread frees: see [`RunCache::keep`].
    pub(crate) fn keep_run(&self, run: &'static Extent, most: usize) -> Result<bool, ()> {
        let mut state = self.state.lock();
        self.activity.add(1);
        let kept = state.runs.keep(run, most);
        self.events.add(Event::RunKept, u64::from(kept == Ok(true)));
        kept
    }
}

impl OwnerState {
    /// Checks what owner `id` has, under its lock.
    #[cfg(feature = "checks")]
    pub(in crate::middle) fn check(&self, id: u32) {
        for (class, slabs) in SizeClass::all().zip(&self.bins) {
            let holds_in = |slab: &Slab, list| {
                holds(slab.remote.is_owned_by(id) && slab.class() == class);
                holds(slab.list() == list && slab.is_full() == (list == ListName::Full));
            };
            slabs.partial.check(|slab| holds_in(slab, ListName::Partial));
            slabs.full.check(|slab| holds_in(slab, ListName::Full));
        }
        self.runs.check();
        self.overflow.check();
    }

    /// How many slabs of a class have free blocks.
    pub(crate) fn partial_slabs(&self, class: SizeClass) -> usize {
        self.bins.get(class.index()).map_or(0, |slabs| slabs.partial.length())
    }

    pub(in crate::middle) fn slabs(&mut self, class: SizeClass) -> &mut OwnedSlabs {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at_mut(&mut self.bins, class.index()) }
    }

    /// Files a slab of this owner where it belongs after `freed` blocks came back. A slab whose
    /// blocks are all free goes back to its arena, except for a few spare ones. Returns whether it
    /// did.
    #[inline]
    pub(crate) fn refile(&mut self, slab: &'static Slab, freed: usize) -> bool {
        !slab.stays_in_place(freed) && self.refile_moved(slab, freed)
    }

    fn refile_moved(&mut self, slab: &'static Slab, freed: usize) -> bool {
        let slabs = self.slabs(slab.class());
        if slab.list() == ListName::Full && !slab.is_full() {
            slabs.full.remove(slab);
            slabs.partial.push_front(slab, ListName::Partial);
        }
        if slab.used() == 0 && !slabs.partial.keep_spare(slab, SPARE_BYTES) {
            slabs.release(slab)
        } else {
            slabs.partial.settle(slab, freed);
            false
        }
    }
}

impl OwnedSlabs {
    pub(in crate::middle) fn release(&mut self, slab: &'static Slab) -> bool {
        let Some(arena) = arena_list::by_id(slab.arena()) else { return false };
        if !slab.remote.release() {
            return false;
        }
        self.partial.remove(slab);
        arena.take_back(slab);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::map::page_map;
    use crate::back::page_allocator::Memory;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::ground::units::PAGE;
    use crate::middle::blocks::{give_back::give_back, owned_slabs};

    #[test]
    fn an_owner_is_found_by_its_number_and_not_without() {
        let cache = new_cache();
        let is_it = |owner: &Owner| core::ptr::eq(owner, &raw const cache.owner);
        assert!(by_id(cache.owner.id()).is_some_and(is_it));
        assert_eq!(all().filter(|owner| is_it(owner)).count(), 1);
        assert!(by_id(MAX_OWNER).is_none() && by_id(u32::MAX).is_none());
        end(cache);
    }

    #[test]
    fn a_kept_run_is_the_next_of_its_length() {
        const PAGES: usize = 32;
        let cache = new_cache();
        let owner = &cache.owner;
        let pages = &owner.home.get().pages;
        // A cache that has asked for several such runs keeps one.
        for _ in 0..4 {
            assert!(owner.take_run(PAGES, PAGE).is_none());
        }
        let run = pages.lock().allocate_large(PAGES, PAGE, Memory::Any).expect("memory");
        assert_eq!(owner.keep_run(run, PAGES * PAGE - 1), Ok(false), "too long for this bound");
        assert_eq!(owner.keep_run(run, PAGES * PAGE), Ok(true));
        assert_eq!(owner.keep_run(run, PAGES * PAGE), Err(()), "it was freed before");
        assert!(owner.take_run(PAGES / 2, PAGE).is_none());
        assert!(owner.take_run(PAGES, PAGE).is_some_and(|taken| taken.is(run)));
        pages.lock().free_large(run);
        end(cache);
    }

    #[test]
    fn free_slabs_are_kept_up_to_a_bound_and_full_ones_are_known() {
        let cache = new_cache();
        let (owner, class) = (&cache.owner, SizeClass::of(4096));
        let slab_bytes = usize::from(class.row().slab_pages) * PAGE;
        let most = SPARE_BYTES / slab_bytes;
        let mut blocks = Vec::new();
        let mut state = owner.state.lock();
        while state.slabs(class).full.length() < 2 * most {
            owned_slabs::fill(owner, &mut state, class, class.slots(), |block| blocks.push(block));
        }
        state.slabs(class).full.check(|slab| assert!(slab.is_full()));
        let first = Slab::of(page_map::lookup(blocks[0] as usize)).expect("a slab");
        give_back(owner, &mut state, class, &blocks[..1]);
        assert_eq!((first.list(), state.partial_slabs(class)), (ListName::Partial, 1));
        give_back(owner, &mut state, class, &blocks[1..]);
        assert_eq!((state.partial_slabs(class), state.slabs(class).full.length()), (most, 0));
        drop(state);
        end(cache);
    }
}
