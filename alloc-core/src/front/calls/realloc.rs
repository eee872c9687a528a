//! realloc: changes the size of a block, in place or by a move.

use super::free::free;
use super::malloc::{malloc, malloc_aligned, offset_of};
use super::query::usable_size;
use crate::back::map::{class_map, page_map};
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::life::background;
use crate::front::miss::recorded::{self, Moving};
use crate::front::miss::{diverted, give, large_blocks, sampled, sealed};
use crate::front::modes::block_size;
use crate::front::modes::{judge, watch};
use crate::ground::fill_mode;
use crate::ground::intervals;
use crate::ground::operator::Operator;
use crate::ground::probes;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align};
use crate::middle::arenas::large;
use crate::middle::slabs::slab::Slab;
use crate::profile::hooks;

/// Changes the size of a block, in place or by a move. The contents are kept up to the lesser size.
/// Returns null if there is no memory; the block is then unchanged.
///
/// # Safety
/// `ptr` must be a block of this allocator, and must not be used after success.
#[inline(always)]
#[must_use]
pub unsafe fn realloc(ptr: *mut u8, size: usize) -> *mut u8 {
    // The bin of a size of 0 is the trap, and so is that of a large block.
    if size.wrapping_sub(1) < MAX_CACHED
        && class_map::bin_units(ptr) == Some(offset_of(size))
        && tls::current().kind() == Kind::Real
    {
        return ptr;
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_by_move(ptr, size) }
}

/// The rest of [`realloc`], for blocks that do not stay in their class.
///
/// # Safety
/// As [`realloc`].
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
unsafe fn realloc_by_move(ptr: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    if let Some(new) = unsafe { realloc_small(ptr, size) } {
        return new;
    }
    let (stays, room) = (|units| units == offset_of(size), |_, size| size);
    if tls::current().cells().is_some()
        // SAFETY: the caller's promise.
        && let Some(new) = unsafe { realloc_counted(ptr, size, stays, room) }
    {
        return new;
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_aligned(ptr, size, 1) }
}

/// Moves a small block to another small class, if no mode has to see it. Returns `None` if nothing
/// was done.
///
/// # Safety
/// As [`realloc`].
#[inline(always)]
unsafe fn realloc_small(ptr: *mut u8, size: usize) -> Option<*mut u8> {
    let class = SizeClass::from_bin(class_map::bin_offset(ptr)? / BIN_BYTES)?;
    if size > MAX_CACHED || tls::current().kind() != Kind::Real {
        return None;
    }
    // SAFETY: the caller's promise; no mode is in force, and the class is that of the class map.
    Some(unsafe { move_small(ptr, class, size, size) })
}

/// Moves a block of class `class` to a new block for `room` bytes, at most [`MAX_CACHED`], and
/// copies at most `size` bytes. Returns null if there is no memory; the block is then unchanged.
///
/// # Safety
/// As [`realloc`]. The block must be of that class, and no mode may have to see it.
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
        probes::freed(ptr);
        if !tls::current().bin(class.bin()).push(ptr) {
            // SAFETY: the caller's promise.
            unsafe { give::unknown(ptr, Operator::Unknown) };
        }
    }
    new
}

/// [`realloc`] behind a façade that does no more than count. `stays` is asked with the offset of
/// the block's bin whether the block stays in place, and `room` with its class and the size for
/// how many bytes a new block is to have room. Returns `None`, and does nothing, if the old or new
/// block is not small.
///
/// # Safety
/// As [`realloc`]. The thread's cache must have cells.
#[cold]
#[inline(never)]
pub(super) unsafe fn realloc_counted(
    ptr: *mut u8,
    size: usize,
    stays: impl Fn(usize) -> bool,
    room: impl Fn(SizeClass, usize) -> usize,
) -> Option<*mut u8> {
    let units = class_map::bin_units(ptr)?;
    let class = SizeClass::from_bin(units / (BIN_BYTES / OFFSET_UNIT))?;
    if size.wrapping_sub(1) >= MAX_CACHED {
        return None;
    }
    if stays(units) {
        return Some(ptr);
    }
    let (new, kept) = (malloc(room(class, size)), class.size().min(size));
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, kept) };
        // SAFETY: the caller's promise.
        unsafe { free(ptr) };
    }
    Some(new)
}

