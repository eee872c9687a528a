//! One arena, or several together, as plain numbers.

use super::mutex_stats::MutexStats;
use crate::ground::size_class::{
    CLASSES, MAX_CACHED, PAGE_CLASSES, SizeClass, page_class_floor, page_class_pages,
};
use crate::ground::units::PAGE;

/// Small classes, up to 32 KiB: their blocks come from slabs (`arenas.nbins`). jemalloc's end at
/// 14 KiB.
pub const BINS: usize = CLASSES;
/// Large classes: each block is a run of pages (`arenas.nlextents`).
pub const LEXTENTS: usize = PAGE_CLASSES - SHORT_RUNS;
/// Classes of runs of pages.
pub const PAGE_RUN_CLASSES: usize = PAGE_CLASSES;
/// Classes of runs that are shorter than the smallest large class.
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

            /// Adds another one's numbers.
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

/// What can be counted from some point on.
pub(super) trait Since {
    /// Takes away what was counted before.
    fn since(&mut self, before: &Self);
}

summed! {
    /// One class of blocks that come from slabs. Exact, each block charged to the arena of its
    /// slab, but for what a field says. Source: jemalloc(3), `stats.arenas.<i>.bins.<j>.*`.
    BinStats {
        /// Blocks that left slabs, for thread caches or past them.
        nmalloc: u64,
        /// Blocks that came home.
        ndalloc: u64,
        /// Requests, those that a thread cache served by itself among them: charged to the arena
        /// that was the thread's home.
        nrequests: u64,
        /// Blocks out of slabs now, those in thread caches among them: `nmalloc - ndalloc`.
        curregs: usize,
        /// Of those, blocks in thread caches: charged to the arena that is the thread's home, as
        /// long as it has so many out.
        cached: usize,
        /// Refills of thread caches.
        nfills: u64,
        /// Batches that thread caches sent home.
        nflushes: u64,
        /// Slabs ever made.
        nslabs: u64,
        /// Slabs that a thread cache took over to go on allocating from them.
        nreslabs: u64,
        /// Slabs now.
        curslabs: usize,
        /// Slabs with free blocks: those that a thread cache owns are charged to its home.
        nonfull_slabs: usize,
    }
}

summed! {
    /// One class of large blocks. Exact. Source: jemalloc(3), `stats.arenas.<i>.lextents.<j>.*`.
    LargeStats {
        /// Blocks that left the arena.
        nmalloc: u64,
        /// Blocks that came back.
        ndalloc: u64,
        /// Requests, those that were served by a block the thread had kept among them.
        nrequests: u64,
        /// Blocks out now, those that threads keep among them: `nmalloc - ndalloc`.
        curlextents: usize,
    }
}

summed! {
    /// Unused runs of pages of one class of lengths. Source: jemalloc(3) 5.2,
    /// `stats.arenas.<i>.extents.<j>.*`.
    ExtentStats {
        /// Runs that still have memory, and bytes in them.
        ndirty: usize,
        /// Bytes in them.
        dirty_bytes: usize,
        /// Runs that the system may have taken.
        nmuzzy: usize,
        /// Bytes in them.
        muzzy_bytes: usize,
        /// Runs of addresses without memory.
        nretained: usize,
        /// Bytes in them.
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
        /// Blocks that came back.
        ndalloc: u64,
        /// Requests.
        nrequests: u64,
        /// Refills of thread caches.
        nfills: u64,
        /// Batches that thread caches sent home.
        nflushes: u64,
    }
}

summed! {
    /// Giving back of pages. Source: jemalloc(3), `stats.arenas.<i>.{dirty,muzzy}_*`.
    PurgeStats {
        /// Batches.
        npurge: u64,
        /// System calls.
        nmadvise: u64,
        /// Pages.
        purged: u64,
    }
}

