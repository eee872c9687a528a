//! The Rust interface: `#[global_allocator]`.

use super::free::free_layout;
use super::malloc::{alloc_rounded, offset_of, zeroed};
use super::realloc::realloc_aligned;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::miss::large_blocks;
use crate::front::supply::layouts;
use crate::ground::size_class::{MAX_CACHED, size_for_align};
use core::alloc::{GlobalAlloc, Layout};

/// The allocator, for Rust programs.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;
///
/// let numbers: Vec<u32> = (0..1000).collect();
/// assert!(lumalloc::raw::is_ours(numbers.as_ptr().cast()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lumalloc;

// SAFETY: blocks have at least the size and alignment of the layout and live until they are
// deallocated, and no function unwinds.
unsafe impl GlobalAlloc for Lumalloc {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match size_for_align(layout.size(), layout.align()) {
            Some(rounded) if rounded <= MAX_CACHED => {
                alloc_rounded(rounded, layout.size(), layout.align())
            }
            // Rust never asks for the usable size, so whole pages are enough.
            _ => large_blocks::malloc_pages(layout.size(), layout.align(), false),
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: `ptr` was allocated for this layout.
        unsafe { free_layout(ptr, layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match size_for_align(layout.size(), layout.align()) {
            Some(rounded) if rounded <= MAX_CACHED => {
                let block = alloc_rounded(rounded, layout.size(), layout.align());
                zeroed(block, layout.size())
            }
            _ => large_blocks::malloc_pages(layout.size(), layout.align(), true),
        }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // If blocks have canaries, or may be samples (for which the bound is 0), a layout does not
        // tell whether a block fits.
        let (old, new) = (rounded(layout.size(), layout), rounded(new_size, layout));
        if old.max(new) >= layouts::bound() || tls::current().kind() != Kind::Real {
            // SAFETY: the caller's promise.
            return unsafe { realloc_any(ptr, layout, new_size) };
        }
        if offset_of(old) == offset_of(new) {
            return ptr;
        }
        // SAFETY: the caller's promise; both are small.
        unsafe { realloc_small(ptr, layout, new_size) }
    }
}

/// Rounds a size to a layout's alignment. The result fits an `isize` by the rules of layouts.
#[inline(always)]
fn rounded(size: usize, layout: Layout) -> usize {
    let mask = layout.align().wrapping_sub(1);
    size.wrapping_add(mask) & !mask
}

/// Moves a block to another class.
///
/// # Safety
/// As [`GlobalAlloc::realloc`]. Both sizes must be small, and no mode may have to see the block.
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
unsafe fn realloc_small(ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let new = alloc_rounded(rounded(new_size, layout), new_size, layout.align());
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(ptr, layout.size().min(new_size)) };
        // SAFETY: the caller's promise.
        unsafe { free_layout(ptr, rounded(layout.size(), layout), 1) };
    }
    new
}

/// Reallocates large blocks, and blocks behind a façade.
///
/// # Safety
/// As [`GlobalAlloc::realloc`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
unsafe fn realloc_any(ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let (old, new) = (rounded(layout.size(), layout), rounded(new_size, layout));
    if old.max(new) < layouts::bound() && tls::current().cells().is_some() {
        if offset_of(old) == offset_of(new) {
            return ptr;
        }
        // SAFETY: the caller's promise; both are small.
        return unsafe { realloc_small(ptr, layout, new_size) };
    }
    layouts::come();
    // SAFETY: the caller's promise.
    unsafe { realloc_aligned(ptr, new_size, layout.align()) }
}
