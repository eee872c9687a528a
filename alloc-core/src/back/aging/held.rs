//! How much memory all arenas hold, which the bounds of memory limit.

use crate::back::map::page_map;
use crate::back::metadata;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Pages with memory in all arenas, in use or not, as they last reported.
static PAGES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes that count for the bounds: pages with memory, and records.
pub(crate) fn bytes() -> usize {
    bytes_beside_records(PAGES.load(Relaxed))
}

/// Returns the bytes that `pages` pages and the records of the allocator are together.
pub(super) fn bytes_beside_records(pages: usize) -> usize {
    let records = metadata::USED.get() + page_map::USED.get();
    (pages << LG_PAGE) + records as usize
}

/// Adds `change` to the pages, modulo the word. Returns how many there are now.
pub(super) fn add(change: usize) -> usize {
    PAGES.fetch_add(change, Relaxed).wrapping_add(change)
}
