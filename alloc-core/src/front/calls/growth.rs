//! Blocks that grow step by step: C's `realloc` leaves room in them.
//!
//! A block that grows into the class next to its own is given the class after that. So a doubling
//! takes two moves, not four. A block may therefore be of the class of its size or of the next
//! class, and a free by size has to look, as `free_sized` and `sdallocx` do. Rust's `dealloc` and
//! C++'s sized `delete` use the size alone, because their blocks never come from here.

use super::malloc::offset_of;
use super::realloc::{move_small, realloc_aligned, realloc_counted};
use crate::back::map::class_map;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::miss::{give, recorded, sampled};
use crate::front::supply::layouts;
use crate::ground::probes;
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

/// As [`realloc`](super::realloc::realloc), but for a block of which [`stays`] said no, and leaves
/// room in a new block. If the returned block is freed by its size, it must be freed by
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
    let stays = |units| serves(units, offset_of(size));
    if tls::current().cells().is_some()
        // SAFETY: the caller's promise.
        && let Some(new) = unsafe { realloc_counted(ptr, size, stays, with_room) }
    {
        return new;
    }
    let room = sampled_room(ptr, size);
    // SAFETY: the caller's promise.
    let new = unsafe { realloc_aligned(ptr, room.unwrap_or(size), 1) };
    if room.is_some() && !new.is_null() {
        sampled::small_requested(new, size);
    }
    new
}

/// Returns the size that [`realloc_roomy`] would have asked for, were a block no sample. `None`:
/// the block is none, or gets no room.
#[cold]
#[inline(never)]
fn sampled_room(block: *mut u8, size: usize) -> Option<usize> {
    // What records each request is not told of the room.
    if size.wrapping_sub(1) >= MAX_CACHED || recorded::is_on() {
        return None;
    }
    let old = sampled::growing_class(block)?;
    let stays = serves(old.bin() * NEXT, offset_of(size));
    let room = if stays { old.size() } else { with_room(old, size) };
    (room != size).then_some(room)
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
    probes::freed(ptr);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::calls::free::free;
    use crate::front::calls::malloc::malloc;
    use crate::front::calls::query::usable_size;

    #[test]
    fn a_block_serves_its_class_and_the_one_before() {
        let of = |size| offset_of(size);
        assert!(serves(of(320), of(320)) && serves(of(320), of(256)));
        assert!(!serves(of(320), of(224)) && !serves(of(320), of(384)), "too small, too large");
        assert!(!serves(0, of(8)), "the trap bin");
    }

    #[test]
    fn room_is_left_for_what_grows_into_the_next_class() {
        let room = |old, size| with_room(SizeClass::of(old), size);
        // The classes are 256, 320, 384, 448 and 512.
        assert_eq!((room(256, 257), room(256, 320)), (384, 384));
        assert_eq!((room(256, 321), room(256, 200)), (321, 200), "not the next class");
        assert_eq!(room(48, 64), 64, "short blocks get none");
        let last = SizeClass::all().nth(CLASSES - 2).map_or(0, SizeClass::size);
        assert_eq!(room(last, MAX_CACHED), MAX_CACHED, "there is no class after the last");
    }

    #[test]
    fn a_growing_block_moves_once_for_two_classes() {
        let grown = || {
            let first = malloc(256);
            // SAFETY: a block of this thread.
            let grown = unsafe { realloc_roomy(first, 300) };
            // SAFETY: the block that the call returned.
            let usable = unsafe { usable_size(grown) };
            // SAFETY: as above.
            let may_stay = [320, 380, 400].map(|size| unsafe { stays(grown, size) });
            let is_known = [first, grown].map(|block| class_map::bin_units(block).is_some());
            // SAFETY: as above; it is freed once.
            unsafe { free(grown) };
            (usable, may_stay, is_known)
        };
        // No room is left while another test has the cache, as an idle one, or records what all
        // threads do.
        let mut seen = grown();
        for _ in 0..10_000 {
            // An emulator may hand out addresses that the class map does not cover.
            if matches!(seen, (384, [true, true, false], _) | (_, _, [false, _] | [_, false])) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
            seen = grown();
        }
        panic!("{seen:?}");
    }

    #[test]
    fn null_does_not_stay() {
        // SAFETY: null is allowed.
        assert!(!unsafe { stays(core::ptr::null_mut(), 8) });
    }
}
