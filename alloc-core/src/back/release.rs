//! Gives back the addresses of the runs of an arena that ends.

use super::map::extent::Extent;
use super::runs::chunk_notes;
use super::runs::reserved;
use super::system::page_provider::PageProvider;
use core::ptr::NonNull;

/// Gives back the addresses of a run that is in no list and not in the page map. No lock is held.
/// Returns `false` if the provider refuses, or if it would leave one hole too many. The addresses
/// then stay mapped.
pub(crate) fn release(provider: &dyn PageProvider, run: &'static Extent) -> bool {
    chunk_notes::forget_lost_chunks(run);
    let Some(base) = NonNull::new(run.base_ptr()) else { return false };
    if !reserved::may_release(run.base(), run.bytes()) {
        return false;
    }
    // SAFETY: the run is unused and in no list, so no other code uses it.
    let released = unsafe { provider.release(base, run.bytes()) };
    if !released {
        reserved::note(run.base(), run.bytes());
    }
    released
}