/// As [`realloc`], but for a block that was asked for with an alignment, which the block keeps.
///
/// # Safety
/// As [`realloc`]. The block must be at a multiple of `align`.
#[must_use]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe fn realloc_aligned(ptr: *mut u8, size: usize, align: usize) -> *mut u8 {
    if let Some(new) = diverted::resize(ptr, size, align) {
        return new;
    }
    // All classes of the hardened tier are multiples of 16. A guarded sample may be of another.
    if (align <= 8 || align == 16 && size >= 16)
        // SAFETY: the caller's promise.
        && let Some(new) = unsafe { realloc_sealed(ptr, size) }
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
    let new = match size_for_align(size, align) {
        Some(rounded) if rounded > MAX_CACHED && size > old => {
            large_blocks::malloc_grown(size, align)
        }
        _ => malloc_aligned(size, align),
    };
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, old.min(size)) };
        // SAFETY: the caller's promise.
        unsafe { free(ptr) };
    }
    new
}

/// Returns whether a block of `old` usable bytes can serve `size` bytes in place. A large block is
/// resized if necessary.
///
/// # Safety
/// `ptr` must be a block of this allocator with that usable size.
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
    let Some(room) = block_size::room(size, align) else { return false };
    let entry = page_map::lookup(ptr as usize);
    if let Some(slab) = Slab::of(entry) {
        let fits = room <= MAX_CACHED && SizeClass::of(room) == slab.class();
        if fits {
            sampled::small_resized(ptr, size, slab);
            // SAFETY: a block of the slab, which the caller owns.
            unsafe { judge::resized(slab, ptr, old, size, zero) };
            recorded::resized(ptr, size);
        }
        return fits;
    }
    let Some(extent) = entry.extent().filter(|_| room > MAX_CACHED) else { return false };
    // SAFETY: a large block, which the caller owns.
    unsafe { judge::check_large(extent) };
    let (zero, before) = (zero || fill_mode::current().zero, extent.bytes());
    if !large::resize(extent, size, zero) {
        return false;
    }
    if extent.bytes() != before {
        current::count_given(extent.bytes());
        current::count_freed(before);
    }
    sampled::large_resized(extent, before, size);
    extent.note.set_operator(Operator::Unknown);
    if watch::is_on() {
        // SAFETY: as above.
        unsafe { judge::large_resized(extent, before, old, size, zero) };
        recorded::resized(ptr, size);
    }
    if extent.bytes() != before {
        intervals::count(extent.bytes());
        background::tick_outside();
    }
    true
}

/// Makes a large block longer by moving its memory elsewhere. The added bytes read zero, or with
/// `zero` false junk if the options say so. Returns `None`, and changes nothing, if the block has
/// to be copied.
///
/// # Safety
/// `ptr` must be a block of this allocator, and must not be used after success.
pub(crate) unsafe fn lengthened(
    ptr: *mut u8,
    size: usize,
    align: usize,
    zero: bool,
) -> Option<*mut u8> {
    let entry = page_map::lookup(ptr as usize);
    // A hook for frees is told before the memory goes.
    if size <= MAX_CACHED || Slab::of(entry).is_some() || hooks::FREED.is_set() {
        return None;
    }
    let extent = entry.extent()?;
    // SAFETY: a large block, which the caller owns.
    unsafe { judge::check_large(extent) };
    let before = extent.bytes();
    let old = block_size::usable_of_large(extent);
    let moving = Moving::begin(ptr);
    let sample = sampled::move_begins(ptr as usize);
    let longer = large::lengthen_by_move(extent, size, align);
    sampled::move_ends(sample, longer.is_some());
    let longer = longer?;
    longer.note.set_operator(Operator::Unknown);
    probes::freed(ptr);
    probes::allocated(longer.base_ptr(), size);
    current::count_given(longer.bytes());
    current::count_freed(before);
    sampled::large(longer, size);
    if watch::is_on() {
        let zero = zero || fill_mode::current().zero;
        // SAFETY: the caller's block, as long as this.
        unsafe { judge::large_resized(longer, before, old, size, zero) };
    }
    if let Some(moving) = moving {
        moving.end(longer.base_ptr(), size);
    }
    background::tick_outside();
    intervals::count(longer.bytes());
    Some(longer.base_ptr())
}

/// [`realloc`] in the hardened tier, in place or by a move to a small block. Returns `None`, and
/// does nothing, if the block needs a closer check, or if the old or new block is large.
///
/// # Safety
/// As [`realloc`].
#[inline]
unsafe fn realloc_sealed(ptr: *mut u8, size: usize) -> Option<*mut u8> {
    // SAFETY: the caller's promise.
    let sealed = unsafe { sealed::look(ptr) }?;
    if sealed::units_for(size)? == sealed.units() {
        // SAFETY: the caller's block, whose class serves the size.
        unsafe { sealed.resize(ptr, size) };
        return Some(ptr);
    }
    let new = malloc(size);
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, sealed.size().min(size)) };
        // SAFETY: the caller's promise.
        unsafe { free(ptr) };
    }
    Some(new)
}
