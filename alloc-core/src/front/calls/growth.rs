//! Blocks that grow step by step: C's `realloc` leaves them room.
//!
//! A block that grows into the class next to its own is given the one behind that: two moves a
//! doubling, not four. So a block may be of its size's class or of the next one, and who frees it
//! by its size has to look, as `free_sized` and `sdallocx` do. Rust's `dealloc` and C++'s sized
//! `delete` go by the size alone: their blocks never come from here.

use super::malloc::offset_of;
use super::realloc::{move_small, realloc_aligned};
use crate::back::map::class_map;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::miss::give;
use crate::front::supply::layouts;
use crate::ground::size_class::{
    BIN_BYTES, CLASSES, MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align,
};

/// From one bin to the next, in units of [`OFFSET_UNIT`].
const NEXT: usize = BIN_BYTES / OFFSET_UNIT;
/// Blocks of up to so many bytes get no room: the next class is far enough away.
const NO_ROOM: usize = 64;

/// Whether a block of the class at `units` may serve a size whose class is at `asked`: its own, or
/// the one before.
#[inline(always)]
pub(super) fn serves(units: usize, asked: usize) -> bool {
    units.wrapping_sub(asked) <= NEXT
}

/// Whether a block may stay where it is, as one of `size` bytes, which are not 0. `false` for null.
///
/// # Safety
/// `ptr` is null or a block of this allocator's.
#[inline(always)]
#[must_use]
pub unsafe fn stays(ptr: *mut u8, size: usize) -> bool {
    size.wrapping_sub(1) < MAX_CACHED
        && class_map::bin_units(ptr).is_some_and(|units| serves(units, offset_of(size)))
        && tls::current().kind() == Kind::Real
}

/// As [`realloc`](super::realloc::realloc), for a block that does not stay ([`stays`]), with room
/// left. By its size what it answers is freed by [`free_roomy`] only.
///
/// # Safety
/// As [`realloc`](super::realloc::realloc).
#[inline(never)]
#[must_use]
pub unsafe fn realloc_roomy(ptr: *mut u8, size: usize) -> *mut u8 {
    if size <= MAX_CACHED
        && tls::current().kind() == Kind::Real
        && let Some(units) = class_map::bin_units(ptr)
        && let Some(old) = SizeClass::from_bin(units / NEXT)
    {
        // SAFETY: the caller's promise; the class map knows the block.
        return unsafe { move_small(ptr, old, size, with_room(old, size)) };
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_aligned(ptr, size, 1) }
}

/// What a block of a class that is to hold `size` bytes is made for.
#[inline(always)]
fn with_room(old: SizeClass, size: usize) -> usize {
    let next = old.bin() + 1;
    if size > NO_ROOM && next < CLASSES && offset_of(size) == next * NEXT {
        SizeClass::from_bin(next + 1).map_or(size, SizeClass::size)
    } else {
        size
    }
}

/// As [`free_sized_aligned`](super::free::free_sized_aligned), for a block that [`realloc_roomy`]
/// may have left room.
///
/// # Safety
/// As [`free_sized_aligned`](super::free::free_sized_aligned).
#[inline(always)]
pub unsafe fn free_roomy(ptr: *mut u8, size: usize, align: usize) {
    let cache = tls::current();
    let rounded = size_for_align(size, align).unwrap_or(usize::MAX);
    if rounded < layouts::bound()
        && let Some(units) = class_map::bin_units(ptr)
        && serves(units, offset_of(rounded))
        && cache.bin_at(units * OFFSET_UNIT).push(ptr)
    {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { give::roomy(ptr, size, align, cache) };
}
