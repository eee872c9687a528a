//! The discipline that takes segments from the operating system.

use crate::discipline::{Discipline, Resized};
use crate::limits;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use lumalloc::PAGE;

/// Addresses that are reserved for a segment, so that it can grow where it lies. Reserved addresses
/// cost no memory.
const WINDOW: usize = 64 << 20;

/// Windows that a process has at one time. Each is two mappings, and all together take an eighth of
/// those that a process may have (65530, unless `vm.max_map_count` says otherwise).
const MOST_WINDOWS: usize = 4096;

/// How many windows there are.
static WINDOWS: AtomicUsize = AtomicUsize::new(0);

/// A segment longer than this gets no window.
const LONGEST_IN_WINDOW: usize = WINDOW / 2;

/// What a region asks for at least.
const LEAST: usize = 64 << 10;

/// What lies behind so many bytes of a window is in huge pages, if the system has them for those
/// who ask: a region that has come so far touches each next page soon, and 512 faults are one.
const SMALL_PAGES: usize = 8 << 20;

const HUGE_PAGE: usize = 2 << 20;

/// Memory from mmap(2). Source: vmalloc(3), `Vmdcsystem`.
///
/// A segment of up to 32 MiB lies at the start of a window of 64 MiB of addresses, and grows to
/// fill it without being copied. What it has beyond 8 MiB is in huge pages. There are 4096 windows
/// at most, and none in a process with a limit of addresses.
///
/// ```
/// use lumalloc_region::{Best, Region, System};
/// let mut region: Region<Best, System> = Region::open(System).unwrap();
/// let block = region.alloc(100).unwrap();
/// // SAFETY: the block is used no more.
/// assert!(unsafe { region.free(block) }.is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

// SAFETY: a private mapping belongs to the region until it is unmapped.
unsafe impl Discipline for System {
    fn round(&self) -> usize {
        PAGE
    }

    fn growth(&self, extent: usize) -> usize {
        (extent / 8).max(LEAST)
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        let start = if size <= LONGEST_IN_WINDOW { in_window(size) } else { None };
        NonNull::new(start.or_else(|| outside_windows(size))? as *mut u8)
    }

    unsafe fn resize(&mut self, segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        let start = segment.as_ptr() as usize;
        let (old_end, new_end) = (start + size, start.saturating_add(new_size));
        let is_done = if new_size < size {
            forget(new_end, start + usable(start, size), is_window(start))
        } else if is_window(start) {
            new_size <= WINDOW && open(start, old_end, start + usable(start, new_size))
        } else {
            extend(start, size, new_size)
        };
        if is_done { Resized::InPlace } else { Resized::Refused }
    }

    unsafe fn release(&mut self, segment: NonNull<u8>, size: usize) -> bool {
        let start = segment.as_ptr() as usize;
        if !is_window(start) {
            return unmap(start, size);
        }
        let is_done = unmap(start, WINDOW);
        if is_done {
            WINDOWS.fetch_sub(1, Ordering::Relaxed);
        }
        is_done
    }
}

/// Windows begin at multiples of their size, and other segments do not.
fn is_window(start: usize) -> bool {
    start.is_multiple_of(WINDOW)
}

/// A segment at the start of a window, if there may be one more.
fn in_window(size: usize) -> Option<usize> {
    if limits::addresses().is_some() {
        return None;
    }
    let is_one_more = WINDOWS.fetch_add(1, Ordering::Relaxed) < MOST_WINDOWS;
    let start = if is_one_more { in_new_window(size) } else { None };
    if start.is_none() {
        WINDOWS.fetch_sub(1, Ordering::Relaxed);
    }
    start
}

fn in_new_window(size: usize) -> Option<usize> {
    let reserved = map(2 * WINDOW, libc::PROT_NONE)?;
    let start = reserved.next_multiple_of(WINDOW);
    let end = start + WINDOW;
    unmap(reserved, start - reserved);
    unmap(end, reserved + 2 * WINDOW - end);
    if open(start, start, start + usable(start, size)) {
        return Some(start);
    }
    unmap(start, WINDOW);
    None
}

/// How many bytes of a segment of so many can be used: in a window, whole huge pages.
fn usable(start: usize, size: usize) -> usize {
    let has_huge_pages = is_window(start) && size > SMALL_PAGES;
    if has_huge_pages { size.next_multiple_of(HUGE_PAGE) } else { size }
}

/// Makes addresses of the window at `start` usable.
fn open(start: usize, from: usize, to: usize) -> bool {
    let huge = from.max(start + SMALL_PAGES);
    if !protect(from, to - from) {
        return false;
    }
    if huge < to {
        // SAFETY: this changes no contents. Without huge pages, small ones serve as well.
        unsafe { libc::madvise(huge as *mut c_void, to - huge, libc::MADV_HUGEPAGE) };
    }
    true
}

