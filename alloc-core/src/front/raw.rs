//! malloc, free and realloc as every door calls them.
//!
//! Out of memory answers null with `errno` set to ENOMEM (or death under `opt.xmalloc`); success
//! never changes `errno`, and no free does. Source: jemalloc(3), POSIX.

use super::fill;
use super::guarded::{self, layouts};
use super::hardened::calls;
use super::modes;
use super::thread_cache::{Kind, current};
use super::{missed, slow};
use crate::back::{class_map, page_map};
use crate::ground::checked::at;
use crate::ground::fatal;
use crate::ground::fill_mode;
use crate::ground::size_class::{
    BIN_BYTES, MAX_CACHED, OFFSET_OF_SIZE, OFFSET_UNIT, SizeClass, size_for_align,
};
use crate::ground::units::PAGE;
use crate::middle::large;
use crate::middle::slab::Slab;

pub use super::flags::{
    Flags, allocate, deallocate, deallocate_sized, reallocate, resize_in_place,
};
pub use super::growth::{free_roomy, realloc_roomy, stays};
pub use super::zeroed::{malloc_aligned_zeroed, malloc_zeroed};

/// Where the bin of a size begins, in units of [`OFFSET_UNIT`]; the size is at most [`MAX_CACHED`].
#[inline(always)]
pub(super) fn offset_of(size: usize) -> usize {
    // SAFETY: the table has an entry for each size up to MAX_CACHED.
    usize::from(*unsafe { at(&OFFSET_OF_SIZE, (size + 7) >> 3) })
}

/// At least `size` bytes, 16-byte aligned from 16 bytes on; 0 gives a smallest block.
///
/// ```
/// let p = lumalloc::raw::malloc(100);
/// assert!(!p.is_null());
/// // SAFETY: p came from malloc, and is freed once.
/// unsafe { lumalloc::raw::free(p) };
/// ```
#[inline(always)]
#[must_use]
pub fn malloc(size: usize) -> *mut u8 {
    if size > MAX_CACHED {
        return slow::malloc_large(size, 1, false);
    }
    malloc_rounded(size, size, 1)
}

/// A block for `size` bytes at a multiple of `align`, which [`size_for_align`] rounds to `rounded`,
/// at most [`MAX_CACHED`].
#[inline(always)]
pub(crate) fn malloc_rounded(rounded: usize, size: usize, align: usize) -> *mut u8 {
    let cache = current();
    let block = cache.bin_at(offset_of(rounded) * OFFSET_UNIT).pop();
    if !block.is_null() {
        return block;
    }
    // All classes are multiples of 8.
    if align <= 8 {
        missed::malloc_small(size, cache)
    } else {
        missed::malloc_small_aligned(size, align, cache)
    }
}

/// As [`malloc_rounded`], for a caller who will say the layout when it frees.
#[inline(always)]
pub(crate) fn alloc_rounded(rounded: usize, size: usize, align: usize) -> *mut u8 {
    let cache = current();
    let block = cache.bin_at(offset_of(rounded) * OFFSET_UNIT).pop();
    if !block.is_null() {
        return block;
    }
    if align <= 8 {
        missed::alloc_small(size, cache)
    } else {
        missed::alloc_small_aligned(size, align, cache)
    }
}

