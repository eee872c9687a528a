//! malloc and free of the hardened tier where it is the only mode, straight from the façade to the
//! real bin and back.
//!
//! What differs by class is in the façade's own bin, in a cache line that the fast path has just
//! loaded: the room before the canary, which is 0 in every other cache. Blocks that are damaged or
//! not in the class map take the way of all modes, which finds out what is wrong.

use super::small;
use crate::back::map::class_map;
use crate::front::bins::cache_bin::CacheBin;
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::bins::tls;
use crate::front::cache::facade::Facade;
use crate::front::modes::hardened::canary::{self, BYTES, ZEROED};
use crate::ground::checked::at;
use crate::ground::size_class::{MAX_CACHED, OFFSET_OF_SIZE, OFFSET_UNIT};
use crate::ground::units::PAGE;

/// Returns the offset of the bin that serves a request with its canary, in units of
/// [`OFFSET_UNIT`]. The request is at most [`MAX_CACHED`], rounded to its alignment. If no slab
/// serves it, the trap's offset is returned.
#[inline(always)]
fn units_of(rounded: usize) -> usize {
    // SAFETY: the table goes 8 bytes further than MAX_CACHED.
    usize::from(*unsafe { at(&OFFSET_OF_SIZE, (rounded + BYTES + 7) >> 3) })
}

