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

/// Gives the addresses of `wanted` unused pages back, or of all if there are fewer, but keeps
/// `reserve` dirty pages. Ends once the arena has hooks, which another thread may set at any time.
/// So it may be called under a lock. Returns how many went back.
pub(in crate::middle) fn give_addresses_back(
    pages: &RankedMutex<ArenaPages>,
    wanted: usize,
    reserve: usize,
) -> usize {
    let counts = || pages.lock().allocator.counts();
    let before = counts();
    // Pages without memory go first.
    let lacking = wanted.saturating_sub(before.retained);
    let muzzy = before.muzzy.saturating_sub(lacking);
    let dirty = (before.dirty + before.muzzy).saturating_sub(lacking).min(before.dirty);
    purge_ordinary(pages, dirty.max(reserve), muzzy, usize::MAX);
    purge_ordinary(pages, usize::MAX, usize::MAX, counts().retained.saturating_sub(wanted));
    before.mapped.saturating_sub(counts().mapped)
}

/// Purges the oldest pages of an arena without hooks beyond as many as may stay of each state.
fn purge_ordinary(pages: &RankedMutex<ArenaPages>, dirty: usize, muzzy: usize, retained: usize) {
    purge_batches(pages, |allocator| {
        if allocator.is_hooked() {
            return None;
        }
        allocator.source().set_kept_for_now(retained);
        let batch = allocator.take_batch(dirty, muzzy);
        allocator.source().set_kept_for_now(usize::MAX);
        batch
    });
}
