//! Between a slab and its guard: where remote frees go, and how the guard takes them in.

use crate::ground::fatal;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena_list;
use crate::middle::events::{Event, UNCACHED};
use crate::middle::owners::owner;
use crate::middle::slabs::remote_free::{Freed, Guard, PendingStack, Remote};
use crate::middle::slabs::slab::Slab;

/// Takes in a slab's remote frees. Ends the process if a double free is among them.
pub(crate) fn absorb(slab: &'static Slab) -> usize {
    match slab.absorb() {
        Ok(taken) => taken,
        Err((word, twice)) => {
            fatal::double_free(slab.block_at(word, twice.trailing_zeros()), slab.place())
        }
    }
}

/// Whether taking in the remote words of a slab is cheap enough to do at every refill.
#[inline]
pub(crate) fn is_cheap_to_absorb(class: SizeClass) -> bool {
    class.words() <= 4
}

/// Frees blocks of a slab that another lock guards. `Err`: the bits that were freed already.
#[inline(always)]
pub(crate) fn free_remotely(
    slab: &'static Slab,
    class: SizeClass,
    word: usize,
    mask: u64,
) -> Result<Freed, u64> {
    let arena = slab.arena();
    // SAFETY: the blocks are the caller's to free, and records live for ever.
    let done = unsafe { slab.remote.free(word, mask, |guard| stack_of(guard, arena, class)) };
    done.map_err(|twice| twice.0)
}

/// As [`free_remotely`], for one block, past all caches. `false`: it was free already.
pub(crate) fn free_one_remotely(
    slab: &'static Slab,
    class: SizeClass,
    word: usize,
    mask: u64,
) -> bool {
    let Ok(freed) = free_remotely(slab, class, word, mask) else { return false };
    UNCACHED.add(Event::RemoteWord, 1);
    UNCACHED.add(Event::Push, u64::from(freed.pushed));
    UNCACHED.add(Event::Retry, u64::from(freed.retries));
    true
}

/// The stack on which a guard finds its slabs of one class and arena.
pub(crate) fn stack_of(guard: Guard, arena: u32, class: SizeClass) -> Option<*const PendingStack> {
    match guard {
        Guard::Owner(id) => owner::by_id(id).map(|owner| &raw const *owner.pending(class)),
        Guard::Bin => arena_list::by_id(arena).map(|arena| &raw const arena.bin(class).pending),
    }
}

/// As [`stack_of`], for a slab that is PENDING, so that its class cannot change.
pub(crate) fn stack_of_remote(remote: *const Remote, guard: Guard) -> Option<*const PendingStack> {
    // SAFETY: what lies on a pending stack is the field of a slab's record.
    let slab = unsafe { Slab::of_remote(remote) };
    stack_of(guard, slab.arena(), slab.class())
}
