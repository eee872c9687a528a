//! Counts of what the slow paths did. They are deterministic enough to compare two builds where
//! times are not.

use crate::back::metadata::METADATA;
use crate::front::cache::registry::REGISTRY;
use crate::ground::calls::{Call, counted};
use crate::ground::sync::lock::LockCounts;
use crate::middle::events::{Event, EventCounts};

/// Work that slow paths did since the start, over all threads and arenas. The fast paths of malloc
/// and free count nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Refills of a thread cache from slabs that it owned.
    pub refills_owned: u64,
    /// Refills of a thread cache from slabs that the threads of an arena share.
    pub refills_shared: u64,
    /// Slabs that caches took over from an arena.
    pub slabs_adopted: u64,
    /// Slabs made of pages.
    pub slabs_fresh: u64,
    /// Batches of blocks that caches returned to slabs.
    pub flushes: u64,
    /// Groups in the batches of `flushes`. A group is the blocks of one slab, or of one word of a
    /// slab that another cache or a bin guards.
    pub flush_groups: u64,
    /// Atomic ORs into slabs that another cache or a bin guards.
    pub remote_words: u64,
    /// Slabs pushed on the pending stack of their guard.
    pub remote_pushes: u64,
    /// Slabs whose remote frees were taken in by their guard.
    pub remote_drains: u64,
    /// Compare-exchanges of remote frees that were repeated because of other threads.
    pub cas_retries: u64,
    /// Large blocks that the thread freeing them kept.
    pub runs_kept: u64,
    /// Requests served with a large block that the thread had kept.
    pub runs_reused: u64,
    /// Free pages inside slabs in use that were given back.
    pub holes_given: u64,
    /// Caches of threads that did nothing, whose blocks were taken back.
    pub caches_emptied: u64,
    /// Runs of pages that left an arena for a slab or a large block.
    pub runs_taken: u64,
    /// Runs of pages that were returned to an arena.
    pub runs_given: u64,
    /// Times that a thread cache's lock was taken.
    pub lock_cache: u64,
    /// Times that a thread cache's lock was found taken.
    pub wait_cache: u64,
    /// Times that the lock of an arena's bin was taken.
    pub lock_bin: u64,
    /// Times that the lock of an arena's bin was found taken.
    pub wait_bin: u64,
    /// Times that the lock of an arena's pages was taken.
    pub lock_pages: u64,
    /// Times that the lock of an arena's pages was found taken.
    pub wait_pages: u64,
    /// Times that the lock of the list of caches was taken.
    pub lock_registry: u64,
    /// Times that the lock of the list of caches was found taken.
    pub wait_registry: u64,
    /// Times that the lock of the allocator's own records was taken.
    pub lock_metadata: u64,
    /// Times that the lock of the allocator's own records was found taken.
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
    /// Adds the work of one owner, or the work past all caches.
    pub(super) fn add_events(&mut self, events: &EventCounts) {
        self.refills_owned += events.get(Event::RefillOwned);
        self.refills_shared += events.get(Event::RefillShared);
        self.slabs_adopted += events.get(Event::Adopted);
        self.slabs_fresh += events.get(Event::Fresh);
        self.flushes += events.get(Event::Flush);
        self.flush_groups += events.get(Event::Group);
        self.remote_words += events.get(Event::RemoteWord);
        self.remote_pushes += events.get(Event::Push);
        self.remote_drains += events.get(Event::Drained);
        self.cas_retries += events.get(Event::Retry);
        self.runs_kept += events.get(Event::RunKept);
        self.runs_reused += events.get(Event::RunReused);
    }

    /// Adds what is counted once for the whole process.
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

    /// Adds the counts of a cache's lock.
    pub(super) fn add_cache_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_cache, &mut self.wait_cache, counts);
    }

    /// Adds the counts of a bin's lock.
    pub(super) fn add_bin_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_bin, &mut self.wait_bin, counts);
    }

    /// Adds the counts of the lock of an arena's pages.
    pub(super) fn add_pages_lock(&mut self, counts: LockCounts) {
        add_lock(&mut self.lock_pages, &mut self.wait_pages, counts);
    }
}

fn add_lock(taken: &mut u64, refused: &mut u64, counts: LockCounts) {
    *taken += counts.taken;
    *refused += counts.refused;
}
