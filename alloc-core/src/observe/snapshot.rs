//! Plain numbers, taken in one walk.

use super::samples::GuardedSamples;
use super::work::Work;

/// Totals over all arenas and caches. Bytes, unless a name says otherwise. Source: jemalloc(3),
/// `stats.*`, for the first six.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// In blocks that the program has.
    pub allocated: usize,
    /// In pages of slabs and large blocks.
    pub active: usize,
    /// Of the allocator's own records.
    pub metadata: usize,
    /// In physical memory, at most: active, dirty and metadata.
    pub resident: usize,
    /// In runs of pages that are not retained.
    pub mapped: usize,
    /// Reserved addresses without memory.
    pub retained: usize,
    /// Of those, free pages inside slabs that are in use.
    pub holes: usize,
    /// Unused pages that still have memory.
    pub dirty: usize,
    /// Unused pages that the system may have taken.
    pub muzzy: usize,
    /// In blocks that lie in thread caches.
    pub cached: usize,
    /// Of those, in large blocks that threads keep.
    pub kept: usize,
    /// In blocks freed remotely that their slabs' guards have yet to take in.
    pub remote_pending: usize,
    /// Arenas that have been made.
    pub arenas_open: u32,
    /// Caches that a thread has now.
    pub thread_caches: u32,
    /// Blocks that were freed into slabs of another cache or of a bin, ever.
    pub remote_frees: u64,
    /// Requests served by thread caches, ever.
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
    /// Passes that they made, ever.
    pub background_runs: u64,
    /// Nanoseconds between two of their passes, on average.
    pub background_interval: u64,
    /// System calls that gave pages back, ever.
    pub purges: u64,
    /// Pages given back by them.
    pub purged_pages: u64,
    /// Calls of `realloc(p, 0)` with a block, ever. Source: jemalloc(3) 5.3.
    pub zero_reallocs: u64,
    /// Allocations that were answered null, ever.
    pub out_of_memory: u64,
    /// Bytes of records of runs, among `metadata`. Source: jemalloc(3) 5.3.
    pub metadata_edata: usize,
    /// Bytes of the map of addresses, among `metadata`.
    pub metadata_rtree: usize,
    /// Huge pages asked for under records.
    pub metadata_thp: usize,
    /// Guarded samples.
    pub guarded: GuardedSamples,
    /// What the slow paths did.
    pub work: Work,
}
