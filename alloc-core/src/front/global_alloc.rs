//! The Rust door: `#[global_allocator]`.

use super::guarded::{self, layouts};
use super::{raw, slow};
use crate::ground::options;
use crate::ground::size_class::{MAX_CACHED, SizeClass, size_for_align};
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

/// The class that serves a layout, if a slab does. A constant for a constant layout.
#[inline(always)]
const fn class_of(size: usize, align: usize) -> Option<SizeClass> {
    match size_for_align(size, align) {
        Some(rounded) if rounded <= MAX_CACHED => Some(SizeClass::of(rounded)),
        _ => None,
    }
}

// SAFETY: blocks are as large and as aligned as the layout says, live until they are deallocated,
// and no function unwinds.
unsafe impl GlobalAlloc for Lumalloc {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match size_for_align(layout.size(), layout.align()) {
            Some(rounded) if rounded <= MAX_CACHED => {
                raw::alloc_rounded(rounded, layout.size(), layout.align())
            }
            // Rust never asks how much more there is: whole pages will do.
            _ => slow::malloc_pages(layout.size(), layout.align(), false),
        }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise: `ptr` was made for this layout.
        unsafe { raw::free_layout(ptr, layout.size(), layout.align()) };
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match size_for_align(layout.size(), layout.align()) {
            Some(rounded) if rounded <= MAX_CACHED => {
                let block = raw::alloc_rounded(rounded, layout.size(), layout.align());
                raw::zeroed(block, layout.size())
            }
            _ => slow::malloc_pages(layout.size(), layout.align(), true),
        }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(old) = class_of(layout.size(), layout.align()) else {
            layouts::come();
            // SAFETY: the caller's promise.
            return unsafe { raw::realloc_aligned(ptr, new_size, layout.align()) };
        };
        if options::current().is_watching() || guarded::is_on() {
            // Blocks may have canaries or be samples: what fits where is not for constants to say.
            // SAFETY: the caller's promise.
            return unsafe { raw::realloc_aligned(ptr, new_size, layout.align()) };
        }
        if class_of(new_size, layout.align()) == Some(old) {
            return ptr;
        }
        let new = raw::malloc_aligned(new_size, layout.align());
        if !new.is_null() {
            // SAFETY: two different blocks, at least this long.
            unsafe { new.copy_from_nonoverlapping(ptr, layout.size().min(new_size)) };
            // SAFETY: the caller's promise; `old` is the block's class.
            unsafe { raw::free_layout(ptr, old.size(), 1) };
        }
        new
    }
}
