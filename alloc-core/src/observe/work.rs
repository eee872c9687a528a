//! What the slow paths did, as plain numbers: deterministic enough to compare two builds where
//! time is not.

use crate::back::metadata::METADATA;
use crate::front::cache::registry::REGISTRY;
use crate::ground::calls::{Call, counted};
use crate::ground::sync::lock::LockCounts;
use crate::middle::effort::{Deed, Effort};

/// Work done since the start, over all threads and arenas. The fast paths of malloc and free count
/// nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Refills from slabs that the cache owned.
    pub refills_owned: u64,
    /// Refills from slabs that the threads of an arena share.
    pub refills_shared: u64,
    /// Slabs that caches took over from an arena.
    pub slabs_adopted: u64,
    /// Slabs made of pages.
    pub slabs_fresh: u64,
    /// Batches of blocks that caches sent home.
    pub flushes: u64,
    /// Groups in those batches: of one slab, or of one word of somebody else's.
    pub flush_groups: u64,
    /// Atomic ORs into slabs that somebody else guards.
    pub remote_words: u64,
    /// Slabs pushed on the stack of their guard.
    pub remote_pushes: u64,
    /// Slabs whose remote frees were taken in.
    pub remote_drains: u64,
    /// Compare-exchanges of remote frees repeated because of others.
    pub cas_retries: u64,
    /// Large blocks that the thread freeing them kept.
    pub runs_kept: u64,
    /// Large blocks served from those.
    pub runs_reused: u64,
    /// Free pages inside slabs in use that were given back.
    pub holes_given: u64,
    /// Runs of pages that left an arena for a slab or a large block.
    pub runs_taken: u64,
    /// Runs of pages that came back.
    pub runs_given: u64,
    /// Times that locks of thread caches were taken.
    pub lock_cache: u64,
    /// Times that such a lock was found taken.
    pub wait_cache: u64,
    /// Times that locks of arenas' bins were taken.
    pub lock_bin: u64,
    /// Times that such a lock was found taken.
    pub wait_bin: u64,
    /// Times that locks of arenas' pages were taken.
    pub lock_pages: u64,
    /// Times that such a lock was found taken.
    pub wait_pages: u64,
    /// Times that locks of the list of caches were taken.
    pub lock_registry: u64,
    /// Times that such a lock was found taken.
    pub wait_registry: u64,
    /// Times that locks of the allocator's own records were taken.
    pub lock_metadata: u64,
    /// Times that such a lock was found taken.
    pub wait_metadata: u64,
    /// Calls of `mmap`.
    pub call_mmap: u64,
    /// Calls of `munmap`.
    pub call_munmap: u64,
    /// Calls of `madvise`.
    pub call_madvise: u64,
    /// Calls of `mprotect`.
    pub call_mprotect: u64,
    /// Calls of `mremap`.
    pub call_mremap: u64,
    /// Calls of `futex` (wait).
    pub call_futex_wait: u64,
    /// Calls of `futex` (wake).
    pub call_futex_wake: u64,
}

impl Work {
    /// Adds the deeds of one owner, or of those who have none.
    pub(super) fn add_effort(&mut self, effort: &Effort) {
        self.refills_owned += effort.get(Deed::RefillOwned);
        self.refills_shared += effort.get(Deed::RefillShared);
        self.slabs_adopted += effort.get(Deed::Adopted);
        self.slabs_fresh += effort.get(Deed::Fresh);
        self.flushes += effort.get(Deed::Flush);
        self.flush_groups += effort.get(Deed::Group);
        self.remote_words += effort.get(Deed::RemoteWord);
        self.remote_pushes += effort.get(Deed::Push);
        self.remote_drains += effort.get(Deed::Drained);
        self.cas_retries += effort.get(Deed::Retry);
        self.runs_kept += effort.get(Deed::RunKept);
        self.runs_reused += effort.get(Deed::RunReused);
    }

    /// Adds what there is one of in the process.
    pub(super) fn add_process(&mut self) {
        add_lock(&mut self.lock_registry, &mut self.wait_registry, REGISTRY.counts());
        add_lock(&mut self.lock_metadata, &mut self.wait_metadata, METADATA.counts());
        self.call_mmap = counted(Call::Mmap);
        self.call_munmap = counted(Call::Munmap);
        self.call_madvise = counted(Call::Madvise);
        self.call_mprotect = counted(Call::Mprotect);
        self.call_mremap = counted(Call::Mremap);
        self.call_futex_wait = counted(Call::FutexWait);
        self.call_futex_wake = counted(Call::FutexWake);
    }

    /// Adds the lock of a cache.
    pub(super) fn add_cache_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_cache, &mut self.wait_cache, counts);
    }

    /// Adds the lock of a bin.
    pub(super) fn add_bin_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_bin, &mut self.wait_bin, counts);
    }

    /// Adds the lock of an arena's pages.
    pub(super) fn add_pages_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_pages, &mut self.wait_pages, counts);
    }
}

fn add_lock(taken: &mut u64, refused: &mut u64, counts: LockCounts) {
    *taken += counts.taken;
    *refused += counts.refused;
}
