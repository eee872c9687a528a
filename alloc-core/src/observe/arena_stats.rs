//! Statistics of one arena, or of several together, as plain numbers.

use super::mutex_stats::MutexStats;
use crate::ground::size_class::{
    CLASSES, MAX_CACHED, PAGE_CLASSES, SizeClass, page_class_floor, page_class_pages,
};
use crate::ground::units::PAGE;

/// The number of small classes, up to 32 KiB. Their blocks come from slabs (`arenas.nbins`). The
/// small classes of jemalloc end at 14 KiB.
pub const BINS: usize = CLASSES;
/// The number of large classes. Each of their blocks is a run of pages (`arenas.nlextents`).
pub const LEXTENTS: usize = PAGE_CLASSES - SHORT_RUNS;
/// The number of classes of runs of pages.
pub const PAGE_RUN_CLASSES: usize = PAGE_CLASSES;
/// The number of classes of runs that are shorter than the smallest large class.
const SHORT_RUNS: usize = page_class_floor(MAX_CACHED / PAGE) + 1;

macro_rules! summed {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl $name {
            pub(super) const EMPTY: $name = $name { $($field: 0,)* };

            /// Adds the numbers of `other`.
            pub fn add(&mut self, other: &$name) {
                $(self.$field += other.$field;)*
            }
        }

        impl Since for $name {
            fn since(&mut self, before: &$name) {
                $(self.$field = self.$field.saturating_sub(before.$field);)*
            }
        }
    };
}

/// Statistics that can be counted from some point on.
pub(super) trait Since {
    /// Subtracts what was counted before.
    fn since(&mut self, before: &Self);
}

summed! {
    /// Statistics of one small class. The numbers are exact, and each block is charged to the arena
    /// of its slab, unless a field says otherwise. Source: jemalloc(3),
    /// `stats.arenas.<i>.bins.<j>.*`.
    BinStats {
        /// Blocks that left slabs, to thread caches or past them.
        nmalloc: u64,
        /// Blocks that were returned to slabs.
        ndalloc: u64,
        /// Requests, including those that a thread cache served by itself. A request is charged to
        /// the arena that was then the thread's home arena.
        nrequests: u64,
        /// Blocks out of slabs now, including those in thread caches: `nmalloc - ndalloc`.
        curregs: usize,
        /// Of `curregs`, blocks in thread caches. They are charged to the home arena of the thread,
        /// up to the number of blocks that this arena has out.
        cached: usize,
        /// Refills of thread caches.
        nfills: u64,
        /// Batches that thread caches returned to slabs.
        nflushes: u64,
        /// Slabs made, since the start.
        nslabs: u64,
        /// Slabs that a thread cache took over, to allocate from them.
        nreslabs: u64,
        /// Slabs now.
        curslabs: usize,
        /// Slabs with free blocks. A slab that a thread cache owns is charged to the cache's home
        /// arena.
        nonfull_slabs: usize,
    }
}

summed! {
    /// Statistics of one large class. The numbers are exact. Source: jemalloc(3),
    /// `stats.arenas.<i>.lextents.<j>.*`.
    LargeStats {
        /// Blocks that left the arena.
        nmalloc: u64,
        /// Blocks that were returned to the arena.
        ndalloc: u64,
        /// Requests, including those served with a block that the thread had kept.
        nrequests: u64,
        /// Blocks out of the arena now, including those that threads keep: `nmalloc - ndalloc`.
        curlextents: usize,
    }
}

summed! {
    /// Statistics of the unused runs of pages of one class of lengths. Source: jemalloc(3) 5.2,
    /// `stats.arenas.<i>.extents.<j>.*`.
    ExtentStats {
        /// Runs that still have memory.
        ndirty: usize,
        /// Bytes in runs that still have memory.
        dirty_bytes: usize,
        /// Runs whose memory the system may have taken.
        nmuzzy: usize,
        /// Bytes in runs whose memory the system may have taken.
        muzzy_bytes: usize,
        /// Runs of addresses without memory.
        nretained: usize,
        /// Bytes in runs of addresses without memory.
        retained_bytes: usize,
    }
}

summed! {
    /// Sums over the small or over the large classes. Source: jemalloc(3),
    /// `stats.arenas.<i>.{small,large}.*`.
    ClassesStats {
        /// Bytes in blocks that the program has.
        allocated: usize,
        /// Blocks that left slabs or the arena.
        nmalloc: u64,
        /// Blocks that were returned to slabs or to the arena.
        ndalloc: u64,
        /// Requests.
        nrequests: u64,
        /// Refills of thread caches.
        nfills: u64,
        /// Batches that thread caches returned to slabs.
        nflushes: u64,
    }
}

