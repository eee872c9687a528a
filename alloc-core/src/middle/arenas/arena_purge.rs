//! Gives the unused pages of an arena back, batch after batch.

use super::arena_pages::ArenaPages;
use crate::back::page_allocator::PageAllocator;
use crate::back::purge_batch::Batch;
use crate::ground::sync::lock::RankedMutex;

/// Purges the batches that `take` takes under the lock.
pub(super) fn purge_batches(
    pages: &RankedMutex<ArenaPages>,
    take: impl Fn(&mut PageAllocator) -> Option<Batch>,
) {
    loop {
        let Some(batch) = take(&mut pages.lock().allocator) else { return };
        batch.purge();
        // The system may refuse some runs, as it does for locked memory, and take others.
        if !pages.lock().allocator.file_batch(batch) {
            return;
        }
    }
}

/// Purges all unused pages but `reserve` ones, and gives all unused addresses back. Ends once the
/// arena has hooks, which another thread may set at any time. So it may be called under a lock.
pub(in crate::middle) fn give_addresses_back(pages: &RankedMutex<ArenaPages>, reserve: usize) {
    purge_batches(pages, |allocator| {
        if allocator.is_hooked() {
            return None;
        }
        allocator.source().set_gives_all(true);
        let batch = allocator.take_batch(reserve, 0);
        allocator.source().set_gives_all(false);
        batch
    });
}
