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
use crate::front::modes::block_size::Given;
use crate::front::modes::hardened::canary::{self, BYTES};
use crate::front::modes::hardened::quarantine::LONGEST;
use crate::front::modes::hardened::slack;
use crate::ground::checked::at;
use crate::ground::operator::Operator;
use crate::ground::seen::address_seen;
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

/// All classes with room are multiples of this.
pub(super) const ALIGN: usize = 16;

/// Allocates a sealed block of at most [`MAX_CACHED`] bytes, at a multiple of [`ALIGN`]. Returns
/// null if the cache is no such façade, its real bin misses, or a canary has no room.
#[inline(always)]
pub(super) fn malloc(cache: &'static ThreadCache, size: usize, operator: Operator) -> *mut u8 {
    debug_assert!(size <= MAX_CACHED);
    // A request of 0 bytes gets the first class, which has no room.
    take(cache, units_of(size), size, operator)
}

/// As [`malloc`], at a multiple of `align`, and by an unknown operator.
#[inline]
pub(super) fn malloc_aligned(cache: &'static ThreadCache, size: usize, align: usize) -> *mut u8 {
    match canary::room(size, align) {
        Some(room) if room <= MAX_CACHED => {
            take(cache, units_of(room - BYTES), size.max(1), Operator::Unknown)
        }
        _ => core::ptr::null_mut(),
    }
}

#[inline(always)]
fn take(cache: &'static ThreadCache, units: usize, size: usize, operator: Operator) -> *mut u8 {
    let room = bin(cache, units).room();
    if room == 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: only bins of façades have a room.
    let facade = unsafe { Facade::of_mode(cache) };
    let block = facade.behind().pop(units * OFFSET_UNIT);
    if block.is_null() {
        return block;
    }
    // SAFETY: the first word of a free block, just popped. Blocks with a room are longer.
    if unsafe { block.cast::<u64>().read() } != 0 {
        // SAFETY: a free block, just popped, which has that room.
        return unsafe { seal_written(facade, block, room, size, operator) };
    }
    // SAFETY: as above.
    unsafe { seal(facade, block, room, size, operator) };
    block
}

/// Seals a block that serves a request of `size` bytes.
///
/// # Safety
/// `block` must be a free block that belongs to the caller, and hold `room` bytes before its last
/// word, at least `size`.
#[inline(always)]
unsafe fn seal(facade: &Facade, block: *mut u8, room: usize, size: usize, operator: Operator) {
    let (end, slack) = (block.wrapping_add(room), room - size);
    let canary = slack::canary(facade.seal_of(block), slack) ^ slack::mark(operator);
    // SAFETY: the caller's promise.
    unsafe { slack::write(end, slack, facade.filling(), canary) };
}

/// [`seal`] of a block whose first word does not read zero. Ends the process if it should. Returns
/// the block.
///
/// # Safety
/// As for [`seal`].
#[cold]
#[inline(never)]
unsafe fn seal_written(
    facade: &Facade,
    block: *mut u8,
    room: usize,
    size: usize,
    operator: Operator,
) -> *mut u8 {
    canary::report_written(block);
    // SAFETY: the caller's promise.
    unsafe { seal(facade, block, room, size, operator) };
    block
}

/// A block whose seal and slack are intact.
#[derive(Clone, Copy)]
pub(crate) struct Sealed {
    facade: &'static Facade,
    /// The offset of its bin, in units of [`OFFSET_UNIT`].
    units: usize,
    /// Its bytes before the canary.
    room: usize,
    /// The requested bytes.
    size: usize,
    /// The canary without slack.
    seal: u64,
}

impl Sealed {
    /// Returns the offset of the block's bin, in units of [`OFFSET_UNIT`].
    pub(crate) fn units(self) -> usize {
        self.units
    }

    /// Returns how many bytes were requested.
    pub(crate) fn size(self) -> usize {
        self.size
    }

