//! Junk and zero fill (`opt.junk`, `opt.zero`, and settings made at run time). Source: jemalloc(3).
//!
//! All usable bytes are filled, whatever size was requested. If the caller wants zeroes (calloc,
//! `MALLOCX_ZERO`), they overwrite the junk, and `zero` wins over `junk:alloc`. Each byte is filled
//! once, when it is handed out. A realloc fills the bytes that it adds.

use crate::back::map::extent::Extent;
use crate::back::runs::contents::JUNK_FREED as FREED;
use crate::ground::fill_mode;

/// The junk in allocated bytes.
const ALLOCATED: u8 = 0xa5;

/// Fills a small block that is handed out.
///
/// # Safety
/// The caller must be allowed to write `usable` bytes at `block`.
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

/// Fills a small block that was freed.
///
/// # Safety
/// The caller must be allowed to write `usable` bytes at `block`.
pub(crate) unsafe fn freed(block: *mut u8, usable: usize) {
    if fill_mode::current().junk_freed {
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(FREED, usable) };
    }
}

/// Fills a large block that is handed out, or has grown, with junk from `from` bytes on. (The
/// zeroes of `opt.zero` are written by the code that knows which pages are zero already.)
pub(crate) fn large_allocated(extent: &'static Extent, from: usize) {
    let fill = fill_mode::current();
    if fill.junk_allocated && !fill.zero && from < extent.bytes() {
        crate::back::runs::contents::fill(extent, from, ALLOCATED);
    }
}
