//! `vm.*`. Made from the rows of the namespace.

use crate::key::{Key, ReadWrite};

/// `vm.regmax` (count): most automatic arenas beside the first; those that exist stay.
pub const REGMAX: Key<ReadWrite<u32>> = Key::new("vm.regmax");

/// `vm.stat.*`
pub mod stat {
    use crate::key::{Key, Read};

    /// `vm.stat.extent` (bytes): taken from the system, the allocator's own records among it.
    pub const EXTENT: Key<Read<usize>> = Key::new("vm.stat.extent");

    /// `vm.stat.m_busy` (bytes): of the largest of these, rounded up to its class.
    pub const M_BUSY: Key<Read<usize>> = Key::new("vm.stat.m_busy");

    /// `vm.stat.m_free` (bytes): of the largest of these: of runs, the mean of their largest class.
    pub const M_FREE: Key<Read<usize>> = Key::new("vm.stat.m_free");

    /// `vm.stat.mode`: flags of the regions: VM_MTBEST and VM_SHARE.
    pub const MODE: Key<Read<u32>> = Key::new("vm.stat.mode");

    /// `vm.stat.n_busy` (count): blocks that the program holds, and large ones that threads keep.
    pub const N_BUSY: Key<Read<u64>> = Key::new("vm.stat.n_busy");

    /// `vm.stat.n_free` (count): free blocks in slabs and thread caches, and unused runs of pages
    /// with memory.
    pub const N_FREE: Key<Read<u64>> = Key::new("vm.stat.n_free");

    /// `vm.stat.n_lock` (count): entries into arenas that waited.
    pub const N_LOCK: Key<Read<u64>> = Key::new("vm.stat.n_lock");

    /// `vm.stat.n_open` (count): entries into arenas that did not wait.
    pub const N_OPEN: Key<Read<u64>> = Key::new("vm.stat.n_open");

    /// `vm.stat.n_probe` (count): entries that searched for a free arena.
    pub const N_PROBE: Key<Read<u64>> = Key::new("vm.stat.n_probe");

    /// `vm.stat.n_region` (count): arenas made.
    pub const N_REGION: Key<Read<u32>> = Key::new("vm.stat.n_region");

    /// `vm.stat.n_seg` (count): ranges of addresses without a gap, those without memory among them.
    pub const N_SEG: Key<Read<usize>> = Key::new("vm.stat.n_seg");

    /// `vm.stat.s_busy` (bytes): in blocks that the program holds.
    pub const S_BUSY: Key<Read<usize>> = Key::new("vm.stat.s_busy");

    /// `vm.stat.s_free` (bytes): of the extent, not in such blocks.
    pub const S_FREE: Key<Read<usize>> = Key::new("vm.stat.s_free");
}
