//! Junk and zero fill (`opt.junk`, `opt.zero`, and what the program says at run time). Source:
//! jemalloc(3).
//!
//! All usable bytes are filled, whatever was asked for. What a caller wants zeroed (calloc,
//! `MALLOCX_ZERO`) is not filled with junk to any effect, and `zero` wins over `junk:alloc`. Each
//! byte is filled once, when it is handed out: a realloc fills what it adds.

use crate::back::map::extent::Extent;
use crate::back::runs::contents::JUNK_FREED as FREED;
use crate::ground::fill_mode;

/// What allocated bytes read.
const ALLOCATED: u8 = 0xa5;

/// Fills a small block that is handed out.
///
/// # Safety
/// `usable` bytes at `block` are the caller's to write.
pub(crate) unsafe fn allocated(block: *mut u8, usable: usize) {
    let fill = fill_mode::current();
    if fill.zero {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(0, usable) };
    } else if fill.junk_allocated {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(ALLOCATED, usable) };
    }
}

/// Fills a small block that has come back.
///
/// # Safety
/// `usable` bytes at `block` are the caller's to write.
pub(crate) unsafe fn freed(block: *mut u8, usable: usize) {
    if fill_mode::current().junk_freed {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(FREED, usable) };
    }
}

/// Fills a large block that is handed out, or grown, with junk from `from` bytes on. (The zeroes of
/// `opt.zero` are written where the known-zero pages are known.)
pub(crate) fn large_allocated(extent: &'static Extent, from: usize) {
    let fill = fill_mode::current();
    if fill.junk_allocated && !fill.zero && from < extent.bytes() {
        crate::back::runs::contents::fill(extent, from, ALLOCATED);
    }
}
