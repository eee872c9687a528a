//! Between a thread's bins and the slabs: refill, flush, growth and collection of bins.
//!
//! Everything here runs under the lock of the cache's owner, once per batch. What a bin may hold
//! starts small, doubles on misses up to 32 KiB (at least 8 blocks, at most 2047) while the thread
//! stays within 1 MiB, and fades again when collection finds it unused. A bin that a thread only
//! pushes to, never pops from, holds at most 16 KiB, or 4 blocks. What the thread before needed of
//! a class, the next one that gets its cache begins with, up to 8 blocks.

use super::cache_bin::Filler;
use super::facade::Facade;
use super::guarded::{countdown, layouts};
use super::registry::{self, RealCache};
use crate::back::metadata;
use crate::ground::cache_limits::BY_CLASS;
use crate::ground::options;
use crate::ground::size_class::{CLASSES, MAX_CACHED, SizeClass};
use crate::ground::stats_interval;
use crate::middle::depot;
use crate::middle::give_back::give_back;
use crate::middle::owned_slabs;
use crate::middle::owner::{Owner, OwnerState};
use crate::middle::shared_refill;
use core::ptr::NonNull;

/// What all bins of a thread may hold together, in bytes.
const THREAD_BUDGET: usize = 1 << 20;
/// What a bin may hold that is only freed into, in bytes.
const FREE_ONLY: usize = 16 << 10;
/// But at least so many blocks, so that large ones do not go home one by one.
const FEWEST_FREED: usize = 4;
/// log2 of the slots of a bin's first array, which has room for a line of blocks, and of its last.
const LG_FIRST: u8 = 3;
const LG_LAST: u8 = 11;
/// Refills of a class that come from shared slabs before the cache wants one of its own.
const SHARED_REFILLS: u8 = 4;
/// log2 of the most blocks that a thread begins with because the one before used so many, and how
/// many bytes they are at most.
const LG_HABIT: u8 = 3;
const HABIT: usize = 4096;
/// Bins that one step of collection visits.
const VISITS: usize = 4;

/// A block for a request that found its bin empty or its countdown run out. Null: no memory.
///
/// The caller is the cache's thread and holds no lock.
pub(crate) fn request(cache: &'static RealCache, class: SizeClass) -> *mut u8 {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    if cold.refills.get() == 0 && class.blocks_of_lines() > 1 && bin.level() > 0 {
        // It has freed such blocks, but not asked for any before: they are others', and lie in
        // cache lines that others write to.
        flush(cache, &mut cache.owner.state.lock(), class, bin.level());
    }
    let mut block = bin.pop_uncounted();
    if block.is_null() {
        refill(cache, class);
        block = bin.pop_uncounted();
    }
    if !block.is_null() {
        count_one(cache, class);
    }
    block
}

/// Counts one request, and when the countdown has run out arms it anew and collects a little.
fn count_one(cache: &'static RealCache, class: SizeClass) {
    let bin = cache.bin(class);
    // A fast path that found the countdown at 0 has taken it to -1 and counted this request.
    let left = if bin.countdown() < 0 { -1 } else { bin.countdown() - 1 };
    if left >= 0 {
        bin.set_countdown(left);
        return;
    }
    let bytes = options::current().tcache_gc_incr_bytes;
    let pops = countdown::arm(cache, class, (bytes / class.size()).clamp(32, 1024));
    let armed = &cache.cold(class).armed;
    let first = armed.get() == 0;
    armed.add(pops as u64);
    bin.set_countdown(pops as i32 + left);
    if !first {
        collect(cache);
    }
    if cache.thread().is_some() {
        // Under no lock: that of an explicit cache is held.
        stats_interval::count(pops.saturating_mul(class.size()));
    }
}

