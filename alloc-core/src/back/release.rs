//! Giving the addresses of a run back at the end of its arena.

use super::chunk_notes;
use super::extent::Extent;
use super::page_provider::PageProvider;
use core::ptr::NonNull;

/// Gives a run's addresses back, which is in nobody's list and not in the page map. Under no lock.
/// `false`: they stay ours.
pub(crate) fn release(provider: &dyn PageProvider, run: &'static Extent) -> bool {
    chunk_notes::forget_lost_chunks(run);
    let Some(base) = NonNull::new(run.base_ptr()) else { return false };
    // SAFETY: the run is unused, and nobody looks at it.
    unsafe { provider.release(base, run.bytes()) }
}
