//! How much memory all arenas hold, which the bounds of memory limit.

use crate::back::map::page_map;
use crate::back::metadata;
use crate::ground::counters::SharedCount;
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Pages with memory in all arenas, in use or not, as they last reported.
static PAGES: AtomicUsize = AtomicUsize::new(0);
/// Those of them that are holes in slabs: they have no memory until a block in them is handed out.
static HOLES: SharedCount = SharedCount::new();

/// Returns the bytes that count for the hard bounds: pages with memory, holes, and records. Blocks
/// in holes are handed out without asking the bounds, so their room is not given to others.
pub(crate) fn bytes() -> usize {
    bytes_beside_records(PAGES.load(Relaxed))
}

/// Returns the bytes that count for the soft bound, which refuses nothing: those without holes.
pub(super) fn bytes_with_memory() -> usize {
    bytes_beside_records(without_holes(PAGES.load(Relaxed)))
}

/// How many of the `pages` that all arenas hold are not holes.
pub(super) fn without_holes(pages: usize) -> usize {
    pages.saturating_sub(HOLES.get() as usize)
}

/// Notes that so many pages of slabs have become holes.
pub(crate) fn note_holes(pages: u32) {
    HOLES.add(pages.into());
}

/// Notes that so many holes have memory again, or their slab is gone. Returns the pages that all
/// arenas hold, holes among them.
pub(super) fn note_filled_holes(pages: u32) -> usize {
    HOLES.sub(pages.into());
    PAGES.load(Relaxed)
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