fn refill(cache: &'static RealCache, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let mut state = cache.owner.state.lock();
    cache.owner.activity.add(1);
    cold.missed.set(true);
    settle_account(cache, class);
    if cold.want.get() == 0 {
        // As if the smaller refills had been.
        let lg = cold.lg_habit.get();
        cold.want.set(1 << lg);
        cold.refills.set(cold.refills.get().max(lg));
    }
    // Now, as the bin is empty and nothing has to be moved, and not before it is needed.
    if usize::from(cold.want.get()) > bin.capacity() / 2 || bin.capacity() == 0 {
        grow(cache, class, usize::MAX);
    }
    if bin.capacity() == 0 {
        return;
    }
    let facade = cache.facade();
    let least = facade.map_or(1, Facade::least);
    // Whole lines, so that no two threads write to one.
    let want = usize::from(cold.want.get()).min(bin.capacity() / 2).max(least);
    let want = want.next_multiple_of(class.blocks_of_lines()).min(bin.capacity());
    // There are few in a bin of these: all of them, to come here less often.
    let parked = if class.is_shared() { bin.capacity() } else { want };
    if refill_from_depot(cache, &mut state, class, parked) {
        return;
    }
    let fill = |filler: &mut Filler| {
        if class.is_shared() || cold.refills.get() < SHARED_REFILLS {
            cold.refills.set(cold.refills.get().saturating_add(1));
            let Owner { home, effort, ledger, .. } = &cache.owner;
            let give = |block| filler.give(block);
            let (n, arena) = shared_refill::fill_shared(home, class, want, effort, give);
            ledger.of(class.index(), arena).filled.add(n as u64);
        } else {
            owned_slabs::fill(&cache.owner, &mut state, class, want, |block| filler.give(block));
        }
    };
    // SAFETY: the bin is this thread's, it is empty, and `want` is within its capacity.
    let given = unsafe { bin.fill(want, fill) };
    cache.owner.ledger.home(class.index()).fills.add(u64::from(given > 0));
    cold.bulk.set(state.depots.note_refill(class, given));
    mixed(cache, class);
    want_more(cache, class, want);
}

/// Has the thread's façade, if there is one, put the blocks of a refill in random order.
#[inline]
fn mixed(cache: &'static RealCache, class: SizeClass) {
    if let Some(facade) = cache.facade() {
        facade.refilled(class);
    }
}

/// Takes what the cache has parked of a class, up to `want` blocks. `false`: nothing is.
fn refill_from_depot(
    cache: &'static RealCache,
    state: &mut OwnerState,
    class: SizeClass,
    want: usize,
) -> bool {
    // SAFETY: a bin is handed room for its capacity, which is at least `want`.
    let unpark = |slots| unsafe { cache.owner.unpark(state, class, want, slots) };
    // SAFETY: the bin is this thread's and empty.
    let given = unsafe { cache.bin(class).fill_below(unpark) };
    if given > 0 {
        mixed(cache, class);
        want_more(cache, class, want);
    }
    given > 0
}

/// After a refill of `want` blocks: the next one is twice as large, half the bin's at most.
fn want_more(cache: &'static RealCache, class: SizeClass, want: usize) {
    cache.cold(class).want.set((want * 2).max(2) as u16);
}

/// Charges what the cache does from now on to its home of now. By its thread, under the owner's
/// lock.
#[inline]
fn settle_account(cache: &'static RealCache, class: SizeClass) {
    let Owner { ledger, home, .. } = &cache.owner;
    ledger.settle(class.index(), home.get().id(), || cache.requests(class));
}

/// Takes a block whose bin is full: makes room, by growth or by sending half of the blocks home.
///
/// The caller is the cache's thread and holds no lock.
pub(crate) fn overflow(cache: &'static RealCache, class: SizeClass, block: *mut u8) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let mut state = cache.owner.state.lock();
    cache.owner.activity.add(1);
    cold.missed.set(true);
    settle_account(cache, class);
    let requests = cache.requests(class);
    let only_freed = requests == cold.overflow_requests.get();
    cold.overflow_requests.set(requests);
    let most = if only_freed { (FREE_ONLY / class.size()).max(FEWEST_FREED) } else { usize::MAX };
    if !grow(cache, class, most) {
        // Of what the thread does not ask for it need not keep the half.
        let n = if only_freed && !cold.bulk.get() { bin.level() } else { bin.level().div_ceil(2) };
        if cold.most.get() == BY_CLASS {
            spill(cache, &mut state, class, n);
        } else {
            flush(cache, &mut state, class, n);
        }
    }
    if !bin.put(block) {
        // No room, or no memory for any: home it goes alone.
        give_back(&cache.owner, &mut state, class, &[block]);
    }
}

/// Sends the `n` oldest blocks of a bin home. Under the owner's lock.
pub(crate) fn flush(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass, n: usize) {
    let bin = cache.bin(class);
    // SAFETY: the callers are the bin's thread, or the registry once that is gone.
    let blocks = unsafe { bin.blocks() };
    let Some(oldest) = blocks.get(..n) else { return };
    give_back(&cache.owner, state, class, oldest);
    // SAFETY: as above, and n <= level.
    unsafe { bin.drop_oldest(n) };
}