/// Zeroes the first `size` bytes, for callers who never ask for the usable size.
#[inline]
pub(crate) fn zeroed(block: *mut u8, size: usize) -> *mut u8 {
    if !block.is_null() {
        // SAFETY: a fresh block of at least `size` bytes.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// At least `size` bytes at a multiple of `align`, a power of two of any size.
#[inline(always)]
#[must_use]
pub fn malloc_aligned(size: usize, align: usize) -> *mut u8 {
    match size_for_align(size, align) {
        Some(rounded) if rounded <= MAX_CACHED => malloc_rounded(rounded, size, align),
        Some(_) => slow::malloc_large(size, align, false),
        None => slow::no_memory(size),
    }
}

/// Takes a block back. Null is nothing to do.
///
/// # Safety
/// `ptr` is null, or a block of this allocator's that is not used after. (Foreign, interior and
/// twice freed pointers end the process with a message, at once or when the block goes home.)
#[inline(always)]
pub unsafe fn free(ptr: *mut u8) {
    let Some(units) = class_map::bin_units(ptr) else {
        // SAFETY: the caller's promise.
        return unsafe { missed::free(ptr) };
    };
    let cache = current();
    if !cache.bin_at(units * OFFSET_UNIT).push(ptr) {
        // SAFETY: the caller's promise.
        unsafe { missed::free_known(ptr, units, cache) };
    }
}

/// Takes back a block whose size is known: no look-up.
///
/// # Safety
/// `ptr` is a block of this allocator's, not used after; `size` is what was asked for, or anything
/// up to its usable size.
#[inline(always)]
pub unsafe fn free_sized(ptr: *mut u8, size: usize) {
    let cache = current();
    if size < layouts::bound() && cache.bin_at(offset_of(size) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { missed::free_sized(ptr, size, 1, cache) };
}

/// As [`free_sized`], for a block that was asked for with an alignment.
///
/// # Safety
/// As [`free_sized`]; `align` is the alignment that was asked for.
#[inline(always)]
pub unsafe fn free_sized_aligned(ptr: *mut u8, size: usize, align: usize) {
    let cache = current();
    let rounded = size_for_align(size, align).unwrap_or(usize::MAX);
    if rounded < layouts::bound() && cache.bin_at(offset_of(rounded) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { missed::free_sized(ptr, size, align, cache) };
}

/// As [`free_sized_aligned`], for blocks of [`alloc_rounded`] and of layouts only: where samples
/// are taken, the bins themselves take nothing unseen.
///
/// # Safety
/// As [`free_sized_aligned`].
#[inline(always)]
pub(crate) unsafe fn free_layout(ptr: *mut u8, size: usize, align: usize) {
    let cache = current();
    let rounded = size_for_align(size, align).unwrap_or(usize::MAX);
    if rounded <= MAX_CACHED && cache.bin_at(offset_of(rounded) * OFFSET_UNIT).push(ptr) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { missed::free_sized(ptr, size, align, cache) };
}

/// Bytes that a block may hold.
///
/// # Safety
/// `ptr` is a block of this allocator's, in use. (Others end the process with a message.)
#[must_use]
pub unsafe fn usable_size(ptr: *mut u8) -> usize {
    let address = ptr as usize;
    let entry = page_map::lookup(address);
    if let Some(slab) = Slab::of(entry) {
        if slab.class().slot_at(address.wrapping_sub(slab.base())).is_some() {
            return modes::usable(slab.class());
        }
    } else if let Some(extent) = entry.extent()
        && slow::is_block(extent, address)
    {
        return extent.bytes();
    } else if let Some(size) = guarded::usable_size(address) {
        return size;
    }
    fatal::foreign_query(address)
}

/// What [`malloc_aligned`] would give for a size (`align` 1: [`malloc`]); 0 where the size or the
/// alignment is beyond 2^48, the last size class.
#[must_use]
pub fn good_size(size: usize, align: usize) -> usize {
    // Even as the very first call it knows the modes.
    slow::real_cache();
    if let Some(room) = modes::room(size, align).filter(|room| *room <= MAX_CACHED) {
        return modes::usable(SizeClass::of(room));
    }
    let Some(rounded) = size_for_align(size, align) else { return 0 };
    let usable = large::usable(if align > PAGE { size } else { rounded });
    usable.filter(|_| align <= large::LONGEST).unwrap_or(0)
}

/// Whether an address lies in a slab, or is the beginning of a large block, of this allocator's.
#[must_use]
pub fn is_ours(ptr: *const u8) -> bool {
    let entry = page_map::lookup(ptr as usize);
    Slab::of(entry).is_some()
        || entry.extent().is_some_and(|extent| slow::is_block(extent, ptr as usize))
        || guarded::usable_size(ptr as usize).is_some()
}

/// Changes the size of a block, in place or by a move; contents stay up to the lesser size. Null:
/// no memory, and the block is as it was.
///
/// # Safety
/// `ptr` is a block of this allocator's; after success it is used no more.
#[inline(always)]
#[must_use]
pub unsafe fn realloc(ptr: *mut u8, size: usize) -> *mut u8 {
    if size <= MAX_CACHED
        && class_map::bin_units(ptr) == Some(offset_of(size))
        && current().kind() == Kind::Real
    {
        return ptr;
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_by_move(ptr, size) }
}

/// As [`realloc`], where small blocks do not stay in their class.
///
/// # Safety
/// As [`realloc`].
#[inline(never)]
unsafe fn realloc_by_move(ptr: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    if let Some(new) = unsafe { realloc_small(ptr, size) } {
        return new;
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_aligned(ptr, size, 1) }
}

/// Small to another class that is small, where no mode has to see it. `None`: nothing was done.
///
/// # Safety
/// As [`realloc`].
#[inline(always)]
unsafe fn realloc_small(ptr: *mut u8, size: usize) -> Option<*mut u8> {
    let class = SizeClass::from_bin(class_map::bin_offset(ptr)? / BIN_BYTES)?;
    if size > MAX_CACHED || current().kind() != Kind::Real {
        return None;
    }
    // SAFETY: the caller's promise; no mode, and the class of the class map.
    Some(unsafe { move_small(ptr, class, size, size) })
}

/// Moves a block of a class, of which `size` bytes at most are wanted, to one for `room` bytes, at
/// most [`MAX_CACHED`]. Null: no memory, and the block is as it was.
///
/// # Safety
/// As [`realloc`]; the block is of that class, and no mode has to see it.
#[inline(always)]
pub(super) unsafe fn move_small(
    ptr: *mut u8,
    class: SizeClass,
    size: usize,
    room: usize,
) -> *mut u8 {
    let new = malloc(room);
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, class.size().min(size)) };
        if !current().bin(class.bin()).push(ptr) {
            // SAFETY: the caller's promise.
            unsafe { missed::free(ptr) };
        }
    }
    new
}

/// As [`realloc`], for a block that was asked for with an alignment, and keeps it.
///
/// # Safety
/// As [`realloc`]; the block is at a multiple of `align`.
#[must_use]
pub unsafe fn realloc_aligned(ptr: *mut u8, size: usize, align: usize) -> *mut u8 {
    // All classes of the hardened tier are multiples of 16.
    if align <= 16
        // SAFETY: the caller's promise.
        && let Some(new) = unsafe { calls::realloc(ptr, size) }
    {
        return new;
    }
    // SAFETY: the caller's promise.
    let old = unsafe { usable_size(ptr) };
    // SAFETY: the caller's promise.
    if unsafe { fits_in_place(ptr, old, size, align, false) } {
        return ptr;
    }
    // SAFETY: the caller's promise.
    if let Some(longer) = unsafe { lengthened(ptr, size, align, false) } {
        return longer;
    }
    let new = malloc_aligned(size, align);
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, old.min(size)) };
        // SAFETY: the caller's promise.
        unsafe { free(ptr) };
    }
    new
}

