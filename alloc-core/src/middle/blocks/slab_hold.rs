//! Any slab of the page map under the lock of its guard, for those who only look at it.

use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::ground::size_class::{BIN_BYTES, SizeClass};
use crate::ground::sync::lock;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::bin::BinSlabs;
use crate::middle::owners::owner::{self, OwnerState};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::transfer_cache::TransferCache;

/// How often the guard of a slab may change before its lock is held.
const TRIES: usize = 16;

/// The lock of a slab's guard.
enum Lock {
    Cache { _state: lock::Guard<'static, OwnerState> },
    Bin(lock::Guard<'static, BinSlabs>),
}

/// A slab whose guard's lock is held.
pub(crate) struct HeldSlab {
    /// The slab.
    pub(crate) slab: &'static Slab,
    /// The run of pages under the slab.
    pub(crate) run: &'static Extent,
    lock: Lock,
}

/// The slab that `entry`, the word of the page at `page`, names. Called with no lock that comes
/// after those of caches. `None`: the slab ended meanwhile, or its guard changed again and again.
pub(crate) fn hold(page: usize, entry: Entry) -> Option<HeldSlab> {
    let slab = Slab::of(entry)?;
    let class = SizeClass::from_bin(entry.bin_offset() / BIN_BYTES)?;
    (0..TRIES).find_map(|_| {
        let guard = slab.remote.guard()?;
        let lock = take(guard, slab.arena(), class)?;
        is_held(slab, guard, page, entry).then(|| HeldSlab::new(slab, lock))?
    })
}

fn take(guard: Guard, arena: u32, class: SizeClass) -> Option<Lock> {
    match guard {
        Guard::Owner(id) => Some(Lock::Cache { _state: owner::by_id(id)?.state.lock() }),
        Guard::Bin => Some(Lock::Bin(arena_list::by_id(arena)?.bin(class).slabs.lock())),
    }
}

/// Whether the lock of `guard`, which is held, guards the slab, and the page belongs to it.
fn is_held(slab: &'static Slab, guard: Guard, page: usize, entry: Entry) -> bool {
    let Some(arena) = arena_list::by_id(slab.arena()) else { return false };
    // Slabs are made, and their words written and cleared, under this lock. So with this word the
    // slab is of the word's class, and `guard`, if it is a bin, is the bin that is locked.
    let _pages = arena.pages.lock();
    page_map::lookup(page) == entry && slab.remote.guard() == Some(guard)
}

impl HeldSlab {
    fn new(slab: &'static Slab, lock: Lock) -> Option<HeldSlab> {
        slab.extent().map(|run| HeldSlab { slab, run, lock })
    }

    /// The number of bytes of the slab.
    pub(crate) fn bytes(&self) -> usize {
        usize::from(self.slab.class().row().slab_pages) * PAGE
    }

    /// How many pages have no memory, as far as is known.
    pub(crate) fn pages_without_memory(&self) -> usize {
        self.slab.holes.without_memory()
    }

    /// Writes a bit for each block that is neither free nor freed remotely: see [`copy_in_use`].
    pub(crate) fn copy_in_use(&self, bits: &mut [u64]) {
        copy_in_use(self.slab, bits);
    }

    /// The offsets of blocks that are out of the slab but wait in its bin for the next request.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        let queue: Option<&TransferCache> = match &self.lock {
            Lock::Bin(slabs) => Some(&slabs.transfer),
            Lock::Cache { .. } => None,
        };
        let (base, bytes) = (self.slab.base(), self.bytes());
        queue.into_iter().flat_map(move |queue| queue.offsets_within(base, bytes))
    }

    /// How many blocks are neither free nor freed remotely, nor wait in the bin.
    pub(crate) fn in_use(&self) -> usize {
        self.slab.in_use().saturating_sub(self.waiting().count())
    }
}

/// Writes a bit for each block that is neither free nor freed remotely to `bits`, in the order of
/// the blocks. Blocks without a place in `bits` are left out. Called under the lock of the slab's
/// guard.
pub(in crate::middle) fn copy_in_use(slab: &Slab, bits: &mut [u64]) {
    let mut left = slab.class().slots();
    for (n, (to, free)) in bits.iter_mut().zip(slab.free_words()).enumerate() {
        let slots = left.min(64);
        left -= slots;
        let all = if slots == 64 { !0 } else { (1 << slots) - 1 };
        *to = all & !(free.get() | slab.remote.seen(n));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::Memory;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::blocks::{give_back::give_back, owned_slabs};

    #[test]
    fn a_slab_is_held_by_any_of_its_pages_whoever_guards_it() {
        let cache = new_cache();
        let (owner, class) = (&cache.owner, SizeClass::of(64));
        let mut blocks = Vec::new();
        let mut state = owner.state.lock();
        owned_slabs::fill(owner, &mut state, class, 100, |block| blocks.push(block));
        drop(state);
        let base = blocks[0] as usize & !(PAGE - 1);
        for page in [base, base + PAGE] {
            let held = hold(page, page_map::lookup(page)).expect("a slab");
            assert_eq!((held.slab.base(), held.in_use(), held.run.base()), (base, 100, base));
            assert_eq!((held.bytes(), held.waiting().count()), (64 << 10, 0));
            assert!(matches!(held.lock, Lock::Cache { .. }));
        }
        // The word of another class, as of a slab that was there before.
        let other = Entry::of_record(page_map::lookup(base).record(), BIN_BYTES as u16);
        assert!(hold(base, other).is_none() && hold(base, Entry::NONE).is_none());
        give_back(owner, &mut owner.state.lock(), class, &blocks);
        end(cache);
    }

    #[test]
    fn blocks_that_wait_in_a_bin_are_not_in_use() {
        let arena = new_cache().owner.home.get();
        let class = SizeClass::of(16 << 10);
        let slab = arena.pages.lock().new_slab(class, Guard::Bin, Memory::Any).expect("memory");
        let mut blocks = Vec::new();
        slab.take_lowest(2, |block| blocks.push(block));
        assert!(arena.bin(class).slabs.lock().transfer.put(blocks[1]));
        let held = hold(slab.base(), page_map::lookup(slab.base())).expect("a slab");
        assert_eq!((held.in_use(), held.waiting().collect::<Vec<_>>()), (1, vec![16 << 10]));
    }
}
