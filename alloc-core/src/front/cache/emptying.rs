//! Taking the free blocks out of the cache of a thread that does nothing, without its help.
//!
//! ```text
//!   other thread                               the cache's thread, when it wakes
//!   1: the cache is marked                     a: word is read: a façade, whose bins miss
//!   2: membarrier                              b: slow path; under the owner's lock the bins
//!   3: word: compare-exchange front → façade      are made whole, the mark goes
//!   4: membarrier                              c: word = front
//!   5: under the owner's lock: blocks go back
//! ```
//! After 4 the thread is in the middle of one operation at most, which has read the word before 3.
//! That operation pops the newest block of one bin, or pushes one above it. So 5 leaves the newest
//! block of each bin and does not touch the bin ([`Emptied`](super::emptied::Emptied)).
//!
//! A slow path that has read the cache before 3 looks at the mark before each pop and under each
//! lock. A thread that sets its own word looks at the mark after that ([`switch::show`]); 2 makes
//! sure that either it sees the mark, or 3 sees its word. So the word may also name another cache
//! of the thread, which has left this one, or the façade already, for a thread whose every
//! operation is seen. Then it stays as it is: before its next operation with this cache the thread
//! sees the mark.
//!
//! In the hardened tier, and for a thread whose operations are only counted, the word always names
//! the façade, whose fast path goes straight to the real bin. Between 1 and 2 that path is closed
//! instead, and the thread opens it at c, under the registry's lock, or at a later operation if
//! that is taken. In the hardened tier bins of blocks longer than [`LONGEST`] are left as they are,
//! because an operation there may also move an older block.
//!
//! [`LONGEST`]: crate::front::modes::hardened::quarantine::LONGEST

use super::facade::Facade;
use super::real_cache::RealCache;
use super::registry::{self, Locked, REGISTRY};
use super::switch;
use crate::front::bins::thread_cache::{Kind, ThreadCache};
use crate::front::bins::tls;
use crate::ground::counters::SharedCount;
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::blocks::give_back::give_back;
use crate::middle::owners::owner::OwnerState;
use crate::middle::passes::idle_owner;
use crate::profile::sampler;
use core::sync::atomic::Ordering;

/// The number of caches that were emptied.
pub(crate) static EMPTIED: SharedCount = SharedCount::new();

/// Blocks that are given back together.
const BATCH: usize = 64;

/// Empties caches whose threads do nothing, as far as that is so still. Returns `false`, and
/// changes nothing, if the system cannot do it.
pub(crate) fn empty<C: Iterator<Item = &'static RealCache>>(
    registry: &Locked<'_>,
    caches: impl Fn() -> C,
) -> bool {
    for cache in caches() {
        cache.emptied.set(true);
        if !cache.prepare_facade() {
            cache.emptied.set(false);
        }
    }
    let unmark = |cache: &'static RealCache| {
        // It may have been marked before, so that its thread follows the rate of the profiler.
        if cache.drawn_at.is_behind() {
            sampler::note_behind();
        }
        cache.emptied.set(false);
        cache.prepare_facade();
    };
    let marked = || caches().filter(|cache| cache.emptied.is_set());
    let is_done = os::fence_all_threads() && {
        marked().filter(|cache| !shut(registry, cache)).for_each(unmark);
        os::fence_all_threads()
    };
    if is_done {
        marked().for_each(take_blocks);
    } else {
        // A thread whose word names the façade finds its way back at its next slow path.
        marked().for_each(unmark);
    }
    is_done
}

/// Makes the word of a cache's thread name something else than the cache: the façade, if it names
/// the cache now. Returns `false` if the thread begins, ends or runs a callback.
pub(super) fn shut(registry: &Locked<'_>, cache: &'static RealCache) -> bool {
    let word = cache.thread().and_then(|thread| registry::word_of(registry, thread));
    let (Some(word), Some(facade)) = (word, cache.facade()) else { return false };
    let (front, facade) = (tls::word_for(&cache.front), tls::word_for(facade.front()));
    // SeqCst: pairs with the fences that membarrier(2) makes in every thread.
    match word.compare_exchange(front, facade, Ordering::SeqCst, Ordering::Relaxed) {
        Ok(_) => true,
        Err(present) => RealCache::of(tls::named_by(present)).is_some(),
    }
}

/// Takes the blocks of a cache that its thread's word does not name, and hands its slabs on.
fn take_blocks(cache: &'static RealCache) {
    let mut state = cache.owner.state.lock();
    // The thread may have come here first.
    if cache.emptied.is_set() {
        for class in SizeClass::all().filter(|class| may_take(cache, *class)) {
            take_oldest(cache, &mut state, class);
        }
        idle_owner::give_up(&cache.owner, &mut state);
        EMPTIED.add(1);
    }
}

/// Returns whether an operation that is under way leaves the older blocks of a bin where they are.
fn may_take(cache: &RealCache, class: SizeClass) -> bool {
    cache.facade().is_none_or(|facade| facade.keeps_order(class))
}

/// Gives all blocks of a bin but the newest one back to their slabs.
fn take_oldest(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass) {
    let most = cache.bin(class).level().saturating_sub(1);
    let mut gone = cache.emptied.gone(class);
    let mut blocks = [core::ptr::null_mut(); BATCH];
    while gone < most {
        let count = (most - gone).min(BATCH);
        let Some(batch) = blocks.get_mut(..count) else { return };
        cache.bin(class).see(gone, batch);
        give_back(&cache.owner, state, class, batch);
        gone += count;
        cache.emptied.set_gone(class, gone);
    }
}

/// Returns the bytes of the blocks that [`empty`] would take out of a cache. Any thread may ask.
pub(crate) fn bytes(cache: &RealCache) -> usize {
    let bytes = |class| cache.in_bin(class).saturating_sub(1) * class.size();
    cache.owner.ledger.used_classes().filter(|class| may_take(cache, *class)).map(bytes).sum()
}

/// Returns a number that changes when the cache's thread does something. Any thread may ask.
pub(crate) fn print(cache: &RealCache) -> u64 {
    cache.owner.ledger.used_classes().fold(cache.owner.activity.get(), |print, class| {
        let (level, left) = (cache.bin(class).level(), cache.bin(class).countdown_seen());
        let now = (level as u64) << 32 ^ u64::from(left.cast_unsigned());
        (print.rotate_left(7) ^ now).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Returns the front that serves the calling thread, of which `cache` is the present one. If that
/// is the façade of a cache that was emptied, the cache is made whole and serves again.
#[inline]
pub(crate) fn awake(cache: &'static ThreadCache) -> &'static ThreadCache {
    if cache.kind() != Kind::Mode {
        return cache;
    }
    let Some(real) = RealCache::of(cache) else { return cache };
    real.ready();
    if real.facade().is_some_and(Facade::is_resting)
        // Until it is free, each operation takes the way of all modes.
        && let Some(_registry) = REGISTRY.try_lock()
    {
        real.prepare_facade();
    }
    if switch::needs_facade(real) {
        return cache;
    }
    switch::show(real);
    tls::current()
}
