//! Between a thread's bins and the slabs: a miss fills the bin, an overflow empties it.
//!
//! Everything here runs under the lock of the cache's owner, once per batch.

use super::collection::collect;
use super::{arrays, countdown, flush, freed_samples, suspects};
use crate::front::bins::cache_bin::Filler;
use crate::front::cache::facade::Facade;
use crate::front::cache::real_cache::RealCache;
use crate::front::modes::until_sample::Due;
use crate::ground::cache_limits::BY_CLASS;
use crate::ground::intervals;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::middle::blocks::give_back::give_back;
use crate::middle::blocks::overflow_moves;
use crate::middle::blocks::owned_slabs;
use crate::middle::blocks::shared_refill;
use crate::middle::owners::owner::{Owner, OwnerState};

/// Refills of a class that come from shared slabs before the cache gets its own slab, unless it
/// refills [`OWN_REFILL`] bytes before. In the hardened tier, refills of any size.
const SHARED_REFILLS: u8 = 32;
const SHARED_REFILLS_HARDENED: u8 = 4;
const OWN_REFILL: usize = 4096;

/// Returns a block for a request that found its bin empty or its countdown run out, or null if
/// there is no memory.
///
/// The caller must be the cache's thread and hold no lock.
pub(crate) fn request(cache: &'static RealCache, class: SizeClass) -> *mut u8 {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    if cold.refills.get() == 0 && class.blocks_of_lines() > 1 && bin.level() > 0 {
        // The thread has freed such blocks, but never requested any. They are other threads'
        // blocks, in cache lines that those threads write to.
        flush::oldest(cache, &mut cache.lock_own(), class, bin.level());
    }
    let mut block = freed_samples::pop_ordinary(cache, class);
    if block.is_null() {
        refill(cache, class);
        block = freed_samples::pop_ordinary(cache, class);
    }
    if !block.is_null() {
        count_one(cache, class, block);
    }
    block
}

/// Counts one request, which got `block`. If the countdown has run out, arms it again and makes a
/// step of collection.
fn count_one(cache: &'static RealCache, class: SizeClass, block: *mut u8) {
    let bin = cache.bin(class);
    // A fast path that found the countdown at 0 has set it to -1 and counted this request.
    let left = if bin.countdown() < 0 { -1 } else { bin.countdown() - 1 };
    if left >= 0 {
        bin.set_countdown(left);
        return;
    }
    suspects::newest(cache, class, block);
    let most = (options::current().tcache_gc_incr_bytes / class.size()).clamp(32, 1024);
    let pops = countdown::arm(cache, class, most);
    let armed = &cache.cold(class).armed;
    let first = armed.get() == 0;
    armed.add(pops as u64);
    bin.set_countdown(pops as i32 + left);
    // A sample ends an interval early. The step then comes after the next one, if that is whole.
    let is_early = cache.due.get() != Due::Nothing && pops == most;
    if !first && !is_early {
        collect(cache);
    }
    if cache.thread().is_some() {
        // Not under a lock. The lock of an explicit cache would be held here.
        intervals::count(pops.saturating_mul(class.size()));
    }
}

fn refill(cache: &'static RealCache, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    if cold.want.get() == 0 {
        suspects::of_all_bins(cache);
        cold.want.set(1);
    }
    let mut state = cache.lock_own();
    cache.owner.activity.add(1);
    cold.missed.set(true);
    cache.settle_account(class);
    // The array grows here, when it is needed and the bin is empty, so that nothing has to be
    // moved.
    if usize::from(cold.want.get()) > bin.capacity() / 2 || bin.capacity() == 0 {
        arrays::grow(cache, class);
    }
    if bin.capacity() == 0 {
        return;
    }
    let facade = cache.facade();
    let least = facade.map_or(1, Facade::least);
    // Whole lines, so that no two threads write to one.
    let want = usize::from(cold.want.get()).min(bin.capacity() / 2).max(least);
    let want = want.next_multiple_of(class.blocks_of_lines()).min(bin.capacity());
    // A bin has few blocks of a shared class, so all are taken, to refill less often.
    let most = if class.is_shared() { bin.capacity() } else { want };
    if refill_from_overflow(cache, &mut state, class, most) {
        return;
    }
    let fill = |filler: &mut Filler| {
        if is_from_shared_slabs(cold.refills.get(), class, want) {
            cold.refills.set(cold.refills.get().saturating_add(1));
            let Owner { home, events, ledger, .. } = &cache.owner;
            let give = |block| filler.give(block);
            let (n, arena) = shared_refill::fill_shared(home, class, want, events, give);
            ledger.of(class.index(), arena).filled.add(n as u64);
        } else {
            owned_slabs::fill(&cache.owner, &mut state, class, want, |block| filler.give(block));
        }
    };
    // SAFETY: the bin is this thread's, it is empty, and `want` is within its capacity.
    let given = unsafe { bin.fill(want, fill) };
    cache.owner.ledger.home(class.index()).fills.add(u64::from(given > 0));
    state.untold.add((given * class.size()).cast_signed());
    cold.bulk.set(state.overflow.note_refill(class, given));
    mixed(cache, class);
    want_more(cache, class, want);
}

