//! `arenas.*`. Made from the rows of the namespace.

use crate::key::{Ask, Key, Read, ReadWrite, UnsafeCreate};
use core::ffi::c_void;

/// `arenas.create`: makes an arena, with these extent hooks if any are given, and answers its
/// index.
pub const CREATE: Key<UnsafeCreate<u32>> = Key::new("arenas.create");

/// `arenas.dirty_decay_ms` (ms): dirty_decay_ms that arenas made later begin with.
pub const DIRTY_DECAY_MS: Key<ReadWrite<isize>> = Key::new("arenas.dirty_decay_ms");

/// `arenas.hugepage` (bytes): size of a huge page.
pub const HUGEPAGE: Key<Read<usize>> = Key::new("arenas.hugepage");

/// `arenas.lookup`: the arena that a block belongs to, 0 for one of 0 bytes; EINVAL for what is no
/// block.
pub const LOOKUP: Key<Ask<*mut c_void, u32>> = Key::new("arenas.lookup");

/// `arenas.muzzy_decay_ms` (ms): muzzy_decay_ms that arenas made later begin with.
pub const MUZZY_DECAY_MS: Key<ReadWrite<isize>> = Key::new("arenas.muzzy_decay_ms");

/// `arenas.narenas` (count): limit on the number of arenas.
pub const NARENAS: Key<Read<u32>> = Key::new("arenas.narenas");

/// `arenas.nbins` (count): small size classes, whose blocks come from slabs: up to 32 KiB.
pub const NBINS: Key<Read<u32>> = Key::new("arenas.nbins");

/// `arenas.nhbins` (count): size classes that threads cache.
pub const NHBINS: Key<Read<u32>> = Key::new("arenas.nhbins");

/// `arenas.nlextents` (count): large size classes, each block a run of pages: from 40 KiB on.
pub const NLEXTENTS: Key<Read<u32>> = Key::new("arenas.nlextents");

/// `arenas.page` (bytes): size of the allocator's page.
pub const PAGE: Key<Read<usize>> = Key::new("arenas.page");

/// `arenas.quantum` (bytes): step between the smallest size classes.
pub const QUANTUM: Key<Read<usize>> = Key::new("arenas.quantum");

/// `arenas.tcache_max` (bytes): largest size that threads cache.
pub const TCACHE_MAX: Key<Read<usize>> = Key::new("arenas.tcache_max");

/// `arenas.bin.*`
pub mod bin {
    use crate::key::{Key, Read};

    /// `arenas.bin.<i>.nregs` (count): blocks in a slab.
    pub const NREGS: Key<Read<u32>, 1> = Key::new("arenas.bin.<i>.nregs");

    /// `arenas.bin.<i>.nshards` (count): bins of the class in an arena.
    pub const NSHARDS: Key<Read<u32>, 1> = Key::new("arenas.bin.<i>.nshards");

    /// `arenas.bin.<i>.size` (bytes): size of a block.
    pub const SIZE: Key<Read<usize>, 1> = Key::new("arenas.bin.<i>.size");

    /// `arenas.bin.<i>.slab_size` (bytes): size of a slab.
    pub const SLAB_SIZE: Key<Read<usize>, 1> = Key::new("arenas.bin.<i>.slab_size");
}

/// `arenas.lextent.*`
pub mod lextent {
    use crate::key::{Key, Read};

    /// `arenas.lextent.<i>.size` (bytes): size of a large class.
    pub const SIZE: Key<Read<usize>, 1> = Key::new("arenas.lextent.<i>.size");
}
