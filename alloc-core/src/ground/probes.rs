//! Static probes (USDT), which tracers attach to: bpftrace, SystemTap, perf, gdb. Each is an
//! instruction that does nothing, and a note in the program that tells where it is and where its
//! arguments are.
//!
//! `lumalloc:alloc` and `lumalloc:free` are in the functions for C programs. A
//! `#[global_allocator]` is inlined everywhere, where an instruction more is beyond the budget of
//! the fast paths. It has these two with the feature `probes` only.

/// A C program gets a block for a request of `size` bytes. Null: there is no memory.
#[inline(always)]
pub(crate) fn allocated(block: *mut u8, size: usize) {
    probe::probe!(lumalloc, alloc, block, size);
}

/// A C program frees a block, or null.
#[inline(always)]
pub(crate) fn freed(block: *mut u8) {
    probe::probe!(lumalloc, free, block);
}

/// A Rust program gets a block, as [`allocated`].
#[inline(always)]
pub(crate) fn allocated_by_layout(block: *mut u8, size: usize) {
    if cfg!(feature = "probes") {
        allocated(block, size);
    }
}

/// A Rust program frees a block.
#[inline(always)]
pub(crate) fn freed_by_layout(block: *mut u8) {
    if cfg!(feature = "probes") {
        freed(block);
    }
}

/// The heap profiler takes a sample.
pub(crate) fn sampled(address: usize, requested: usize, usable: usize) {
    probe::probe!(lumalloc, sample, address, requested, usable);
}

/// Unused pages are given back to the system.
pub(crate) fn purged(address: usize, bytes: usize) {
    probe::probe!(lumalloc, purge, address, bytes);
}

/// An arena is made, automatically or by the program.
pub(crate) fn arena_made(index: u32, is_created: bool) {
    probe::probe!(lumalloc, arena_made, index, is_created);
}
