//! Samples that were freed by their size: they lie in the bins of the thread that freed them until
//! they are noticed. See [`crate::ground::low`].
//!
//! A refill, an overflow and a flush notice them on their own, because all blocks that leave bins
//! for their slabs pass [`give_back`]. Before a profile is written, [`note_all`] notices those that
//! lie in bins and in overflow stacks.

use crate::back::map::page_map;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry::{self, REGISTRY};
use crate::ground::low;
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::wait;
use crate::middle::blocks::give_back::give_back;
use crate::middle::owners::owner::OwnerState;
use crate::middle::slabs::slab::Slab;
use crate::profile::{live, sampler};

/// Samples of one bin that are noticed at a time.
const AT_A_TIME: usize = 16;

/// Pops the newest block of a bin that is no sample. Samples above it go back to their slabs.
/// Called by the cache's thread, under no lock.
pub(super) fn pop_ordinary(cache: &'static RealCache, class: SizeClass) -> *mut u8 {
    loop {
        cache.ready();
        let block = cache.bin(class).pop_uncounted();
        if block.is_null() || !is_sample(block) {
            return block;
        }
        give_back(&cache.owner, &mut cache.lock_own(), class, &[block]);
    }
}

/// Notices the samples in the bins of all caches, where they stay. What threads free meanwhile may
/// be noticed or not, and so may what a cache holds whose thread stays inside of it. The caller
/// holds no lock.
pub(crate) fn note_all() {
    if !sampler::is_on() || sampler::sees_all() {
        return;
    }
    let _registry = REGISTRY.lock();
    for cache in registry::all() {
        SizeClass::all().for_each(|class| while note_some(cache, class) {});
    }
}

/// Notices the samples in the bins and overflow stacks of a cache whose thread does not exist. The
/// caller holds its lock.
pub(crate) fn note_in_lost(cache: &RealCache, state: &OwnerState) {
    if !sampler::is_on() || sampler::sees_all() {
        return;
    }
    for class in SizeClass::all() {
        note_in_overflow(state, class);
        while note_some_in_bin(cache, class) {}
    }
}

/// Notices samples of a class. Returns whether there may be more.
fn note_some(cache: &RealCache, class: SizeClass) -> bool {
    if cache.in_bin(class) == 0 && cache.owner.in_overflow(class) == 0 {
        return false;
    }
    let Some(state) = wait::for_a_moment(|| cache.owner.state.try_lock()) else { return false };
    note_in_overflow(&state, class);
    note_some_in_bin(cache, class)
}

/// Notices the samples in an overflow stack, which no thread changes meanwhile.
fn note_in_overflow(state: &OwnerState, class: SizeClass) {
    state.overflow.for_each(class, |block| {
        if low::is_low_or_null(block) {
            sampler::note_freed_before(block.expose_provenance());
        }
    });
}

/// Notices some samples in a bin. Returns whether there may be more. The caller holds the cache's
/// lock, so that no sample of the bin becomes a block in use: it is given back under the lock.
fn note_some_in_bin(cache: &RealCache, class: SizeClass) -> bool {
    let see = |look: &mut dyn FnMut(usize)| {
        cache.bin(class).for_each_seen(cache.emptied.gone(class), |block| {
            if low::is_low_or_null(block) {
                look(block.expose_provenance());
            }
        });
    };
    let mut found = [0; AT_A_TIME];
    let mut places = found.iter_mut();
    see(&mut |address| {
        // Those that were noticed before are no samples any more.
        if live::at(address).is_some()
            && let Some(place) = places.next()
        {
            *place = address;
        }
    });
    let is_full = places.next().is_none();
    // A block that is being pushed may be seen as another one that was popped from its place, where
    // the processor may write its place later than the bin's level. The fence waits for it.
    let is_ordered = cfg!(target_arch = "x86_64") || (found[0] != 0 && os::fence_all_threads());
    if is_ordered {
        see(&mut |address| {
            if found.contains(&address) {
                sampler::note_freed_before(address);
            }
        });
    }
    is_full && is_ordered
}

fn is_sample(block: *mut u8) -> bool {
    low::is_low_or_null(block)
        && Slab::of(page_map::lookup(block.expose_provenance())).is_some_and(Slab::is_for_samples)
}
