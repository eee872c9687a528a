//! Active pages, without taking a snapshot.

use crate::back::page_allocator::PageAllocator;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::arena_pages::ArenaPages;

/// Returns the bytes in pages of slabs and large blocks now. Reads each arena under its lock, and
/// no cache. Pages without memory inside slabs count too, unlike in a snapshot. Source: jemalloc(3)
/// 5.3, `approximate_stats.active`.
///
/// ```
/// let block = vec![0u8; 1 << 20];
/// let _ = lumalloc::observe::approximate_active();
/// # drop(block);
/// ```
#[must_use]
pub fn approximate_active() -> usize {
    arena_list::all().map(|arena| arena.pages.lock().allocator.counts().active * PAGE).sum()
}

/// Returns the address of the count of an arena's active pages, which changes with them and may be
/// read at any time. Pages without memory inside slabs count too. Returns `None` if there is no
/// arena with this index. Source: jemalloc(3) 5.3, `experimental.arenas.<i>.pactivep`.
#[must_use]
pub fn active_pages_place(index: u32) -> Option<*const usize> {
    let arena = arena_list::by_id(index).filter(|arena| arena.is_live())?;
    let place = arena.pages.place().cast::<u8>();
    let offset = core::mem::offset_of!(ArenaPages, allocator) + PageAllocator::ACTIVE;
    Some(place.wrapping_add(offset).cast())
}
