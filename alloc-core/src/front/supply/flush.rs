//! Blocks on their way from bins to their slabs or to the overflow stack. Everything here runs
//! under the lock of the cache's owner, once per batch.

use super::arrays;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry;
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass};
use crate::middle::blocks::give_back::give_back;
use crate::middle::blocks::overflow_moves;
use crate::middle::owners::overflow;
use crate::middle::owners::owner::OwnerState;

/// Gives the `n` oldest blocks of a bin back to their slabs. Called under the owner's lock.
pub(crate) fn oldest(
    cache: &'static RealCache,
    state: &mut OwnerState,
    class: SizeClass,
    n: usize,
) {
    let bin = cache.bin(class);
    // SAFETY: the callers are the bin's thread, or the registry once that thread has ended.
    let blocks = unsafe { bin.blocks() };
    let Some(blocks) = blocks.get(..n) else { return };
    give_back(&cache.owner, state, class, blocks);
    // SAFETY: as above, and n <= level.
    unsafe { bin.drop_oldest(n) };
}

/// Moves the `n` oldest blocks of a bin to the overflow stack, or to their slabs if the overflow
/// stack is full.
pub(super) fn spill(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass, n: usize) {
    let bin = cache.bin(class);
    // SAFETY: the caller is the bin's thread.
    let blocks = unsafe { bin.blocks() };
    let Some(blocks) = blocks.get(..n) else { return };
    overflow_moves::spill(&cache.owner, state, class, blocks, overflow_bytes(cache, class));
    // SAFETY: as above, and n <= level.
    unsafe { bin.drop_oldest(n) };
}

/// Returns the bytes that a cache's overflow stacks may hold when a block of a class is added: no
/// more than its bins. 0 if the cache is smaller than by default, or unused memory is to be given
/// back at once.
fn overflow_bytes(cache: &'static RealCache, class: SizeClass) -> usize {
    if cache.largest.get() < MAX_CACHED || options::current().dirty_decay_ms == 0 {
        return 0;
    }
    overflow::share(registry::CACHES.get(), class.is_shared()).min(arrays::budget(cache))
}

/// Gives all blocks back to their slabs, for exit and `thread.tcache.flush`. Called under the
/// owner's lock.
pub(crate) fn all(cache: &'static RealCache, state: &mut OwnerState) {
    beside(cache, state);
    for class in SizeClass::all() {
        let level = cache.bin(class).level();
        if level > 0 {
            oldest(cache, state, class, level);
        }
    }
}

/// Gives back what a cache keeps beside its bins. Called under the owner's lock.
pub(crate) fn beside(cache: &'static RealCache, state: &mut OwnerState) {
    state.runs.empty();
    overflow_moves::empty_all(&cache.owner, state);
    if let Some(facade) = cache.facade() {
        facade.flush(&cache.owner, state);
    }
}
