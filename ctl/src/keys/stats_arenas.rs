//! `stats.arenas.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};
use crate::typed::Text;

/// `stats.arenas.<i>.abandoned_vm` (bytes): of addresses that the system did not take back.
pub const ABANDONED_VM: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.abandoned_vm");

/// `stats.arenas.<i>.base` (bytes): of records; those of no arena are arena 0's.
pub const BASE: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.base");

/// `stats.arenas.<i>.dirty_decay_ms` (ms): how long dirty pages stay.
pub const DIRTY_DECAY_MS: Key<Read<isize>, 1> = Key::new("stats.arenas.<i>.dirty_decay_ms");

/// `stats.arenas.<i>.dirty_nmadvise` (count): system calls that gave them back.
pub const DIRTY_NMADVISE: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.dirty_nmadvise");

/// `stats.arenas.<i>.dirty_npurge` (count): batches of dirty pages given back.
pub const DIRTY_NPURGE: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.dirty_npurge");

/// `stats.arenas.<i>.dirty_purged` (count): dirty pages given back.
pub const DIRTY_PURGED: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.dirty_purged");

/// `stats.arenas.<i>.dss`: its use of the data segment.
pub const DSS: Key<Read<Text>, 1> = Key::new("stats.arenas.<i>.dss");

/// `stats.arenas.<i>.extent_avail` (count): spare records of runs.
pub const EXTENT_AVAIL: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.extent_avail");

/// `stats.arenas.<i>.internal` (bytes): of blocks that the allocator allocates for itself: none.
pub const INTERNAL: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.internal");

/// `stats.arenas.<i>.kept_bytes` (bytes): in large blocks that threads keep.
pub const KEPT_BYTES: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.kept_bytes");

/// `stats.arenas.<i>.mapped` (bytes): in mapped extents and records.
pub const MAPPED: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.mapped");

/// `stats.arenas.<i>.metadata_edata` (bytes): of records of runs.
pub const METADATA_EDATA: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.metadata_edata");

/// `stats.arenas.<i>.metadata_rtree` (bytes): of the map of addresses.
pub const METADATA_RTREE: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.metadata_rtree");

/// `stats.arenas.<i>.metadata_thp` (count): huge pages under records.
pub const METADATA_THP: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.metadata_thp");

/// `stats.arenas.<i>.muzzy_decay_ms` (ms): how long muzzy pages stay.
pub const MUZZY_DECAY_MS: Key<Read<isize>, 1> = Key::new("stats.arenas.<i>.muzzy_decay_ms");

/// `stats.arenas.<i>.muzzy_nmadvise` (count): system calls that gave them back.
pub const MUZZY_NMADVISE: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.muzzy_nmadvise");

/// `stats.arenas.<i>.muzzy_npurge` (count): batches of muzzy pages given back.
pub const MUZZY_NPURGE: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.muzzy_npurge");

/// `stats.arenas.<i>.muzzy_purged` (count): muzzy pages given back.
pub const MUZZY_PURGED: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.muzzy_purged");

/// `stats.arenas.<i>.nthreads` (count): threads whose home the arena is.
pub const NTHREADS: Key<Read<u32>, 1> = Key::new("stats.arenas.<i>.nthreads");

/// `stats.arenas.<i>.pactive` (count): pages in slabs and large blocks.
pub const PACTIVE: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.pactive");

/// `stats.arenas.<i>.pdirty` (count): unused pages that have memory.
pub const PDIRTY: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.pdirty");

/// `stats.arenas.<i>.pmuzzy` (count): unused pages that the system may have taken.
pub const PMUZZY: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.pmuzzy");

/// `stats.arenas.<i>.resident` (bytes): in physical memory, at most.
pub const RESIDENT: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.resident");

/// `stats.arenas.<i>.retained` (bytes): of addresses kept without memory.
pub const RETAINED: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.retained");

/// `stats.arenas.<i>.slab_bytes` (bytes): in slabs of blocks.
pub const SLAB_BYTES: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.slab_bytes");

/// `stats.arenas.<i>.slab_used_bytes` (bytes): in blocks out of slabs.
pub const SLAB_USED_BYTES: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.slab_used_bytes");

/// `stats.arenas.<i>.tcache_bytes` (bytes): in thread caches.
pub const TCACHE_BYTES: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.tcache_bytes");

