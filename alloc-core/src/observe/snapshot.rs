//! Totals as plain numbers, taken in one walk.

use super::samples::GuardedSamples;
use super::work::Work;

/// Totals over all arenas and caches. Bytes, unless a name says otherwise. Source: jemalloc(3),
/// `stats.*`, for the first six.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes in blocks that the program has.
    pub allocated: usize,
    /// Bytes in pages of slabs and large blocks.
    pub active: usize,
    /// Bytes of the allocator's own records.
    pub metadata: usize,
    /// Bytes in physical memory, at most: active, dirty and muzzy pages, and metadata.
    pub resident: usize,
    /// Bytes in runs of pages that are not retained, and of metadata.
    pub mapped: usize,
    /// Bytes of reserved addresses without memory.
    pub retained: usize,
    /// Of `retained`, bytes in free pages inside slabs that are in use.
    pub holes: usize,
    /// Bytes in unused pages that still have memory.
    pub dirty: usize,
    /// Bytes in unused pages whose memory the system may have taken.
    pub muzzy: usize,
    /// Bytes in blocks that lie in thread caches.
    pub cached: usize,
    /// Of `cached`, bytes in large blocks that threads keep.
    pub kept: usize,
    /// Bytes in blocks that were freed remotely, and that the guards of their slabs have yet to
    /// take in.
    pub remote_pending: usize,
    /// Arenas that there are, automatic and created.
    pub arenas_open: u32,
    /// Caches that threads have now.
    pub thread_caches: u32,
    /// Blocks that were freed into slabs of another cache or of a bin, since the start.
    pub remote_frees: u64,
    /// Requests served by thread caches, since the start.
    pub requests: u64,
    /// Entries into arenas that did not wait. Source: vmalloc(3), `n_open`.
    pub n_open: u64,
    /// Entries that waited. Source: vmalloc(3), `n_lock`.
    pub n_lock: u64,
    /// Entries that searched for a free arena. Source: vmalloc(3), `n_probe`.
    pub n_probe: u64,
    /// Blocks left behind in other threads' caches by forks.
    pub fork_abandoned: u64,
    /// Background threads that run now. Source: jemalloc(3), `stats.background_thread.*`.
    pub background_threads: usize,
    /// Passes that background threads made, since the start.
    pub background_runs: u64,
    /// Nanoseconds between two passes of background threads, on average.
    pub background_interval: u64,
    /// System calls that gave pages back, since the start.
    pub purges: u64,
    /// Pages given back by the system calls of `purges`.
    pub purged_pages: u64,
    /// Calls of `realloc(p, 0)` with a block, since the start. Source: jemalloc(3) 5.3.
    pub zero_reallocs: u64,
    /// Allocations that returned null, since the start.
    pub out_of_memory: u64,
    /// Of `metadata`, bytes of records of runs. Source: jemalloc(3) 5.3.
    pub metadata_edata: usize,
    /// Of `metadata`, bytes of the map of addresses.
    pub metadata_rtree: usize,
    /// Huge pages requested under the allocator's records.
    pub metadata_thp: usize,
    /// Counts of guarded samples.
    pub guarded: GuardedSamples,
    /// What the slow paths did.
    pub work: Work,
}