summed! {
    /// Statistics of purging, which gives the memory of pages back. Source: jemalloc(3),
    /// `stats.arenas.<i>.{dirty,muzzy}_*`.
    PurgeStats {
        /// Batches of purging.
        npurge: u64,
        /// System calls that gave pages back.
        nmadvise: u64,
        /// Pages given back.
        purged: u64,
    }
}

summed! {
    /// What an arena has, in bytes, unless a name begins with p (pages) or n (a number of things).
    ArenaSpace {
        /// Threads whose home arena it is.
        nthreads: u32,
        /// Pages in slabs and large blocks.
        pactive: usize,
        /// Unused pages that still have memory.
        pdirty: usize,
        /// Unused pages whose memory the system may have taken.
        pmuzzy: usize,
        /// Bytes in runs that are not retained, and of records.
        mapped: usize,
        /// Bytes of addresses without memory.
        retained: usize,
        /// Bytes in physical memory, at most.
        resident: usize,
        /// Bytes of records. Records that belong to no arena are charged to arena 0.
        base: usize,
        /// Of `base`, bytes of records of runs.
        metadata_edata: usize,
        /// Of `base`, bytes of the map of addresses.
        metadata_rtree: usize,
        /// Huge pages requested under records. All of them are charged to arena 0.
        metadata_thp: usize,
        /// Unused records of runs, kept for the next runs.
        extent_avail: usize,
        /// Bytes of addresses that the system did not take back.
        abandoned_vm: usize,
        /// Bytes in thread caches: in blocks, and in large blocks that threads keep.
        tcache_bytes: usize,
        /// Of `tcache_bytes`, bytes in quarantine.
        tcache_stashed_bytes: usize,
        /// Bytes in large blocks that threads keep.
        kept_bytes: usize,
        /// Bytes in slabs.
        slab_bytes: usize,
        /// Bytes in blocks that are out of slabs.
        slab_used_bytes: usize,
    }
}

/// All statistics of one arena. Source: jemalloc(3), `stats.arenas.<i>.*`.
#[derive(Clone, Debug)]
pub struct ArenaStats {
    /// Whether the arena exists.
    pub initialized: bool,
    /// Nanoseconds since the arena was made.
    pub uptime: u64,
    /// How long unused dirty pages are kept, in milliseconds. -1 means for ever.
    pub dirty_decay_ms: isize,
    /// How long unused muzzy pages are kept, in milliseconds. -1 means for ever.
    pub muzzy_decay_ms: isize,
    /// What the arena has.
    pub space: ArenaSpace,
    /// Statistics of purging dirty pages.
    pub dirty: PurgeStats,
    /// Statistics of purging muzzy pages.
    pub muzzy: PurgeStats,
    /// Sums over the small classes.
    pub small: ClassesStats,
    /// Sums over the large classes.
    pub large: ClassesStats,
    /// Statistics of each small class.
    pub bins: [BinStats; BINS],
    /// The lock of the bin of each small class.
    pub bin_mutexes: [MutexStats; BINS],
    /// Statistics of each large class.
    pub lextents: [LargeStats; LEXTENTS],
    /// Unused runs of pages, by class of lengths.
    pub extents: [ExtentStats; PAGE_RUN_CLASSES],
    /// The lock of the arena's pages.
    pub pages_mutex: MutexStats,
    /// The locks of the caches whose home arena it is.
    pub caches_mutex: MutexStats,
    /// The lock of the allocator's records, in arena 0.
    pub base_mutex: MutexStats,
    /// Requests as the last walk saw them, so that the number never decreases. While a countdown is
    /// armed, a walk sees too many requests.
    pub(super) seen_requests: [u64; BINS],
}

impl ArenaStats {
    /// Clears all but the requests seen.
    pub(super) fn clear(&mut self) {
        for (seen, bin) in self.seen_requests.iter_mut().zip(&self.bins) {
            *seen = bin.nrequests;
        }
        self.initialized = false;
        (self.uptime, self.dirty_decay_ms, self.muzzy_decay_ms) = (0, 0, 0);
        self.space = ArenaSpace::EMPTY;
        (self.dirty, self.muzzy) = (PurgeStats::EMPTY, PurgeStats::EMPTY);
        (self.small, self.large) = (ClassesStats::EMPTY, ClassesStats::EMPTY);
        self.bins.fill(BinStats::EMPTY);
        self.bin_mutexes.fill(MutexStats::EMPTY);
        self.lextents.fill(LargeStats::EMPTY);
        self.extents.fill(ExtentStats::EMPTY);
        self.pages_mutex = MutexStats::EMPTY;
        self.caches_mutex = MutexStats::EMPTY;
        self.base_mutex = MutexStats::EMPTY;
    }