/// Returns the bin of a cache at an offset in units.
#[inline(always)]
fn bin(cache: &'static ThreadCache, units: usize) -> &'static CacheBin {
    cache.bin_at(units * OFFSET_UNIT)
}

/// Allocates a sealed block of at most [`MAX_CACHED`] bytes, at a multiple of `align`. Returns null
/// if the cache is no such façade, its real bin misses, or a canary has no room.
#[inline(always)]
pub(super) fn malloc(cache: &'static ThreadCache, size: usize, align: usize) -> *mut u8 {
    debug_assert!(size <= MAX_CACHED);
    if align <= 16 {
        // All classes with room are multiples of 16. A request of 0 bytes gets the first class,
        // which has no room.
        return take(cache, units_of(size));
    }
    match canary::room(size, align) {
        Some(room) if room <= MAX_CACHED => take(cache, units_of(room - BYTES)),
        _ => core::ptr::null_mut(),
    }
}

#[inline(always)]
fn take(cache: &'static ThreadCache, units: usize) -> *mut u8 {
    let room = bin(cache, units).room();
    if room == 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: only bins of façades have a room.
    let facade = unsafe { Facade::of_mode(cache) };
    let block = facade.behind().pop(units * OFFSET_UNIT);
    if !block.is_null() {
        // SAFETY: the first word of a free block, just popped. Blocks with a room are longer.
        if unsafe { block.cast::<u64>().read() } != 0 {
            canary::report_written(block);
        }
        let seal = facade.seal_of(block);
        // SAFETY: the last word of a free block, just popped.
        unsafe { block.wrapping_add(room).cast::<u64>().write(seal) };
    }
    block
}

/// Checks a block's seal. Returns the façade, the block's room, and the seal behind the room, or
/// `None` if the block needs a closer check.
///
/// # Safety
/// As [`free`].
#[inline(always)]
unsafe fn sealed(
    cache: &'static ThreadCache,
    block: *mut u8,
    units: usize,
) -> Option<(&'static Facade, usize, u64)> {
    let room = bin(cache, units).room();
    if room == 0 {
        return None;
    }
    // SAFETY: only bins of façades have a room.
    let facade = unsafe { Facade::of_mode(cache) };
    let word = block.wrapping_add(room).cast::<u64>();
    // If the address is between blocks, its word may lie behind the slab.
    if word as usize % PAGE < room && class_map::bin_units(word.cast()) != Some(units) {
        return None;
    }
    let seal = facade.seal_of(block);
    // SAFETY: in the same slab. Only an address between blocks is not aligned.
    let found = unsafe { word.read_unaligned() };
    if found == seal { Some((facade, room, seal)) } else { None }
}

/// Frees a block whose bin stands at `units` by the class map. Returns `false`, and does nothing,
/// if the block needs a closer check.
///
/// # Safety
/// The caller must own the block, or the address is another one in this page of a slab (which is
/// noticed). `units` must be what [`class_map::bin_units`] returns for it, or 0.
#[inline(always)]
pub(super) unsafe fn free(cache: &'static ThreadCache, block: *mut u8, units: usize) -> bool {
    // SAFETY: the caller's promise.
    let Some((facade, room, seal)) = (unsafe { sealed(cache, block, units) }) else {
        return false;
    };
    let word = block.wrapping_add(room).cast::<u64>();
    if room > ZEROED - BYTES {
        // SAFETY: the seal is intact, so this is a block of the caller.
        unsafe { word.write(!seal) };
        // SAFETY: as above; a longer block.
        unsafe { canary::zero_head(block) };
        let bin = bin(facade.behind(), units);
        if bin.push(block) {
            facade.bury(bin);
        } else {
            small::push_missed(block);
        }
        return true;
    }
    let waited = facade.exchange(units, block);
    let is_missed = waited.units != 0 && !bin(facade.behind(), waited.units).push(waited.block);
    if is_missed {
        // SAFETY: as above.
        unsafe { wipe_and_miss(block, waited.block, room, !seal) };
        return true;
    }
    // The wipe is last, because the processor cannot predict the size and does the rest meanwhile.
    // SAFETY: as above.
    unsafe { facade.wipe(block, units, room, !seal) };
    true
}

/// The end of [`free`], if the real bin has no room for the block that left the quarantine.
///
/// # Safety
/// The caller must own `block`. The other arguments must be what [`free`] found for it.
#[cold]
#[inline(never)]
unsafe fn wipe_and_miss(block: *mut u8, waited: *mut u8, room: usize, broken: u64) {
    // SAFETY: the caller's promise: a block of the caller with this room.
    unsafe { block.write_bytes(0, room) };
    // SAFETY: its last word.
    unsafe { block.wrapping_add(room).cast::<u64>().write(broken) };
    small::push_missed(waited);
}

/// As [`free`], but the caller knows the size. Returns `false` also if the class map gives another
/// class.
///
/// # Safety
/// As [`free`].
#[inline(always)]
pub(super) unsafe fn free_sized(
    cache: &'static ThreadCache,
    block: *mut u8,
    size: usize,
    align: usize,
) -> bool {
    let Some(units) = class_map::bin_units(block) else { return false };
    if size <= MAX_CACHED - BYTES && align <= 16 {
        // All classes with room are multiples of 16. A request of 0 bytes gets the first class.
        // SAFETY: the caller's promise.
        return units_of(size) == units && unsafe { free(cache, block, units) };
    }
    match canary::room(size, align) {
        // SAFETY: the caller's promise.
        Some(room) if room <= MAX_CACHED && units_of(room - BYTES) == units => unsafe {
            free(cache, block, units)
        },
        _ => false,
    }
}

/// Checks a block's seal. Returns its bin's offset in units, and its room, which is its usable
/// size, or `None` if the block needs a closer check.
///
/// # Safety
/// As [`free`].
#[inline]
pub(crate) unsafe fn look(block: *mut u8) -> Option<(usize, usize)> {
    let units = class_map::bin_units(block)?;
    // SAFETY: the caller's promise.
    let (_, room, _) = unsafe { sealed(tls::current(), block, units) }?;
    Some((units, room))
}

/// Returns the offset of the bin that serves a request of 1 to `MAX_CACHED - BYTES` bytes, and
/// `None` for other sizes.
#[inline]
pub(crate) fn units_for(size: usize) -> Option<usize> {
    ((1..=MAX_CACHED - BYTES).contains(&size)).then(|| units_of(size))
}
