//! `thread.*`. Made from the rows of the namespace.

use crate::key::{Act, Key, Read, ReadWrite};
use core::ffi::c_void;

/// `thread.allocated` (bytes): what this thread has ever allocated, by usable size; a realloc that
/// leaves a block as long as it is counts nothing (jemalloc: as allocated and freed), any other
/// counts both.
pub const ALLOCATED: Key<Read<u64>> = Key::new("thread.allocated");

/// `thread.allocatedp`: where thread.allocated stands, for the thread's life; once asked for, it
/// moves with every operation (opt.allocatedp_live).
pub const ALLOCATEDP: Key<Read<*mut c_void>> = Key::new("thread.allocatedp");

/// `thread.arena`: the arena this thread allocates from; a write moves it there for good (EFAULT:
/// no such arena; EPERM: one of those by CPU).
pub const ARENA: Key<ReadWrite<u32>> = Key::new("thread.arena");

/// `thread.deallocated` (bytes): what this thread has ever freed, by usable size; of a realloc as
/// thread.allocated.
pub const DEALLOCATED: Key<Read<u64>> = Key::new("thread.deallocated");

/// `thread.deallocatedp`: where thread.deallocated stands, as thread.allocatedp.
pub const DEALLOCATEDP: Key<Read<*mut c_void>> = Key::new("thread.deallocatedp");

/// `thread.idle`: says that this thread will do nothing for long: its cache keeps nothing.
pub const IDLE: Key<Act> = Key::new("thread.idle");

/// `thread.peak.*`
pub mod peak {
    use crate::key::{Act, Key, Read};

    /// `thread.peak.read` (bytes): most that this thread had allocated and not freed since the last
    /// reset, within a megabyte.
    pub const READ: Key<Read<u64>> = Key::new("thread.peak.read");

    /// `thread.peak.reset`: begins thread.peak.read anew.
    pub const RESET: Key<Act> = Key::new("thread.peak.reset");
}

/// `thread.prof.*`
pub mod prof {
    use crate::key::{Key, ReadWrite};
    use crate::typed::Text;

    /// `thread.prof.active`: whether this thread is sampled while the process is.
    pub const ACTIVE: Key<ReadWrite<bool>> = Key::new("thread.prof.active");

    /// `thread.prof.name`: name of this thread in profiles, at most 15 bytes; read or written, not
    /// both (EPERM); EINVAL for unprintable characters.
    pub const NAME: Key<ReadWrite<Text>> = Key::new("thread.prof.name");
}

/// `thread.tcache.*`
pub mod tcache {
    use crate::key::{Act, Key, ReadWrite};

    /// `thread.tcache.enabled`: whether this thread caches; turned off, its caches are emptied
    /// first.
    pub const ENABLED: Key<ReadWrite<bool>> = Key::new("thread.tcache.enabled");

    /// `thread.tcache.flush`: gives this thread's cached blocks back (EFAULT: its caches are off).
    pub const FLUSH: Key<Act> = Key::new("thread.tcache.flush");

    /// `thread.tcache.max` (bytes): largest size that this thread caches; a write is rounded up to
    /// a class, at most 32 KiB.
    pub const MAX: Key<ReadWrite<usize>> = Key::new("thread.tcache.max");

    /// `thread.tcache.ncached_max.*`
    pub mod ncached_max {
        use crate::key::{Ask, Key, Write};
        use crate::typed::Text;

        /// `thread.tcache.ncached_max.read_sizeclass` (count): how many blocks of the class of the
        /// size that comes in a cache of this thread holds.
        pub const READ_SIZECLASS: Key<Ask<usize, usize>> =
            Key::new("thread.tcache.ncached_max.read_sizeclass");

        /// `thread.tcache.ncached_max.write`: how many blocks of which sizes a cache of this thread
        /// holds: low-high:count|low-high:count (ENOENT: its caches are off).
        pub const WRITE: Key<Write<Text>> = Key::new("thread.tcache.ncached_max.write");
    }
}