summed! {
    /// What an arena has, in bytes unless a name begins with p (pages) or n (things).
    ArenaSpace {
        /// Threads whose home it is.
        nthreads: u32,
        /// In slabs and large blocks.
        pactive: usize,
        /// Unused, with memory.
        pdirty: usize,
        /// Unused; the system may have taken them.
        pmuzzy: usize,
        /// In runs that are not retained, and records.
        mapped: usize,
        /// Addresses without memory.
        retained: usize,
        /// In physical memory, at most.
        resident: usize,
        /// Of records; those that belong to no arena are arena 0's.
        base: usize,
        /// Of these, records of runs.
        metadata_edata: usize,
        /// Of these, the map of addresses.
        metadata_rtree: usize,
        /// Huge pages asked for under records: all of them in arena 0.
        metadata_thp: usize,
        /// Records of runs that wait for their next use.
        extent_avail: usize,
        /// Addresses that the system did not take back.
        abandoned_vm: usize,
        /// In thread caches: blocks, and large blocks that threads keep.
        tcache_bytes: usize,
        /// Of these, in quarantine.
        tcache_stashed_bytes: usize,
        /// In large blocks that threads keep.
        kept_bytes: usize,
        /// In slabs.
        slab_bytes: usize,
        /// In slabs, in blocks that are out of them.
        slab_used_bytes: usize,
    }
}

/// Everything that is known of one arena. Source: jemalloc(3), `stats.arenas.<i>.*`.
#[derive(Clone, Debug)]
pub struct ArenaStats {
    /// Whether there is such an arena.
    pub initialized: bool,
    /// Nanoseconds since it was made.
    pub uptime: u64,
    /// How long unused dirty pages are kept, in milliseconds; -1: for ever.
    pub dirty_decay_ms: isize,
    /// The same for muzzy pages.
    pub muzzy_decay_ms: isize,
    /// What it has.
    pub space: ArenaSpace,
    /// Giving back of dirty pages.
    pub dirty: PurgeStats,
    /// Giving back of muzzy pages.
    pub muzzy: PurgeStats,
    /// Small classes together.
    pub small: ClassesStats,
    /// Large classes together.
    pub large: ClassesStats,
    /// Small classes.
    pub bins: [BinStats; BINS],
    /// Their locks.
    pub bin_mutexes: [MutexStats; BINS],
    /// Large classes.
    pub lextents: [LargeStats; LEXTENTS],
    /// Unused runs of pages.
    pub extents: [ExtentStats; PAGE_RUN_CLASSES],
    /// The lock of its pages.
    pub pages_mutex: MutexStats,
    /// The locks of the caches whose home it is.
    pub caches_mutex: MutexStats,
    /// The lock of the allocator's records, in arena 0.
    pub base_mutex: MutexStats,
    /// Requests as the last walk saw them: a countdown that is just being armed is seen too far on.
    pub(super) seen_requests: [u64; BINS],
}

impl ArenaStats {
    /// Forgets all but the requests seen.
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

    /// Bytes in blocks that the program has.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.small.allocated + self.large.allocated
    }

    /// Adds another arena's numbers.
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
    /// Takes the counts of earlier arenas of the same index away.
    pub(super) fn since(&mut self, before: &ArenaStats) {
        each(&mut self.bins, &before.bins, BinStats::since);
        each(&mut self.lextents, &before.lextents, LargeStats::since);
        self.dirty.since(&before.dirty);
        self.muzzy.since(&before.muzzy);
    }

    /// Keeps what has been counted, and none of what there is now.
    pub(super) fn keep_counts(&mut self) {
        for bin in &mut self.bins {
            // What was left was discarded.
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

    /// What was counted from here to `now`.
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

/// Bytes in a block of a class that comes from slabs; 0: there is no such class.
#[must_use]
pub fn slab_class_size(class: usize) -> usize {
    SizeClass::all().nth(class).map_or(0, SizeClass::size)
}

/// Blocks in a slab of a class, and bytes of the slab; 0: there is no such class.
#[must_use]
pub fn slab_class_slab(class: usize) -> (usize, usize) {
    let row = SizeClass::all().nth(class).map(SizeClass::row);
    row.map_or((0, 0), |row| (usize::from(row.slots), usize::from(row.slab_pages) * PAGE))
}

/// Bytes in a block of a large class; 0: there is no such class.
#[must_use]
pub fn lextent_size(class: usize) -> usize {
    if class < LEXTENTS { page_class_pages(class + SHORT_RUNS) * PAGE } else { 0 }
}

/// The large class of blocks of a class of runs of pages. Shorter blocks, which exist for the sake
/// of their alignment, count as of the smallest.
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
