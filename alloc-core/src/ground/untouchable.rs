//! Addresses that no thread may touch, and pages among them that are opened for a time.

use super::os::{self, keep_errno};
use super::units::PAGE;

/// Reserves addresses that no thread may touch. Returns `None` if the system has none.
pub(crate) fn reserve(bytes: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping wherever there is room.
    let base = keep_errno(|| unsafe {
        libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0)
    });
    if base == libc::MAP_FAILED { None } else { Some(base.expose_provenance()) }
}

/// Whether each page of the allocator can be made untouchable: the system's pages are no larger.
#[inline]
pub(crate) fn can_close_each_page() -> bool {
    os::system_page() == PAGE
}

/// Gives addresses of [`reserve`] back.
pub(crate) fn release(base: usize, bytes: usize) {
    let place = core::ptr::with_exposed_provenance_mut(base);
    // SAFETY: addresses that this allocator reserved, and uses no more.
    keep_errno(|| unsafe { libc::munmap(place, bytes) });
}

/// Unlocks addresses of [`reserve`], so that pages get memory when they are touched.
pub(crate) fn unlock(base: usize, bytes: usize) {
    let place = core::ptr::with_exposed_provenance(base);
    // SAFETY: nothing but the system's accounts changes. Where it refuses, the pages stay locked.
    keep_errno(|| unsafe { libc::munlock(place, bytes) });
}

/// Makes untouchable pages of this allocator readable and writable. Returns whether they are.
pub(crate) fn open_page(page: usize, bytes: usize) -> bool {
    let place = core::ptr::with_exposed_provenance_mut(page);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the pages belong to a reservation of this allocator.
    keep_errno(|| unsafe { libc::mprotect(place, bytes, access) } == 0)
}

/// Makes pages of this allocator untouchable. They keep their memory. Returns whether they are.
pub(crate) fn close(base: usize, bytes: usize) -> bool {
    let place = core::ptr::with_exposed_provenance_mut(base);
    // SAFETY: pages of this allocator in which no block is in use.
    keep_errno(|| unsafe { libc::mprotect(place, bytes, libc::PROT_NONE) } == 0)
}

/// Gives the memory of a page back, and makes the page untouchable again.
pub(crate) fn close_page(page: usize, bytes: usize) {
    let place: *mut core::ffi::c_void = core::ptr::with_exposed_provenance_mut(page);
    keep_errno(|| {
        // SAFETY: the page belongs to a reservation of this allocator, and its contents are not
        // needed.
        unsafe { libc::madvise(place, bytes, libc::MADV_DONTNEED) };
        // SAFETY: the page belongs to a reservation of this allocator.
        unsafe { libc::mprotect(place, bytes, libc::PROT_NONE) };
    });
}
