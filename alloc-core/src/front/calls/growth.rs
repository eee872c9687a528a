//! Blocks that grow step by step: C's `realloc` leaves room in them.
//!
//! A block that grows into the class next to its own is given the class after that. So a doubling
//! takes two moves, not four. A block may therefore be of the class of its size or of the next
//! class, and a free by size has to look, as `free_sized` and `sdallocx` do. Rust's `dealloc` and
//! C++'s sized `delete` use the size alone, because their blocks never come from here.

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

/// The distance from one bin to the next, in units of [`OFFSET_UNIT`].
const NEXT: usize = BIN_BYTES / OFFSET_UNIT;
/// Blocks of up to this many bytes get no room, because the next class is far enough away.
const NO_ROOM: usize = 64;

/// Returns whether a block of the class at `units` may serve a size whose class is at `asked`: the
/// block's own class, or the class before it.
#[inline(always)]
pub(super) fn serves(units: usize, asked: usize) -> bool {
    units.wrapping_sub(asked) <= NEXT
}

/// Returns whether a block may stay in place as a block of `size` bytes. `size` is not 0. Returns
/// `false` for null.
///
/// # Safety
/// `ptr` must be null or a block of this allocator.
#[inline(always)]
#[must_use]
pub unsafe fn stays(ptr: *mut u8, size: usize) -> bool {
    size.wrapping_sub(1) < MAX_CACHED
        && class_map::bin_units(ptr).is_some_and(|units| serves(units, offset_of(size)))
        && tls::current().kind() == Kind::Real
}

/// As [`realloc`](super::realloc::realloc), but for a block that does not stay ([`stays`]), and
/// leaves room in the new block. If the returned block is freed by its size, it must be freed by
/// [`free_roomy`].
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

/// Returns the size to allocate when a block of class `old` is to hold `size` bytes.
#[inline(always)]
fn with_room(old: SizeClass, size: usize) -> usize {
    let next = old.bin() + 1;
    if size > NO_ROOM && next < CLASSES && offset_of(size) == next * NEXT {
        SizeClass::from_bin(next + 1).map_or(size, SizeClass::size)
    } else {
        size
    }
}

/// As [`free_sized_aligned`](super::free::free_sized_aligned), but for a block in which
/// [`realloc_roomy`] may have left room.
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