/// Whether a block of `old` usable bytes serves (or was made to serve) `size` bytes where it
/// stands.
///
/// # Safety
/// `ptr` is a block of this allocator's with that usable size.
pub(crate) unsafe fn fits_in_place(
    ptr: *mut u8,
    old: usize,
    size: usize,
    align: usize,
    zero: bool,
) -> bool {
    if !(ptr as usize).is_multiple_of(align) {
        return false;
    }
    let Some(room) = modes::room(size, align) else { return false };
    let entry = page_map::lookup(ptr as usize);
    if let Some(slab) = Slab::of(entry) {
        return room <= MAX_CACHED && SizeClass::of(room) == slab.class();
    }
    let zero = zero || fill_mode::current().zero;
    let resized =
        room > MAX_CACHED && entry.extent().is_some_and(|extent| large::resize(extent, size, zero));
    if let Some(extent) = entry.extent().filter(|extent| resized && extent.bytes() != old) {
        slow::count_given(extent.bytes());
        slow::count_freed(old);
    }
    if resized && !zero {
        entry.extent().into_iter().for_each(|extent| fill::large_allocated(extent, old));
    }
    resized
}

/// Makes a block longer by moving its memory elsewhere; what is added reads zero, or with `zero`
/// false junk where the options say so. `None`: copy it; nothing changed.
///
/// # Safety
/// `ptr` is a block of this allocator's; after success it is used no more.
pub(crate) unsafe fn lengthened(
    ptr: *mut u8,
    size: usize,
    align: usize,
    zero: bool,
) -> Option<*mut u8> {
    let entry = page_map::lookup(ptr as usize);
    if size <= MAX_CACHED || Slab::of(entry).is_some() {
        return None;
    }
    let extent = entry.extent()?;
    let before = extent.bytes();
    let longer = large::lengthen_by_move(extent, size, align)?;
    slow::count_given(longer.bytes());
    slow::count_freed(before);
    if !zero {
        fill::large_allocated(longer, before);
    }
    Some(longer.base_ptr())
}
