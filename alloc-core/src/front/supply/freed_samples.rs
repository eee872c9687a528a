//! Samples that were freed by their size: they lie in the bins of the thread that freed them until
//! they are noticed. See [`crate::ground::low`].
//!
//! A refill, an overflow and a flush notice them on their own, because all blocks that leave bins
//! for their slabs pass [`give_back`].

use crate::back::map::page_map;
use crate::front::cache::real_cache::RealCache;
use crate::ground::low;
use crate::ground::size_class::SizeClass;
use crate::middle::blocks::give_back::give_back;
use crate::middle::slabs::slab::Slab;

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

/// Gives all samples in the bins of a cache back to their slabs. Called by the cache's thread,
/// under no lock.
pub(crate) fn settle(cache: &'static RealCache) {
    let mut state = cache.lock_own();
    for class in SizeClass::all() {
        let give = |block| give_back(&cache.owner, &mut state, class, &[block]);
        // SAFETY: this thread's bin.
        unsafe { cache.bin(class).take_if(is_sample, give) };
    }
}

fn is_sample(block: *mut u8) -> bool {
    low::is_low_or_null(block)
        && Slab::of(page_map::lookup(block.expose_provenance())).is_some_and(Slab::is_for_samples)
}
