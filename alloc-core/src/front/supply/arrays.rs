//! The arrays of bins: how many blocks a bin may hold, and how its array grows.
//!
//! A bin's capacity starts small and doubles on misses up to 32 KiB (but 8 to 2047 blocks) while
//! the thread stays within 1 MiB.

use super::layouts;
use crate::back::metadata;
use crate::front::cache::real_cache::RealCache;
use crate::ground::cache_limits::BY_CLASS;
use crate::ground::size_class::SizeClass;
use core::ptr::NonNull;

/// What all bins of a thread may hold together, in bytes.
const THREAD_BUDGET: usize = 1 << 20;
/// log2 of the slots of a bin's first array, which has room for a line of blocks, and of its last
/// array.
const LG_FIRST: u8 = 3;
const LG_LAST: u8 = 11;

// An array has a slot for NULL beside those of its blocks, and a bin counts slots in 16 bits.
const _: () = assert!(LG_FIRST < LG_LAST && 1 << LG_LAST <= u16::MAX as usize);

/// Gives a bin its first array, or one twice as long. Returns `false` if the array is as long as it
/// may be. Called under the owner's lock.
#[inline(always)]
pub(super) fn grow(cache: &'static RealCache, class: SizeClass) -> bool {
    let (most, now) = (capacity_max(cache, class), cache.bin(class).capacity());
    // The budget is tested here too, because once it is used up, every miss takes this path. Growth
    // adds the present capacity once more, or less if the bin reaches `most`.
    now < most
        && (now == 0
            || cache.budget_used.get() + now.min(most - now) * class.size() <= THREAD_BUDGET)
        && grow_to(cache, class, most)
}

/// The rest of [`grow`], if the bin may be longer.
#[cold]
#[inline(never)]
fn grow_to(cache: &'static RealCache, class: SizeClass, most: usize) -> bool {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let first = if class.blocks_of_lines() >> LG_FIRST == 0 { LG_FIRST } else { LG_FIRST + 1 };
    let lg = match cold.lg_array.get() {
        0 => first,
        lg => lg + 1,
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