/// A segment at an address that is no window's. The system makes one mapping of neighbours.
fn outside_windows(size: usize) -> Option<usize> {
    let start = map(size, libc::PROT_READ | libc::PROT_WRITE)?;
    if !is_window(start) {
        return Some(start);
    }
    unmap(start, size);
    let start = map(size.checked_add(PAGE)?, libc::PROT_READ | libc::PROT_WRITE)?;
    let is_at_window = is_window(start);
    unmap(if is_at_window { start } else { start + size }, PAGE);
    Some(if is_at_window { start + PAGE } else { start })
}

/// Gives back the memory from `from` to `to`, and the addresses too if they are in no window.
fn forget(from: usize, to: usize, in_window: bool) -> bool {
    if !in_window {
        return unmap(from, to - from);
    }
    let fresh = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the pages are the segment's own, and its region has given them up.
    let at = unsafe { libc::mmap(from as *mut c_void, to - from, libc::PROT_NONE, fresh, -1, 0) };
    at != libc::MAP_FAILED
}

fn map(size: usize, protection: libc::c_int) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the system likes touches no other memory.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), size, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start as usize)
}

fn unmap(start: usize, size: usize) -> bool {
    // SAFETY: callers pass pages of their own mapping that nothing uses any more.
    size == 0 || unsafe { libc::munmap(start as *mut c_void, size) } == 0
}

/// Makes addresses of a mapping usable.
fn protect(start: usize, size: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: callers pass pages of their own mapping.
    unsafe { libc::mprotect(start as *mut c_void, size, protection) == 0 }
}

fn extend(start: usize, size: usize, new_size: usize) -> bool {
    // SAFETY: the mapping is the segment's, and without MREMAP_MAYMOVE it stays where it is.
    let at = unsafe { libc::mremap(start as *mut c_void, size, new_size, 0) };
    at != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(segment: NonNull<u8>, size: usize, new_size: usize) -> Resized {
        // SAFETY: the tests pass the present size of their own segment.
        unsafe { System.resize(segment, size, new_size) }
    }

    fn byte(segment: NonNull<u8>, at: usize) -> &'static mut u8 {
        // SAFETY: the tests pass a place in their own segment.
        let at = unsafe { segment.add(at) };
        // SAFETY: the byte is the test's alone.
        unsafe { &mut *at.as_ptr() }
    }

    #[test]
    fn a_segment_grows_in_its_window_and_shrinks() {
        const LONG: usize = 41 << 20;
        let segment = System.obtain(PAGE).unwrap();
        assert!(is_window(segment.as_ptr() as usize));
        *byte(segment, 0) = 7;
        assert_eq!(resize(segment, PAGE, LONG), Resized::InPlace);
        *byte(segment, LONG - 1) = 8;
        assert_eq!(*byte(segment, 0), 7);
        assert_eq!(resize(segment, LONG, WINDOW + PAGE), Resized::Refused);
        assert_eq!(resize(segment, LONG, PAGE), Resized::InPlace);
        assert_eq!(resize(segment, PAGE, LONG), Resized::InPlace);
        assert_eq!(*byte(segment, LONG - 1), 0);
        // Between these sizes, both in huge pages, memory is given back too.
        let (less, more) = (SMALL_PAGES + PAGE, SMALL_PAGES + HUGE_PAGE);
        *byte(segment, more - 1) = 9;
        assert_eq!(resize(segment, LONG, less), Resized::InPlace);
        assert_eq!(resize(segment, less, more), Resized::InPlace);
        assert_eq!(*byte(segment, more - 1), 0);
        assert_eq!(resize(segment, more, LONG), Resized::InPlace);
        // SAFETY: the segment is not used after.
        assert!(unsafe { System.release(segment, LONG) });
    }

    #[test]
    fn a_long_segment_has_no_window() {
        let size = LONGEST_IN_WINDOW + PAGE;
        let segment = System.obtain(size).unwrap();
        assert!(!is_window(segment.as_ptr() as usize));
        *byte(segment, size - 1) = 1;
        assert_eq!(resize(segment, size, size - PAGE), Resized::InPlace);
        // SAFETY: the segment is not used after.
        assert!(unsafe { System.release(segment, size - PAGE) });
    }

    #[test]
    fn sizes_that_no_machine_has_are_refused() {
        assert_eq!(System.obtain(usize::MAX - PAGE), None);
        assert_eq!(System.obtain(1 << 50), None);
    }
}
