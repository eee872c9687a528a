//! `stats.arenas.bins.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};

/// `stats.arenas.<i>.bins.<j>.cached` (count): blocks of the class in thread caches.
pub const CACHED: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.bins.<j>.cached");

/// `stats.arenas.<i>.bins.<j>.curregs` (count): blocks out of slabs, those in caches too.
pub const CURREGS: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.bins.<j>.curregs");

/// `stats.arenas.<i>.bins.<j>.curslabs` (count): slabs of the class now.
pub const CURSLABS: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.bins.<j>.curslabs");

/// `stats.arenas.<i>.bins.<j>.ndalloc` (count): blocks of the class that came home.
pub const NDALLOC: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.ndalloc");

/// `stats.arenas.<i>.bins.<j>.nfills` (count): refills of thread caches.
pub const NFILLS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nfills");

/// `stats.arenas.<i>.bins.<j>.nflushes` (count): batches that thread caches returned.
pub const NFLUSHES: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nflushes");

/// `stats.arenas.<i>.bins.<j>.nmalloc` (count): blocks of the class that left slabs.
pub const NMALLOC: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nmalloc");

/// `stats.arenas.<i>.bins.<j>.nonfull_slabs` (count): slabs with free blocks, also those that
/// blocks are taken from.
pub const NONFULL_SLABS: Key<Read<usize>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nonfull_slabs");

/// `stats.arenas.<i>.bins.<j>.nrequests` (count): requests, those of thread caches too.
pub const NREQUESTS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nrequests");

/// `stats.arenas.<i>.bins.<j>.nreslabs` (count): slabs that caches took over.
pub const NRESLABS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nreslabs");

/// `stats.arenas.<i>.bins.<j>.nslabs` (count): slabs of the class ever made.
pub const NSLABS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.nslabs");

/// `stats.arenas.bins.mutex.*`
pub mod mutex {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.bins.<j>.mutex.max_num_thds` (count): the bin: most threads that waited at
    /// once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 2> =
        Key::new("stats.arenas.<i>.bins.<j>.mutex.max_num_thds");

    /// `stats.arenas.<i>.bins.<j>.mutex.max_wait_time` (ns): the bin: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 2> =
        Key::new("stats.arenas.<i>.bins.<j>.mutex.max_wait_time");

    /// `stats.arenas.<i>.bins.<j>.mutex.num_ops` (count): the bin: times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.mutex.num_ops");

    /// `stats.arenas.<i>.bins.<j>.mutex.num_owner_switch` (count): the bin: times that the taker
    /// changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 2> =
        Key::new("stats.arenas.<i>.bins.<j>.mutex.num_owner_switch");

    /// `stats.arenas.<i>.bins.<j>.mutex.num_spin_acq` (count): the bin: times that spinning was
    /// enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 2> =
        Key::new("stats.arenas.<i>.bins.<j>.mutex.num_spin_acq");

    /// `stats.arenas.<i>.bins.<j>.mutex.num_wait` (count): the bin: times that taking it had to
    /// block.
    pub const NUM_WAIT: Key<Read<u64>, 2> = Key::new("stats.arenas.<i>.bins.<j>.mutex.num_wait");

    /// `stats.arenas.<i>.bins.<j>.mutex.total_wait_time` (ns): the bin: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 2> =
        Key::new("stats.arenas.<i>.bins.<j>.mutex.total_wait_time");
}