/// Returns whether a refill of `want` blocks, after `refills` others, comes from slabs that threads
/// share. A thread that needs few blocks of a class does not get a slab of its own, most of which
/// would stay unused.
fn is_from_shared_slabs(refills: u8, class: SizeClass, want: usize) -> bool {
    if options::current().hardened {
        return class.is_shared() || refills < SHARED_REFILLS_HARDENED;
    }
    class.is_shared() || (refills < SHARED_REFILLS && want * class.size() < OWN_REFILL)
}

/// Lets the thread's façade, if there is one, put the blocks of a refill in random order.
#[inline]
fn mixed(cache: &'static RealCache, class: SizeClass) {
    if let Some(facade) = cache.facade() {
        facade.refilled(class);
    }
}

/// Takes up to `want` blocks of a class from the cache's overflow stack. Returns `false` if the
/// overflow stack has none.
fn refill_from_overflow(
    cache: &'static RealCache,
    state: &mut OwnerState,
    class: SizeClass,
    want: usize,
) -> bool {
    // SAFETY: a bin passes room for its capacity, which is at least `want`.
    let take = |slots| unsafe { overflow_moves::take(&cache.owner, state, class, want, slots) };
    // SAFETY: the bin is this thread's and empty.
    let given = unsafe { cache.bin(class).fill_below(take) };
    if given > 0 {
        mixed(cache, class);
        want_more(cache, class, want);
    }
    given > 0
}

/// After a refill of `want` blocks the next asks for twice as many, at most half the bin's
/// capacity.
fn want_more(cache: &'static RealCache, class: SizeClass, want: usize) {
    cache.cold(class).want.set((want * 2).max(2) as u16);
}

/// Takes a block whose bin is full. Makes room by growth, or by moving half of the blocks out of
/// the bin.
///
/// The caller must be the cache's thread and hold no lock.
pub(crate) fn overflow(cache: &'static RealCache, class: SizeClass, block: *mut u8) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let mut state = cache.lock_own();
    cache.owner.activity.add(1);
    cold.missed.set(true);
    cache.settle_account(class);
    let requests = cache.requests(class);
    let only_freed = requests == cold.overflow_requests.replace(requests);
    if !arrays::grow(cache, class) {
        // A thread that does not request blocks of this class need not keep half of them.
        let n = if only_freed { bin.level() } else { bin.level().div_ceil(2) };
        if cold.most.get() == BY_CLASS {
            flush::spill(cache, &mut state, class, n);
        } else {
            flush::oldest(cache, &mut state, class, n);
        }
    }
    if !bin.put(block) {
        // Without room the block is given back to its slab alone.
        give_back(&cache.owner, &mut state, class, &[block]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry;
    use crate::front::life::give_back;
    use crate::middle::arenas::arena_list;

    /// Serves `n` requests and frees their blocks. Returns the bin's level in between.
    fn serve(cache: &'static RealCache, class: SizeClass, n: usize) -> usize {
        let blocks: Vec<_> = (0..n).map(|_| request(cache, class)).collect();
        let level = cache.bin(class).level();
        blocks.iter().for_each(|block| overflow(cache, class, *block));
        level
    }

    #[test]
    fn each_thread_begins_with_one_block_and_asks_for_twice_as_many_at_each_refill() {
        let home = arena_list::by_id(0).or_else(|| arena_list::make_next(8)).unwrap();
        let cache = registry::take(home, false, None).unwrap();
        let class = SizeClass::of(64);
        for _ in 0..2 {
            let levels = [1, 2, 4].map(|n| serve(cache, class, n));
            // A refill comes when the blocks of the requests before are used up.
            assert_eq!(levels, [0, 1, 3]);
            give_back::empty(cache);
        }
        registry::put(cache);
    }
}