/// Moves the `n` oldest blocks of a bin to the depot, or home where that takes no more.
fn spill(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass, n: usize) {
    let bin = cache.bin(class);
    // SAFETY: the caller is the bin's thread.
    let blocks = unsafe { bin.blocks() };
    let Some(oldest) = blocks.get(..n) else { return };
    cache.owner.spill(state, class, oldest, depot_bytes(cache, class));
    // SAFETY: as above, and n <= level.
    unsafe { bin.drop_oldest(n) };
}

/// What the depots of a cache may hold when a block of a class comes: nothing with smaller caches
/// than by default, nor where unused memory is to go at once.
fn depot_bytes(cache: &'static RealCache, class: SizeClass) -> usize {
    if cache.largest.get() < MAX_CACHED || options::current().dirty_decay_ms == 0 {
        return 0;
    }
    depot::share(registry::ALIVE.get(), class.is_shared())
}

/// Sends everything home, for exit and for `thread.tcache.flush`. Under the owner's lock.
pub(crate) fn flush_all(cache: &'static RealCache, state: &mut OwnerState) {
    flush_beside(cache, state);
    for class in SizeClass::all() {
        let level = cache.bin(class).level();
        if level > 0 {
            flush(cache, state, class, level);
        }
    }
}

/// Sends home what a cache keeps beside its bins. Under the owner's lock.
pub(crate) fn flush_beside(cache: &'static RealCache, state: &mut OwnerState) {
    state.runs.empty();
    cache.owner.empty_depots(state);
    if let Some(facade) = cache.facade() {
        facade.flush(state);
    }
}

/// Gives a bin its first array, or one twice as long, for at most `most` blocks. `false`: it is as
/// long as it may be. Under the owner's lock.
#[inline(always)]
fn grow(cache: &'static RealCache, class: SizeClass, most: usize) -> bool {
    let (most, now) = (most.min(capacity_max(cache, class)), cache.bin(class).capacity());
    // The budget is asked here too, as where it is used up every miss comes by: what is added is
    // as much again, or as it may hold.
    now < most
        && (now == 0
            || cache.budget_used.get() + now.min(most - now) * class.size() <= THREAD_BUDGET)
        && grow_to(cache, class, most)
}

/// The rest of [`grow`], where the bin may be longer.
#[cold]
#[inline(never)]
fn grow_to(cache: &'static RealCache, class: SizeClass, most: usize) -> bool {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let first = if class.blocks_of_lines() >> LG_FIRST == 0 { LG_FIRST } else { LG_FIRST + 1 };
    let lg = match (cold.lg_array.get(), cold.lg_habit.get()) {
        (0, 0) => first,
        (0, habit) => first.max(habit + 2),
        (lg, _) => lg + 1,
    };
    let capacity = ((1usize << lg) - 1).min(most);
    if lg > LG_LAST || capacity <= bin.capacity() {
        return false;
    }
    let more = (capacity - bin.capacity()) * class.size();
    let budget = cache.budget_used.get() + more;
    if budget > THREAD_BUDGET && bin.capacity() > 0 {
        return false;
    }
    let Some(array) = metadata::allocate_array(u32::from(lg)) else { return false };
    // SAFETY: this thread's bin; the array has 2^lg slots, more than `capacity`.
    let old = unsafe { bin.move_to(array.as_ptr(), capacity) };
    if layouts::are_screened() {
        bin.screen();
    }
    cache.budget_used.set(budget);
    free_array(old, cold.lg_array.replace(lg));
    true
}

/// How many blocks the bin of a class may hold: more of large ones once they are used in bulk.
pub(crate) fn capacity_max(cache: &'static RealCache, class: SizeClass) -> usize {
    let (row, cold) = (class.row(), cache.cold(class));
    match cold.most.get() {
        BY_CLASS if cold.bulk.get() => usize::from(row.bulk_max),
        BY_CLASS => usize::from(row.cache_max),
        most => usize::from(most),
    }
}

fn free_array(base: *mut *mut u8, lg: u8) {
    if lg == 0 {
        return;
    }
    if let Some(array) = NonNull::new(base) {
        // SAFETY: the array came from `allocate_array(lg)`, and its bin has let go of it.
        unsafe { metadata::free_array(array, u32::from(lg)) };
    }
}