    /// Returns the bytes in blocks that the program has.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.small.allocated + self.large.allocated
    }

    /// Adds the statistics of another arena.
    pub(super) fn add(&mut self, other: &ArenaStats) {
        self.initialized |= other.initialized;
        self.uptime = self.uptime.max(other.uptime);
        self.space.add(&other.space);
        self.dirty.add(&other.dirty);
        self.muzzy.add(&other.muzzy);
        self.small.add(&other.small);
        self.large.add(&other.large);
        each(&mut self.bins, &other.bins, BinStats::add);
        each(&mut self.bin_mutexes, &other.bin_mutexes, MutexStats::add);
        each(&mut self.lextents, &other.lextents, LargeStats::add);
        each(&mut self.extents, &other.extents, ExtentStats::add);
        self.pages_mutex.add(&other.pages_mutex);
        self.caches_mutex.add(&other.caches_mutex);
        self.base_mutex.add(&other.base_mutex);
    }
}

impl ArenaStats {
    /// Subtracts the counts of earlier arenas of the same index.
    pub(super) fn since(&mut self, before: &ArenaStats) {
        each(&mut self.bins, &before.bins, BinStats::since);
        each(&mut self.lextents, &before.lextents, LargeStats::since);
        self.dirty.since(&before.dirty);
        self.muzzy.since(&before.muzzy);
    }

    /// Keeps the counts since the start, and clears the present state.
    pub(super) fn keep_counts(&mut self) {
        for bin in &mut self.bins {
            // Blocks that were still out were discarded.
            bin.nmalloc = bin.nmalloc.max(bin.ndalloc);
            bin.ndalloc = bin.nmalloc;
            (bin.curregs, bin.cached, bin.curslabs, bin.nonfull_slabs) = (0, 0, 0, 0);
        }
        for large in &mut self.lextents {
            large.nmalloc = large.nmalloc.max(large.ndalloc);
            (large.ndalloc, large.curlextents) = (large.nmalloc, 0);
        }
        self.extents.fill(ExtentStats::EMPTY);
        self.space = ArenaSpace::EMPTY;
        (self.small, self.large) = (ClassesStats::EMPTY, ClassesStats::EMPTY);
        self.bin_mutexes.fill(MutexStats::EMPTY);
        (self.pages_mutex, self.caches_mutex) = (MutexStats::EMPTY, MutexStats::EMPTY);
        self.seen_requests = [0; BINS];
    }

    /// Replaces the counts by what was counted from them to `now`.
    pub(super) fn become_difference(&mut self, now: &ArenaStats) {
        fn difference<T: Since + Copy>(before: &mut T, now: &T) {
            let mut counted = *now;
            counted.since(before);
            *before = counted;
        }
        each(&mut self.bins, &now.bins, difference);
        each(&mut self.lextents, &now.lextents, difference);
        difference(&mut self.dirty, &now.dirty);
        difference(&mut self.muzzy, &now.muzzy);
    }
}

fn each<T>(all: &mut [T], others: &[T], add: fn(&mut T, &T)) {
    for (one, other) in all.iter_mut().zip(others) {
        add(one, other);
    }
}

/// Returns the bytes in a block of a small class, or 0 if there is no such class.
#[must_use]
pub fn slab_class_size(class: usize) -> usize {
    SizeClass::all().nth(class).map_or(0, SizeClass::size)
}

/// Returns the blocks in a slab of a small class, and the bytes of the slab. Both are 0 if there is
/// no such class.
#[must_use]
pub fn slab_class_slab(class: usize) -> (usize, usize) {
    let row = SizeClass::all().nth(class).map(SizeClass::row);
    row.map_or((0, 0), |row| (usize::from(row.slots), usize::from(row.slab_pages) * PAGE))
}

/// Returns the bytes in a block of a large class, or 0 if there is no such class.
#[must_use]
pub fn lextent_size(class: usize) -> usize {
    if class < LEXTENTS { page_class_pages(class + SHORT_RUNS) * PAGE } else { 0 }
}

/// Returns the large class of a class of runs of pages. Shorter runs, which are blocks because of
/// their alignment, count as the smallest large class.
pub(super) fn lextent_of_run(class: usize) -> usize {
    class.saturating_sub(SHORT_RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_classes_begin_where_slabs_end() {
        assert_eq!((slab_class_size(0), slab_class_size(BINS - 1)), (8, 32768));
        assert_eq!((slab_class_size(BINS), lextent_size(0)), (0, 40960));
        assert_eq!(lextent_of_run(0), 0);
        assert_eq!((lextent_size(LEXTENTS - 1), lextent_size(LEXTENTS)), (1 << 48, 0));
    }
}