/// `stats.arenas.<i>.tcache_stashed_bytes` (bytes): in thread caches, of blocks in quarantine.
pub const TCACHE_STASHED_BYTES: Key<Read<usize>, 1> =
    Key::new("stats.arenas.<i>.tcache_stashed_bytes");

/// `stats.arenas.<i>.uptime` (ns): since the arena was made.
pub const UPTIME: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.uptime");

#[path = "stats_arenas_bins.rs"]
pub mod bins;

/// `stats.arenas.extents.*`
pub mod extents {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.extents.<j>.dirty_bytes` (bytes): in unused runs that have memory.
    pub const DIRTY_BYTES: Key<Read<usize>, 2> =
        Key::new("stats.arenas.<i>.extents.<j>.dirty_bytes");

    /// `stats.arenas.<i>.extents.<j>.muzzy_bytes` (bytes): in runs, memory perhaps gone.
    pub const MUZZY_BYTES: Key<Read<usize>, 2> =
        Key::new("stats.arenas.<i>.extents.<j>.muzzy_bytes");

    /// `stats.arenas.<i>.extents.<j>.ndirty` (count): unused runs that have memory.
    pub const NDIRTY: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.extents.<j>.ndirty");

    /// `stats.arenas.<i>.extents.<j>.nmuzzy` (count): unused runs, memory perhaps gone.
    pub const NMUZZY: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.extents.<j>.nmuzzy");

    /// `stats.arenas.<i>.extents.<j>.nretained` (count): unused runs without memory.
    pub const NRETAINED: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.extents.<j>.nretained");

    /// `stats.arenas.<i>.extents.<j>.retained_bytes` (bytes): in runs without memory.
    pub const RETAINED_BYTES: Key<Read<usize>, 2> =
        Key::new("stats.arenas.<i>.extents.<j>.retained_bytes");
}

/// `stats.arenas.large.*`
pub mod large {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.large.allocated` (bytes): in large blocks of the program.
    pub const ALLOCATED: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.large.allocated");

    /// `stats.arenas.<i>.large.ndalloc` (count): large blocks that came back.
    pub const NDALLOC: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.large.ndalloc");

    /// `stats.arenas.<i>.large.nfills` (count): refills of thread caches.
    pub const NFILLS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.large.nfills");

    /// `stats.arenas.<i>.large.nflushes` (count): batches that thread caches returned.
    pub const NFLUSHES: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.large.nflushes");

    /// `stats.arenas.<i>.large.nmalloc` (count): large blocks that left the arena.
    pub const NMALLOC: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.large.nmalloc");

    /// `stats.arenas.<i>.large.nrequests` (count): requests for large blocks.
    pub const NREQUESTS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.large.nrequests");
}

/// `stats.arenas.lextents.*`
pub mod lextents {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.lextents.<j>.curlextents` (count): blocks out now.
    pub const CURLEXTENTS: Key<Read<usize>, 2> =
        Key::new("stats.arenas.<i>.lextents.<j>.curlextents");

    /// `stats.arenas.<i>.lextents.<j>.ndalloc` (count): blocks that came back.
    pub const NDALLOC: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.lextents.<j>.ndalloc");

    /// `stats.arenas.<i>.lextents.<j>.nmalloc` (count): blocks that left the arena.
    pub const NMALLOC: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.lextents.<j>.nmalloc");

    /// `stats.arenas.<i>.lextents.<j>.nrequests` (count): requests, those kept too.
    pub const NREQUESTS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.lextents.<j>.nrequests");
}

#[path = "stats_arenas_mutexes.rs"]
pub mod mutexes;

/// `stats.arenas.small.*`
pub mod small {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.small.allocated` (bytes): in small blocks of the program.
    pub const ALLOCATED: Key<Read<usize>, 1> = Key::new("stats.arenas.<i>.small.allocated");

    /// `stats.arenas.<i>.small.ndalloc` (count): small blocks that came home.
    pub const NDALLOC: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.small.ndalloc");

    /// `stats.arenas.<i>.small.nfills` (count): refills of thread caches.
    pub const NFILLS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.small.nfills");

    /// `stats.arenas.<i>.small.nflushes` (count): batches that thread caches returned.
    pub const NFLUSHES: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.small.nflushes");

    /// `stats.arenas.<i>.small.nmalloc` (count): small blocks that left slabs.
    pub const NMALLOC: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.small.nmalloc");

    /// `stats.arenas.<i>.small.nrequests` (count): requests for small blocks.
    pub const NREQUESTS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.small.nrequests");
}
