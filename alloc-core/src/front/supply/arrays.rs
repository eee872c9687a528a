//! The arrays of bins: how many blocks a bin may hold, and how its array grows.
//!
//! A bin's capacity starts small and doubles on misses up to 32 KiB (but 8 to 2047 blocks) while
//! the cache stays within its budget ([`budget`]), which grows with what the thread does. What the
//! budget grants to each bin ([`granted`]) a bin may hold in any case.

use super::layouts;
use crate::back::metadata;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry;
use crate::ground::cache_limits::BY_CLASS;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use core::ptr::NonNull;

/// What all bins of a cache may hold together at first and at most, in bytes, and about what the
/// bins of all caches may.
const FIRST_BUDGET: usize = 16 << 10;
const LAST_BUDGET: usize = 1 << 20;
const ALL_BUDGETS: u64 = 64 << 20;
/// The square of a cache's slow calls is divided by this to get the bytes that they add to its
/// budget.
const SQUARE_PER_BYTE: u64 = 2;
/// The share of its cache's budget that each bin may hold even if the budget is used up, and the
/// fewest blocks of it.
const GRANTED_SHARE: usize = 16;
const GRANTED_BLOCKS: usize = 2;
/// log2 of the slots of a bin's first array, which has room for a line of blocks, and of its last
/// array.
const LG_FIRST: u8 = 3;
const LG_LAST: u8 = 11;

// An array has a slot for NULL beside those of its blocks, and a bin counts slots in 16 bits.
const _: () = assert!(LG_FIRST < LG_LAST && 1 << LG_LAST <= u16::MAX as usize);

/// Returns the bytes that all bins of a cache may hold together. The hardened tier needs full bins,
/// because it draws the order of blocks from them.
pub(super) fn budget(cache: &'static RealCache) -> usize {
    if options::current().hardened {
        return LAST_BUDGET;
    }
    budget_after(cache.owner.activity.get(), registry::CACHES.get())
}

/// Returns the budget of a cache after `activity` calls that took its owner's lock, if it is one of
/// `caches`.
///
/// It grows with the square of the calls, so a thread that does little and then waits keeps little,
/// and one that works soon has all it may have. The more caches there are, the less that is.
fn budget_after(activity: u64, caches: u64) -> usize {
    let most = usize::try_from(ALL_BUDGETS / caches.max(1)).unwrap_or(LAST_BUDGET);
    usize::try_from(activity.saturating_pow(2) / SQUARE_PER_BYTE)
        .unwrap_or(LAST_BUDGET)
        .saturating_add(FIRST_BUDGET)
        .min(most.clamp(FIRST_BUDGET, LAST_BUDGET))
}

/// Returns how many blocks a bin may hold even if the budget is used up: at most those of its first
/// array.
fn granted(class: SizeClass, budget: usize) -> usize {
    let first = slots(lg_first(class));
    if options::current().hardened {
        return first;
    }
    (budget / GRANTED_SHARE / class.size()).clamp(GRANTED_BLOCKS, first)
}

/// Lets a bin hold more blocks: gives it its first array, or more of the first, or one twice as
/// long. Returns `false` if the bin may not hold more. Called under the owner's lock.
#[inline(always)]
pub(super) fn grow(cache: &'static RealCache, class: SizeClass) -> bool {
    let (most, now) = (capacity_max(cache, class), cache.bin(class).capacity());
    if now >= most {
        return false;
    }
    // The budget is tested here too, because once it is used up, every miss takes this path. The
    // test assumes that growth adds the present capacity once more, or less if the bin reaches
    // `most`.
    let budget = budget(cache);
    let more = now.min(most - now) * class.size();
    (cache.budget_used.get() + more <= budget || now < granted(class, budget))
        && grow_to(cache, class, most, budget)
}

/// The rest of [`grow`], if the bin may be longer.
#[cold]
#[inline(never)]
fn grow_to(cache: &'static RealCache, class: SizeClass, most: usize, budget: usize) -> bool {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let (now, first, lg_now) = (bin.capacity(), lg_first(class), cold.lg_array.get());
    // A bin that was granted less than its first array has room for is first given the rest.
    let lg = if now < slots(first).min(most) { first } else { lg_now + 1 };
    if lg > LG_LAST {
        return false;
    }
    let used = cache.budget_used.get();
    let mut capacity = slots(lg).min(most);
    if used + (capacity - now) * class.size() > budget {
        capacity = capacity.min(granted(class, budget));
    }
    if capacity <= now {
        return false;
    }
    let Some(array) = metadata::allocate_array(u32::from(lg)) else { return false };
    // SAFETY: this thread's bin; the array has 2^lg slots, more than `capacity`.
    let old = unsafe { bin.move_to(array.as_ptr(), capacity) };
    if layouts::are_screened() {
        bin.screen();
    }
    cache.budget_used.set(used + (capacity - now) * class.size());
    free_array(old, cold.lg_array.replace(lg));
    true
}

/// Returns log2 of the slots of the first array of a class.
fn lg_first(class: SizeClass) -> u8 {
    if class.blocks_of_lines() >> LG_FIRST == 0 { LG_FIRST } else { LG_FIRST + 1 }
}

/// Returns how many blocks fit into an array of 2^`lg` slots.
fn slots(lg: u8) -> usize {
    (1 << lg) - 1
}

/// Returns how many blocks the bin of a class may hold. The limit of large blocks is higher once
/// they are used in bulk.
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
        // SAFETY: the array came from `allocate_array(lg)`, and its bin no longer uses it.
        unsafe { metadata::free_array(array, u32::from(lg)) };
    }
}

/// Frees a bin's array. Blocks in it are dropped. Called under the owner's lock.
pub(crate) fn drop(cache: &'static RealCache, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let bytes = bin.capacity() * class.size();
    cache.budget_used.set(cache.budget_used.get().saturating_sub(bytes));
    let base = bin.base();
    bin.forget();
    free_array(base, cold.lg_array.replace(0));
    cold.want.set(0);
    cold.refills.set(0);
    cold.bulk.set(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::life::give_back;
    use crate::middle::arenas::arena_list;

    #[test]
    fn a_budget_grows_with_what_the_thread_does_and_is_smaller_among_many() {
        assert_eq!(budget_after(0, 1), 16 << 10);
        assert_eq!(budget_after(320, 1), (16 << 10) + 51_200);
        assert_eq!(budget_after(1440, 64), 1 << 20);
        assert_eq!([budget_after(u64::MAX, 0), budget_after(u64::MAX, 64)], [1 << 20; 2]);
        assert_eq!(budget_after(u64::MAX, 1024), 64 << 10);
        assert_eq!(budget_after(u64::MAX, u64::MAX), 16 << 10);
    }

    #[test]
    fn a_bin_has_two_blocks_beyond_the_budget_and_the_rest_of_its_first_array_within() {
        let home = arena_list::by_id(0).or_else(|| arena_list::make_next(8)).unwrap();
        let cache = registry::take(home, false, None).unwrap();
        let large = SizeClass::of(32 << 10);
        let capacity = || cache.bin(large).capacity();
        cache.owner.activity.reset();
        assert!(grow(cache, large) && capacity() == 2);
        assert!(!grow(cache, large) && capacity() == 2);
        cache.owner.activity.add(2000);
        assert!(grow(cache, large) && capacity() == slots(LG_FIRST));
        assert_eq!(cache.budget_used.get(), slots(LG_FIRST) * large.size());
        give_back::empty(cache);
        assert_eq!(cache.budget_used.get(), 0);
        registry::put(cache);
    }
}
