//! Numbers that are not counted, but asked of the system: how much of the heap is in physical
//! memory, and where the heap lies.

use crate::back::map::page_map;
use crate::ground::files;
use crate::ground::os;
use crate::ground::own_files;
use core::ffi::CStr;

/// Returns how many bytes of the heap are in physical memory. The heap is the runs of pages in any
/// state, without the allocator's own records. The system reports each page, which takes some
/// milliseconds for each gigabyte of addresses. Memory that threads map or unmap meanwhile may be
/// missed.
///
/// ```
/// let block = vec![1u8; 10 << 20];
/// let resident = lumalloc::observe::heap_resident();
/// assert!(resident <= lumalloc::observe::process_resident().unwrap());
/// # drop(block);
/// ```
#[must_use]
pub fn heap_resident() -> usize {
    let mut bytes = 0;
    page_map::for_each_range(|base, length| bytes += os::resident_bytes(base, length));
    bytes
}

/// Returns the number of ranges of addresses without a gap that the heap has, whatever their state.
/// Reads a word of the page map for each page, which takes a tenth of a millisecond for each
/// gigabyte of addresses.
///
/// ```
/// let block = vec![1u8; 10 << 20];
/// assert!(lumalloc::observe::segments() > 0 || lumalloc::observe::totals().active == 0);
/// # drop(block);
/// ```
#[must_use]
pub fn segments() -> usize {
    let mut count = 0;
    page_map::for_each_range(|_, _| count += 1);
    count
}

/// Calls `see` with the start and the bytes of each range that [`segments`] counts, by address. No
/// lock is held while `see` runs, so it may allocate. Ranges that grow or join meanwhile may be
/// missed.
///
/// ```
/// let block = vec![1u8; 10 << 20];
/// let address = block.as_ptr() as usize;
/// let mut around = 0;
/// lumalloc::observe::for_each_segment(|start, bytes| {
///     around += usize::from(address >= start && address - start < bytes);
/// });
/// assert!(around == 1 || lumalloc::observe::totals().active == 0);
/// ```
pub fn for_each_segment(see: impl FnMut(usize, usize)) {
    page_map::for_each_range(see);
}

/// Returns how many bytes of the whole process are in physical memory, or `None` if the system does
/// not tell. Source: proc(5), `/proc/self/statm`.
#[must_use]
pub fn process_resident() -> Option<usize> {
    own_files::PAGES.into_iter().find_map(resident_by)
}

/// Reads the bytes in physical memory. `None`: the file is that of a thread that has ended, or
/// cannot be read.
fn resident_by(path: &CStr) -> Option<usize> {
    let mut buffer = [0; 128];
    let text = files::read(path, &mut buffer)?;
    let pages = text.split(|byte| *byte == b' ').nth(1)?;
    let pages = pages.iter().try_fold(0usize, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(usize::from(digit))
    })?;
    pages.checked_mul(os::system_page()).filter(|bytes| *bytes > 0)
}
