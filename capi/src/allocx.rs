//! jemalloc's `*allocx` family: allocation with flags.
//!
//! The flags are one `int`, encoded as in jemalloc's header:
//!
//! | bits | meaning |
//! |---|---|
//! | 0 to 5 | log2 of the alignment; 0: none asked for |
//! | 6 | `MALLOCX_ZERO` |
//! | 8 to 19 | 0: the thread's cache; 1: `MALLOCX_TCACHE_NONE`; n + 2: the explicit cache n |
//! | 20 to 31 | 0: an arena of the library's choice; n + 1: the arena n |
//!
//! `errno` is `ENOMEM` when there is no memory, `EINVAL` for an explicit cache that does not exist,
//! else untouched. An arena without an explicit cache goes past the caches, as in jemalloc.
use alloc_core::raw::{self, Flags};
use core::ffi::{c_int, c_void};

/// Bit of `MALLOCX_ZERO`.
const ZERO: u32 = 0x40;
/// Bits of the alignment.
const LG_ALIGN_MASK: u32 = 0x3f;
/// Where the cache's bits begin.
const TCACHE_SHIFT: u32 = 8;
/// Bits of the cache, after shifting.
const TCACHE_MASK: u32 = 0xfff;
/// What they say for no cache.
const TCACHE_NONE: u32 = 1;
/// Where the arena's bits begin.
const ARENA_SHIFT: u32 = 20;

/// The alignment that flags ask for; 1 when none.
const fn alignment(flags: c_int) -> usize {
    1 << (flags.cast_unsigned() & LG_ALIGN_MASK)
}

/// The core's form of the flags.
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

/// `mallocx(3)`: at least `size` bytes; with `MALLOCX_ZERO` all usable bytes are zero. (A size of
/// 0, undefined in jemalloc, gives a smallest block.)
///
/// Errors: NULL when there is no memory, and for an arena or a cache that does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn mallocx(size: usize, flags: c_int) -> *mut c_void {
    let block = if flags == 0 { raw::malloc(size) } else { raw::allocate(size, decode(flags)) };
    block.cast()
}

/// `rallocx(3)`: resizes, perhaps moving; with `MALLOCX_ZERO`, all bytes behind the old usable size
/// are zero. NULL allocates.
///
/// Errors: NULL, and the old block stays as it was.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rallocx(ptr: *mut c_void, size: usize, flags: c_int) -> *mut c_void {
    if ptr.is_null() {
        return mallocx(size, flags);
    }
    // SAFETY: the caller's promise is ours; ptr is not null.
    let block = unsafe { raw::reallocate(ptr.cast(), size, decode(flags)) };
    block.cast()
}

/// `xallocx(3)`: resizes in place to at least `size` bytes, if possible to `size + extra`; answers
/// the size that the block has afterwards, which is smaller than `size` when it could not grow.
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
        // SAFETY: the caller's promise is ours.
        return unsafe { sallocx(ptr, flags) };
    }
    let extra = extra.min(alloc_core::MAX_SIZE - size);
    // SAFETY: the caller's promise is ours.
    unsafe { raw::resize_in_place(ptr.cast(), size, extra, decode(flags)) }
}

/// `sallocx(3)`: the real size of the block; 0 for NULL.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sallocx(ptr: *const c_void, _flags: c_int) -> usize {
    // SAFETY: the caller's promise is ours.
    unsafe { crate::standard::malloc_usable_size(ptr.cast_mut()) }
}

/// `dallocx(3)`: gives the block back; NULL is allowed.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dallocx(ptr: *mut c_void, flags: c_int) {
    if flags == 0 || ptr.is_null() {
        // SAFETY: the caller's promise is ours.
        unsafe { raw::free(ptr.cast()) };
    } else {
        // SAFETY: the caller's promise is ours; ptr is not null.
        unsafe { raw::deallocate(ptr.cast(), decode(flags)) };
    }
}

/// `sdallocx(3)`: [`dallocx`] for a block whose size is known: anything from what was asked for to
/// what `nallocx` or `sallocx` says; an alignment that was asked for must be in the flags again.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library of that size and alignment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sdallocx(ptr: *mut c_void, size: usize, flags: c_int) {
    if ptr.is_null() {
        return;
    }
    if flags == 0 {
        // SAFETY: the caller's promise is ours; ptr is not null.
        unsafe { raw::free_roomy(ptr.cast(), size, 1) };
    } else {
        // SAFETY: the caller's promise is ours; ptr is not null.
        unsafe { raw::deallocate_sized(ptr.cast(), size, decode(flags)) };
    }
}

/// `nallocx(3)`: the real size that `mallocx` with the same arguments would give; 0 when that is
/// beyond the largest size or alignment.
#[unsafe(no_mangle)]
pub extern "C" fn nallocx(size: usize, flags: c_int) -> usize {
    raw::good_size(size, alignment(flags))
}
