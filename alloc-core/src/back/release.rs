//! Giving the addresses of a run back at the end of its arena.

use super::map::extent::Extent;
use super::runs::chunk_notes;
use super::system::page_provider::PageProvider;
use core::ptr::NonNull;

/// Gives the addresses of a run back. The run is in no list and not in the page map, and no lock is
/// held. `false`: the provider refused, and the addresses stay mapped.
pub(crate) fn release(provider: &dyn PageProvider, run: &'static Extent) -> bool {
    chunk_notes::forget_lost_chunks(run);
    let Some(base) = NonNull::new(run.base_ptr()) else { return false };
    // SAFETY: the run is unused, and nobody looks at it.
    unsafe { provider.release(base, run.bytes()) }
}
