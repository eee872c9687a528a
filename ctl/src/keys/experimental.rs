//! `experimental.*`. Made from the rows of the namespace.

use crate::key::{Bytes, Key};

/// `experimental.arenas_create_ext`: arenas.create with a struct: extent_hooks_t *, bool
/// metadata_use_hooks (no effect here).
pub const ARENAS_CREATE_EXT: Key<Bytes> = Key::new("experimental.arenas_create_ext");

/// `experimental.arenas.*`
pub mod arenas {
    use crate::key::{Key, Read};
    use core::ffi::c_void;

    /// `experimental.arenas.<i>.pactivep`: where the arena counts its active pages, to be read at
    /// any time.
    pub const PACTIVEP: Key<Read<*mut c_void>, 1> = Key::new("experimental.arenas.<i>.pactivep");
}

/// `experimental.hooks.*`
pub mod hooks {
    use crate::key::{Key, UnsafeReadWrite};

    /// `experimental.hooks.allocated`: called after each allocation: void (*)(const void *, size_t
    /// requested).
    pub const ALLOCATED: Key<UnsafeReadWrite> = Key::new("experimental.hooks.allocated");

    /// `experimental.hooks.freed`: called before each free: void (*)(const void *).
    pub const FREED: Key<UnsafeReadWrite> = Key::new("experimental.hooks.freed");

    /// `experimental.hooks.prof_backtrace`: finds the stack of a sample: void (*)(void **, unsigned
    /// *count, unsigned most).
    pub const PROF_BACKTRACE: Key<UnsafeReadWrite> = Key::new("experimental.hooks.prof_backtrace");

    /// `experimental.hooks.prof_dump`: called with the name of each profile once it is written:
    /// void (*)(const char *).
    pub const PROF_DUMP: Key<UnsafeReadWrite> = Key::new("experimental.hooks.prof_dump");

    /// `experimental.hooks.prof_sample`: called for each sample: void (*)(const void *, size_t
    /// requested, void **stack, unsigned depth, size_t usable).
    pub const PROF_SAMPLE: Key<UnsafeReadWrite> = Key::new("experimental.hooks.prof_sample");

    /// `experimental.hooks.prof_sample_free`: called for each sample that is freed: void (*)(const
    /// void *, size_t usable).
    pub const PROF_SAMPLE_FREE: Key<UnsafeReadWrite> =
        Key::new("experimental.hooks.prof_sample_free");
}

/// `experimental.prof_recent.*`
pub mod prof_recent {
    use crate::key::{Bytes, Key, ReadWrite};

    /// `experimental.prof_recent.alloc_dump`: writes the last samples as JSON through a callback
    /// (EAGAIN: another thread does the same).
    pub const ALLOC_DUMP: Key<Bytes> = Key::new("experimental.prof_recent.alloc_dump");

    /// `experimental.prof_recent.alloc_max` (count): how many of the last samples are kept, with
    /// what becomes of them; -1: all.
    pub const ALLOC_MAX: Key<ReadWrite<isize>> = Key::new("experimental.prof_recent.alloc_max");
}

/// `experimental.utilization.*`
pub mod utilization {
    use crate::key::{Bytes, Key};

    /// `experimental.utilization.batch_query`: how full the slabs of the blocks in the array of
    /// void * at newp are.
    pub const BATCH_QUERY: Key<Bytes> = Key::new("experimental.utilization.batch_query");

    /// `experimental.utilization.query`: how full the slab of the block at *(void **)newp is, and
    /// its class in the arena.
    pub const QUERY: Key<Bytes> = Key::new("experimental.utilization.query");
}