/// Lets go of a bin's array, which holds no blocks that matter. Under the owner's lock.
pub(crate) fn drop_array(cache: &'static RealCache, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let bytes = bin.capacity() * class.size();
    cache.budget_used.set(cache.budget_used.get().saturating_sub(bytes));
    let base = bin.base();
    bin.forget();
    free_array(base, cold.lg_array.replace(0));
    cold.want.set(0);
    cold.lg_habit.set(0);
    cold.refills.set(0);
    cold.bulk.set(false);
}

/// At the end of a thread, or of what it does for now: as [`drop_array`], but notes what the next
/// one is to begin with: the last refill. If there was one only, or none, half of what this thread
/// began with.
pub(crate) fn part(cache: &'static RealCache, class: SizeClass) {
    let cold = cache.cold(class);
    let (begun, most) = (cold.lg_habit.get(), (HABIT / class.size()).checked_ilog2());
    let last = cold.want.get().checked_ilog2().map_or(0, |next| next.saturating_sub(1) as u8);
    let habit = if last > begun { last } else { begun.saturating_sub(1) };
    let habit = habit.min(LG_HABIT).min(most.unwrap_or(0) as u8);
    drop_array(cache, class);
    cold.lg_habit.set(habit);
}

/// One step of collection: visits a few bins. What was neither popped nor missed since the last
/// visit goes home and its array with it; of what was used without a miss, what was never needed.
#[inline(never)]
fn collect(cache: &'static RealCache) {
    let mut round = false;
    let mut state = cache.owner.state.lock();
    cache.owner.activity.add(1);
    for _ in 0..VISITS {
        let index = cache.next_visit.get();
        cache.next_visit.set(if index + 1 < CLASSES { index + 1 } else { 0 });
        if index == 0 {
            state.runs.age();
            round = true;
        }
        if let Some(class) = SizeClass::from_bin(index + 1) {
            visit(cache, &mut state, class);
        }
    }
    if round && let Some(thread) = cache.thread() {
        thread.note_peak();
    }
}

fn visit(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    if bin.capacity() == 0 {
        return;
    }
    let requests = cache.requests(class);
    let used = requests != cold.seen_requests.replace(requests);
    let missed = cold.missed.replace(false);
    let level = bin.level();
    cache.owner.age_depot(state, class);
    if !used && !missed {
        cache.owner.empty_depot(state, class);
        flush(cache, state, class, level);
        drop_array(cache, class);
    } else {
        let n = cold.idle(level, missed);
        if n > 0 {
            flush(cache, state, class, n);
            cold.want.set((cold.want.get() / 2).max(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::thread_life;
    use crate::middle::arena_list;

    /// What lies in the bin once `n` requests are served and their blocks are back.
    fn serve(cache: &'static RealCache, class: SizeClass, n: usize) -> usize {
        let blocks: Vec<_> = (0..n).map(|_| request(cache, class)).collect();
        let level = cache.bin(class).level();
        blocks.iter().for_each(|block| overflow(cache, class, *block));
        level
    }

    #[test]
    fn who_gets_the_cache_of_a_thread_begins_where_that_one_got_to() {
        let home = arena_list::by_id(0).or_else(|| arena_list::make_next(8)).unwrap();
        let cache = registry::take(home, false, None).unwrap();
        let (small, large) = (SizeClass::of(320), SizeClass::of(1024));
        let begin = |class, n| {
            let level = serve(cache, class, n);
            thread_life::empty(cache);
            level
        };
        // One, two, four: the next one begins with four, which are more than it needs.
        assert_eq!([begin(small, 1), begin(small, 7), begin(small, 3)], [0, 0, 1]);
        assert_eq!(begin(small, 1), 1, "so the next one begins with two");
        let level = |class| begin(class, 1);
        assert_eq!([level(small), level(small)], [0, 0], "and one alone needs no more than one");
        begin(small, 100);
        assert_eq!([level(small), level(small)], [7, 3], "at most eight");
        begin(large, 100);
        assert_eq!(level(large), 3, "nor more than 4096 bytes");
        begin(small, 100);
        assert_eq!([level(large), level(small)], [0, 3], "who does not ask has no use for it");
        registry::put(cache);
    }
}
