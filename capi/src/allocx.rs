//! jemalloc's `*allocx` family: allocation with flags.
//!
//! The flags are one `int`, encoded as in jemalloc's header:
//!
//! | bits | meaning |
//! |---|---|
//! | 0 to 5 | log2 of the alignment; 0: no alignment given |
//! | 6 | `MALLOCX_ZERO` |
//! | 8 to 19 | 0: the thread's cache; 1: `MALLOCX_TCACHE_NONE`; n + 2: the explicit cache n |
//! | 20 to 31 | 0: an arena of the library's choice; n + 1: the arena n |
//!
//! `errno` is set to `ENOMEM` when there is no memory, and to `EINVAL` for an explicit cache that
//! does not exist; otherwise it is unchanged. A call with an arena but without an explicit cache
//! bypasses the caches. jemalloc 5.3 serves it from the thread's cache, so that the block may be
//! one of another arena.
use alloc_core::raw::{self, Flags};
use core::ffi::{c_int, c_void};

/// The bit of `MALLOCX_ZERO`.
const ZERO: u32 = 0x40;
/// The bits of the alignment.
const LG_ALIGN_MASK: u32 = 0x3f;
/// The position of the lowest bit of the cache.
const TCACHE_SHIFT: u32 = 8;
/// The bits of the cache, after shifting.
const TCACHE_MASK: u32 = 0xfff;
/// The value of the cache's bits that stands for no cache.
const TCACHE_NONE: u32 = 1;
/// The position of the lowest bit of the arena.
const ARENA_SHIFT: u32 = 20;

/// The alignment in the flags; 1 when none is given.
const fn alignment(flags: c_int) -> usize {
    1 << (flags.cast_unsigned() & LG_ALIGN_MASK)
}

/// Converts the flags to the core's form.
const fn decode(flags: c_int) -> Flags {
    let bits = flags.cast_unsigned();
    let mut decoded = Flags::NONE.align(alignment(flags));
    if bits & ZERO != 0 {
        decoded = decoded.zeroed();
    }
    let arena = bits >> ARENA_SHIFT;
    if arena != 0 {
        decoded = decoded.arena(arena - 1);
    }
    match (bits >> TCACHE_SHIFT) & TCACHE_MASK {
        0 => {}
        TCACHE_NONE => decoded = decoded.uncached(),
        tcache => decoded = decoded.tcache(tcache - 2),
    }
    decoded
}

/// `mallocx(3)`: allocates at least `size` bytes. With `MALLOCX_ZERO` all usable bytes are zero. A
/// size of 0, which is undefined in jemalloc, gives a smallest block.
///
/// Errors: NULL when there is no memory, or when the arena or the cache does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn mallocx(size: usize, flags: c_int) -> *mut c_void {
    let block =
        if flags == 0 { raw::malloc(size.max(1)) } else { raw::allocate(size, decode(flags)) };
    block.cast()
}

/// `rallocx(3)`: resizes a block and may move it. With `MALLOCX_ZERO`, all bytes behind the old
/// usable size are zero. NULL allocates.
///
/// Errors: NULL; the old block is unchanged.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rallocx(ptr: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    if ptr.is_null() {
        return mallocx(size, flags);
    }
    // SAFETY: the caller upholds the contract; ptr is not null.
    let block = unsafe { raw::reallocate(ptr.cast(), size, decode(flags)) };
    block.cast()
}

/// `xallocx(3)`: resizes in place to at least `size` bytes, if possible to `size + extra`. Returns
/// the size of the block afterwards, which is smaller than `size` when it could not grow.
///
/// # Safety
/// `ptr` must be a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn xallocx(
    ptr: *mut c_void,
    size: usize,
    extra: usize,
    flags: c_int,
) -> usize {
    if size > alloc_core::MAX_SIZE {
        // SAFETY: the caller upholds the contract.
        return unsafe { sallocx(ptr, flags) };
    }
    let extra = extra.min(alloc_core::MAX_SIZE - size);
    // SAFETY: the caller upholds the contract.
    unsafe { raw::resize_in_place(ptr.cast(), size, extra, decode(flags)) }
}

/// `sallocx(3)`: returns the real size of the block; 0 for NULL.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sallocx(ptr: *const c_void, _flags: c_int) -> usize {
    // SAFETY: the caller upholds the contract.
    unsafe { crate::standard::malloc_usable_size(ptr.cast_mut()) }
}

/// `dallocx(3)`: frees the block. NULL is allowed.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dallocx(ptr: *mut c_void, flags: c_int) {
    if flags == 0 || ptr.is_null() {
        // SAFETY: the caller upholds the contract.
        unsafe { raw::free(ptr.cast()) };
    } else {
        // SAFETY: the caller upholds the contract; ptr is not null.
        unsafe { raw::deallocate(ptr.cast(), decode(flags)) };
    }
}

/// `sdallocx(3)`: as [`dallocx`], for a block of known size: anything from the requested size to
/// the size that `nallocx` or `sallocx` returns. A requested alignment must be in the flags again.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library of that size and alignment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdallocx(ptr: *mut c_void, size: usize, flags: c_int) {
    if ptr.is_null() {
        return;
    }
    if flags == 0 {
        // SAFETY: the caller upholds the contract; ptr is not null.
        unsafe { raw::free_roomy(ptr.cast(), size, 1) };
    } else {
        // SAFETY: the caller upholds the contract; ptr is not null.
        unsafe { raw::deallocate_sized(ptr.cast(), size, decode(flags)) };
    }
}

/// `nallocx(3)`: returns the real size that `mallocx` with the same arguments would give; 0 when
/// that is beyond the largest size or alignment.
#[unsafe(no_mangle)]
pub extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    raw::good_size(size, alignment(flags))
}