    /// Lets the block serve a request of `size` bytes.
    ///
    /// # Safety
    /// `block` must be this block, the caller's, and its class must serve the size.
    #[inline]
    pub(crate) unsafe fn resize(self, block: *mut u8, size: usize) {
        let (end, slack) = (block.wrapping_add(self.room), self.room - size);
        // SAFETY: the caller's promise.
        unsafe { slack::fill_exactly(end, slack, self.facade.filling()) };
        // SAFETY: as above.
        unsafe { end.cast::<u64>().write(slack::canary(self.seal, slack)) };
    }
}

/// Checks a block's seal and slack. Returns `None` if the block needs a closer check, or is not one
/// of that operator.
///
/// # Safety
/// As [`free`].
#[inline(always)]
unsafe fn sealed(
    cache: &'static ThreadCache,
    block: *mut u8,
    units: usize,
    operator: Operator,
) -> Option<Sealed> {
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
    let slack = slack::told(seal ^ slack::mark(operator), unsafe { word.read_unaligned() });
    // SAFETY: the slack is in the block, which is longer than the word.
    if slack >= room || !unsafe { slack::is_intact(word.cast(), slack, facade.filling()) } {
        return None;
    }
    Some(Sealed { facade, units, room, size: room - slack, seal })
}

/// Frees a block whose bin stands at `units` by the class map. Returns `false`, and does nothing,
/// if the block needs a closer check, or is not one of that operator.
///
/// # Safety
/// The caller must own the block, or the address is another one in this page of a slab (which is
/// noticed). `units` must be what [`class_map::bin_units`] returns for it, or 0.
#[inline(always)]
pub(super) unsafe fn free(
    cache: &'static ThreadCache,
    block: *mut u8,
    units: usize,
    operator: Operator,
) -> bool {
    // SAFETY: the caller's promise.
    let Some(sealed) = (unsafe { sealed(cache, block, units, operator) }) else { return false };
    // SAFETY: as above. Not in a closure, which the compiler may put out of line.
    unsafe { release(sealed, block) }
}

/// Frees a block. Returns `true`.
///
/// # Safety
/// `block` must be this block, the caller's.
#[inline(always)]
unsafe fn release(sealed: Sealed, block: *mut u8) -> bool {
    let Sealed { facade, units, room, seal, .. } = sealed;
    // SAFETY: the caller's promise.
    if unsafe { is_intact_before(facade, block, room + BYTES) } {
        // SAFETY: as above.
        unsafe { give_up(facade, block, units, room, !seal) };
    } else {
        // SAFETY: as above.
        unsafe { give_up_after_look(facade, block, units, room, !seal) };
    }
    true
}

/// The end of [`release`] if the word before the block needs a closer check.
///
/// # Safety
/// As [`give_up`].
#[cold]
#[inline(never)]
unsafe fn give_up_after_look(
    facade: &'static Facade,
    block: *mut u8,
    units: usize,
    room: usize,
    broken: u64,
) {
    canary::find_and_look_before(block);
    // SAFETY: the caller's promise.
    unsafe { give_up(facade, block, units, room, broken) };
}

/// Wipes a block and puts it into quarantine, or into its bin.
///
/// # Safety
/// The caller must own `block`. The other arguments must be what [`release`] found for it.
#[inline(always)]
unsafe fn give_up(facade: &'static Facade, block: *mut u8, units: usize, room: usize, broken: u64) {
    if room > LONGEST - BYTES {
        // SAFETY: the seal is intact, so this is a block of the caller.
        return unsafe { release_long(facade, block, units, room, broken) };
    }
    let waited = facade.exchange(units, block);
    let is_missed = waited.units != 0 && !bin(facade.behind(), waited.units).push(waited.block);
    if is_missed {
        // SAFETY: as above.
        return unsafe { wipe_and_miss(block, waited.block, room, broken) };
    }
    // The wipe is last, because the processor cannot predict the size and does the rest meanwhile.
    // SAFETY: as above.
    unsafe { facade.wipe(block, units, room, broken) };
}

