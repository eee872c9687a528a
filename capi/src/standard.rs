//! The malloc family of ISO C (C89 to C23), POSIX, and the older names that glibc also has.
//!
//! Success never changes `errno`, and the frees never do. Sizes above `PTRDIFF_MAX` are out of
//! memory.
use crate::die::die;
use crate::errno::{self, bad_alignment, too_large};
use alloc_core::observe;
use alloc_core::options::{self, ZeroRealloc};
use alloc_core::raw;
use core::ffi::{c_int, c_void};

/// `malloc(3)`: at least `size` bytes, uninitialised, aligned for any type; a unique pointer for 0.
///
/// Errors: NULL and `ENOMEM`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    raw::malloc(size).cast()
}

/// `calloc(3)`: `count * size` zero bytes. All usable bytes behind them are zero too, as in
/// jemalloc.
///
/// Errors: NULL and `ENOMEM`, also when the product overflows.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => raw::malloc_zeroed(bytes).cast(),
        None => too_large(),
    }
}

/// `realloc(3)`: resizes a block and may move it. A small block that grows by a little gets room to
/// grow on, which `malloc_usable_size` includes. `realloc(NULL, n)` is `malloc(n)`. `realloc(p, 0)`
/// does as `opt.zero_realloc` says: by default it frees the block and returns NULL with `errno`
/// unchanged.
///
/// Errors: NULL and `ENOMEM`; the old block is unchanged.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller upholds the contract.
    if unsafe { raw::stays(ptr.cast(), size) } {
        return ptr;
    }
    if ptr.is_null() {
        return malloc(size);
    }
    if size == 0 {
        // SAFETY: the caller upholds the contract; ptr is not null.
        return unsafe { realloc_to_zero(ptr) };
    }
    // SAFETY: the caller upholds the contract; ptr is not null, and the block does not stay.
    unsafe { raw::realloc_roomy(ptr.cast(), size) }.cast()
}

/// `realloc(p, 0)`, following `opt.zero_realloc` of jemalloc(3) 5.3.
///
/// # Safety
/// `ptr` must be a live block of this library.
#[cold]
unsafe fn realloc_to_zero(ptr: *mut c_void) -> *mut c_void {
    observe::note_zero_realloc();
    match options::current().zero_realloc {
        ZeroRealloc::Free => {
            // SAFETY: the caller upholds the contract.
            unsafe { raw::free(ptr.cast()) };
            core::ptr::null_mut()
        }
        ZeroRealloc::Alloc => {
            // SAFETY: the caller upholds the contract.
            unsafe { raw::realloc(ptr.cast(), 0) }.cast()
        }
        ZeroRealloc::Abort => die(b"<lumalloc>: realloc(p, 0) under zero_realloc:abort\n"),
    }
}

/// `reallocarray(3)` (POSIX 2024): `realloc` to `count * size` bytes.
///
/// Errors: NULL and `ENOMEM`, also when the product overflows; the old block is unchanged.
///
/// # Safety
/// As [`realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(ptr: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller upholds the contract.
        Some(bytes) => unsafe { realloc(ptr, bytes) },
        None => too_large(),
    }
}

/// `free(3)`: frees the block. NULL is allowed.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(ptr: *mut c_void) {
    // SAFETY: the caller upholds the contract.
    unsafe { raw::free(ptr.cast()) };
}

/// `cfree`, the SunOS name of [`free`].
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(ptr: *mut c_void) {
    // SAFETY: the caller upholds the contract.
    unsafe { raw::free(ptr.cast()) };
}

/// `free_sized` (C23): [`free`] for a block of `malloc`, `calloc` or `realloc` whose requested size
/// is known. The size is checked: one of another class ends the process. NULL is allowed, whatever
/// the size.
///
/// # Safety
/// `ptr` must be NULL or such a block, and `size` its requested size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(ptr: *mut c_void, size: usize) {
    if !ptr.is_null() {
        // SAFETY: the caller upholds the contract; ptr is not null.
        unsafe { raw::free_roomy(ptr.cast(), size, 1) };
    }
}

/// `free_aligned_sized` (C23): [`free_sized`] for a block of `aligned_alloc`. The size is checked
/// in the same way. NULL is allowed.
///
/// # Safety
/// `ptr` must be NULL or such a block, `alignment` and `size` the requested ones.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(ptr: *mut c_void, alignment: usize, size: usize) {
    if !ptr.is_null() {
        // SAFETY: the caller upholds the contract; ptr is not null.
        unsafe { raw::free_roomy(ptr.cast(), size, alignment) };
    }
}

/// `posix_memalign(3)`: stores a block whose address is a multiple of `alignment` at `*memptr`.
///
/// Errors are returned, not stored in `errno`, and leave `*memptr` unchanged: `EINVAL` when the
/// alignment is no power of two or no multiple of `sizeof(void *)`, `ENOMEM` without memory.
///
/// # Safety
/// `memptr` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    memptr: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    if !alignment.is_power_of_two() || alignment < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    let errno_before = errno::get();
    let block = raw::malloc_aligned(size, alignment);
    if block.is_null() {
        errno::set(errno_before);
        return libc::ENOMEM;
    }
    // SAFETY: the caller vouches for memptr.
    unsafe { memptr.write(block.cast()) };
    0
}

/// `aligned_alloc(3)` (C11, by C17's rules): any power of two is a valid alignment, and `size` need
/// not be a multiple of it.
///
/// Errors: NULL and `EINVAL` when the alignment is no power of two; NULL and `ENOMEM`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        return bad_alignment();
    }
    raw::malloc_aligned(size, alignment).cast()
}

/// `memalign(3)`: as [`aligned_alloc`]. For an alignment that is no power of two, glibc rounds it
/// up; jemalloc and this function fail with `EINVAL`.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
    aligned_alloc(alignment, size)
}

/// `valloc(3)`: a block aligned to the system's page.
///
/// Errors: NULL and `ENOMEM`.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    raw::malloc_aligned(size, system_page()).cast()
}

/// `pvalloc(3)`: `size` rounded up to whole pages of the system, at least one.
///
/// Errors: NULL and `ENOMEM`, also when rounding overflows.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = system_page();
    match size.max(1).checked_add(page - 1) {
        Some(end) => valloc(end & !(page - 1)),
        None => too_large(),
    }
}

/// `malloc_usable_size(3)`: returns the real size of the block in bytes; 0 for NULL.
///
/// # Safety
/// `ptr` must be NULL or a live block of this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(ptr: *mut c_void) -> usize {
    if ptr.is_null() {
        return 0;
    }
    // SAFETY: the caller upholds the contract; ptr is not null.
    unsafe { raw::usable_size(ptr.cast()) }
}

/// The system's page size in bytes: a power of two, at least the allocator's page size.
fn system_page() -> usize {
    // SAFETY: sysconf has no requirements.
    let answer = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let answered = usize::try_from(answer).ok().filter(|page| page.is_power_of_two());
    answered.map_or(alloc_core::PAGE, |page| page.max(alloc_core::PAGE))
}
