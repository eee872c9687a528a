//! malloc and free of a thread whose every operation is seen. A block is taken from the real bin
//! behind the façade and put back there, and the modes make it ready and check it.

use super::{recorded, sampled, small};
use crate::back::map::page_map;
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::cache::facade::Facade;
use crate::front::cache::real_cache::RealCache;
use crate::front::modes::block_size::{Given, usable};
use crate::front::modes::hardened::{canary, quarantine};
use crate::front::modes::judge;
use crate::ground::fill_mode;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass};
use crate::middle::slabs::slab::Slab;

/// Allocates a block for a request that rounds to at most [`MAX_CACHED`], and makes it ready.
/// Returns null if the cache is no such façade, if its real bin misses too, or if there is no room
/// for a canary.
#[inline(always)]
pub(crate) fn malloc(cache: &'static ThreadCache, size: usize, align: usize) -> *mut u8 {
    // The callers pass small sizes only, so no sum wraps.
    debug_assert!(size <= MAX_CACHED);
    let Some(facade) = Facade::of(cache) else { return core::ptr::null_mut() };
    let least = size.max(1) + if facade.is_hardened() { canary::BYTES } else { 0 };
    let room = least.wrapping_add(align - 1) & align.wrapping_neg();
    if room > MAX_CACHED {
        return core::ptr::null_mut();
    }
    let class = SizeClass::of(room);
    let block = facade.behind().pop(class.bin() * BIN_BYTES);
    if block.is_null() {
        return block;
    }
    let real = RealCache::behind(facade);
    if real.is_watched() {
        count_popped(real, class);
    }
    // SAFETY: a free block of the class, just popped.
    unsafe { judge::handed_out(block, class, size) };
    sampled::small_exactly(block, size);
    recorded::allocated(block, size);
    block
}

/// Frees a small block. Returns `false`, and does nothing, if the cache is no such façade or the
/// block is not small.
///
/// # Safety
/// As [`give::known`](super::give::known).
#[inline(always)]
pub(crate) unsafe fn free(
    cache: &'static ThreadCache,
    block: *mut u8,
    given: Option<Given>,
) -> bool {
    let Some(facade) = Facade::of(cache) else { return false };
    sampled::small_is_freed_soon(block);
    let entry = page_map::lookup(block.expose_provenance());
    let Some(slab) = Slab::of(entry).filter(|slab| !slab.is_for_samples()) else { return false };
    recorded::freed(block);
    sampled::small_freed(block);
    let (mut units, mut block) = (entry.bin_offset() / OFFSET_UNIT, block);
    let real = RealCache::behind(facade);
    if real.is_watched() {
        count_pushed(real, slab.class());
    }
    if facade.is_hardened() {
        let is_other = |given: &Given| given.hardened_bin() * BIN_BYTES != entry.bin_offset();
        let other = given.filter(is_other);
        if let Some(given) = other.filter(|given| !given.is_size_alone(given.size)) {
            // SAFETY: the caller's block, whose slab stays.
            let requested = unsafe { judge::requested(entry, block as usize) };
            judge::wrong_size(entry, block as usize, given, requested);
        }
        // SAFETY: the address lies in the slab.
        let (class, size) = unsafe { canary::unseal(slab, entry.bin_offset() / BIN_BYTES, block) };
        if let Some(given) = given
            && (!given.is_of(size) || (other.is_some() && !given.is_size_alone(size)))
        {
            judge::wrong_size(entry, block as usize, given, Some(size));
        }
        // SAFETY: a block of the slab, which the caller gave up.
        unsafe { wipe(block, class) };
        if class.size() <= quarantine::LONGEST {
            let waited = facade.exchange(units, block);
            (units, block) = (waited.units, waited.block);
            if units == 0 {
                return true;
            }
        }
    } else {
        // SAFETY: a block of the slab, which the caller gave up, or no block.
        unsafe { judge::taken_back(slab, block) };
    }
    if !facade.behind().bin_at(units * OFFSET_UNIT).push(block) {
        small::push_missed(block);
    }
    true
}

#[inline(never)]
fn count_popped(real: &RealCache, class: SizeClass) {
    real.thread().into_iter().for_each(|thread| thread.got_cached(usable(class)));
}

#[inline(never)]
fn count_pushed(real: &RealCache, class: SizeClass) {
    let Some(thread) = real.thread().filter(|_| real.holds(class)) else { return };
    thread.freed_cached(usable(class));
}

#[inline(always)]
unsafe fn wipe(block: *mut u8, class: SizeClass) {
    if fill_mode::is_any() {
        // SAFETY: the caller's promise.
        unsafe { judge::wipe_filled(block, class) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(0, class.size() - canary::BYTES) };
    }
}