/// Returns whether the word before a block of `size` bytes may be the last one of a block. `false`
/// if the block begins a page, because the word may then lie outside of the slab.
///
/// # Safety
/// `block` must be a block of a slab.
#[inline(always)]
unsafe fn is_intact_before(facade: &Facade, block: *mut u8, size: usize) -> bool {
    let seal = facade.seal_of(block.wrapping_sub(size));
    // SAFETY: a word in the same page of the slab.
    let word = || unsafe { address_seen(block.wrapping_sub(BYTES).cast()) } as u64;
    !(block as usize).is_multiple_of(PAGE) && slack::may_be_last(seal, word())
}

/// The end of [`release`] for blocks that are too long for the quarantine.
///
/// # Safety
/// The caller must own `block`. The other arguments must be what [`release`] found for it.
#[inline(never)]
unsafe fn release_long(
    facade: &'static Facade,
    block: *mut u8,
    units: usize,
    room: usize,
    broken: u64,
) {
    // SAFETY: the caller's promise: a block of the caller with this room.
    unsafe { zero(block, room, broken) };
    let bin = bin(facade.behind(), units);
    if bin.push(block) {
        facade.bury(bin);
    } else {
        small::push_missed(block);
    }
}

/// The end of [`release`], if the real bin has no room for the block that left the quarantine.
///
/// # Safety
/// The caller must own `block`. The other arguments must be what [`release`] found for it.
#[cold]
#[inline(never)]
unsafe fn wipe_and_miss(block: *mut u8, waited: *mut u8, room: usize, broken: u64) {
    // SAFETY: the caller's promise: a block of the caller with this room.
    unsafe { zero(block, room, broken) };
    small::push_missed(waited);
}

/// Zeroes a block and breaks its seal.
///
/// # Safety
/// `block` must be a block of the caller that holds `room` bytes before its last word.
unsafe fn zero(block: *mut u8, room: usize, broken: u64) {
    // SAFETY: the caller's promise.
    unsafe { block.write_bytes(0, room) };
    // SAFETY: its last word.
    unsafe { block.wrapping_add(room).cast::<u64>().write(broken) };
}

/// As [`free`], but the caller knows the size. Returns `false` also if the class map gives another
/// class, or if another size was requested.
///
/// # Safety
/// As [`free`].
#[inline(always)]
pub(super) unsafe fn free_sized(
    cache: &'static ThreadCache,
    block: *mut u8,
    given: Given,
    operator: Operator,
) -> bool {
    let Some(units) = class_map::bin_units(block) else { return false };
    if !serves(units, given) {
        return false;
    }
    // SAFETY: the caller's promise.
    match unsafe { sealed(cache, block, units, operator) } {
        // SAFETY: as above.
        Some(sealed) if given.is_of(sealed.size) => unsafe { release(sealed, block) },
        _ => false,
    }
}

/// Returns whether a request of that size and alignment gets a block of the bin at `units`.
#[inline(always)]
fn serves(units: usize, Given { size, align, .. }: Given) -> bool {
    if size <= MAX_CACHED - BYTES && align <= ALIGN {
        // A request of 0 bytes gets the first class.
        return units_of(size) == units;
    }
    canary::room(size, align)
        .is_some_and(|room| room <= MAX_CACHED && units_of(room - BYTES) == units)
}

/// Checks a block's seal and slack. Returns `None` if the block needs a closer check.
///
/// # Safety
/// As [`free`].
#[inline]
pub(crate) unsafe fn look(block: *mut u8) -> Option<Sealed> {
    let units = class_map::bin_units(block)?;
    // SAFETY: the caller's promise.
    unsafe { sealed(tls::current(), block, units, Operator::Unknown) }
}

/// Returns the offset of the bin that serves a request of 1 to `MAX_CACHED - BYTES` bytes, and
/// `None` for other sizes.
#[inline]
pub(crate) fn units_for(size: usize) -> Option<usize> {
    ((1..=MAX_CACHED - BYTES).contains(&size)).then(|| units_of(size))
}
