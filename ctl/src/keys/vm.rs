//! `vm.*`. Made from the rows of the namespace.

use crate::key::{Ask, Key, Read, ReadWrite};
use core::ffi::c_void;

/// `vm.lookup`: the number of the region with a handle; EINVAL for what is none.
pub const LOOKUP: Key<Ask<*mut c_void, u32>> = Key::new("vm.lookup");

/// `vm.nregions` (count): numbers that regions had so far: each open one has a number below it.
pub const NREGIONS: Key<Read<usize>> = Key::new("vm.nregions");

/// `vm.regions` (count): regions of vmalloc(3) that are open.
pub const REGIONS: Key<Read<usize>> = Key::new("vm.regions");

/// `vm.regmax` (count): most automatic arenas beside the first; those that exist stay.
pub const REGMAX: Key<ReadWrite<u32>> = Key::new("vm.regmax");

/// `vm.region.*`
pub mod region {
    use crate::key::{Act, Ask, Bytes, Key, Read};
    use crate::typed::Text;

    /// `vm.region.<i>.address`: address of the handle; of a region of a Rust program, of its first
    /// segment.
    pub const ADDRESS: Key<Read<usize>, 1> = Key::new("vm.region.<i>.address");

    /// `vm.region.<i>.check` (count): checks all blocks: how many are damaged; ENOENT with the
    /// methods last and pool.
    pub const CHECK: Key<Ask<(), u32>, 1> = Key::new("vm.region.<i>.check");

    /// `vm.region.<i>.compact`: gives free memory back to the discipline, which is called by this
    /// thread.
    pub const COMPACT: Key<Act, 1> = Key::new("vm.region.<i>.compact");

    /// `vm.region.<i>.discipline`: where its memory comes from: system, heap, file, segment, or
    /// program for its own function.
    pub const DISCIPLINE: Key<Read<Text>, 1> = Key::new("vm.region.<i>.discipline");

    /// `vm.region.<i>.extent` (bytes): in segments, the region's own words among it.
    pub const EXTENT: Key<Read<usize>, 1> = Key::new("vm.region.<i>.extent");

    /// `vm.region.<i>.file`: path of its file, or the end of it; read into the 256 bytes at *(char
    /// **)oldp.
    pub const FILE: Key<Bytes, 1> = Key::new("vm.region.<i>.file");

    /// `vm.region.<i>.flags`: method and flags as bits, as vmset returns them.
    pub const FLAGS: Key<Read<u32>, 1> = Key::new("vm.region.<i>.flags");

    /// `vm.region.<i>.holder`: process that is in a call of a region of several processes, or ended
    /// in one; 0: none.
    pub const HOLDER: Key<Read<u32>, 1> = Key::new("vm.region.<i>.holder");

    /// `vm.region.<i>.holder_alive`: whether that process exists; if not, the next call in the
    /// region takes its lock over.
    pub const HOLDER_ALIVE: Key<Read<bool>, 1> = Key::new("vm.region.<i>.holder_alive");

    /// `vm.region.<i>.m_busy` (bytes): of the largest block of the program; 0 with the method last.
    pub const M_BUSY: Key<Read<usize>, 1> = Key::new("vm.region.<i>.m_busy");

    /// `vm.region.<i>.m_free` (bytes): of the largest free block.
    pub const M_FREE: Key<Read<usize>, 1> = Key::new("vm.region.<i>.m_free");

    /// `vm.region.<i>.method`: best, last, pool, debug or profile.
    pub const METHOD: Key<Read<Text>, 1> = Key::new("vm.region.<i>.method");

    /// `vm.region.<i>.n_busy` (count): blocks that the program has.
    pub const N_BUSY: Key<Read<usize>, 1> = Key::new("vm.region.<i>.n_busy");

    /// `vm.region.<i>.n_free` (count): free blocks.
    pub const N_FREE: Key<Read<usize>, 1> = Key::new("vm.region.<i>.n_free");

    /// `vm.region.<i>.n_seg` (count): segments that the discipline gave.
    pub const N_SEG: Key<Read<usize>, 1> = Key::new("vm.region.<i>.n_seg");

    /// `vm.region.<i>.name`: name of the region, up to 31 bytes; read into the 32 bytes at *(char
    /// **)oldp.
    pub const NAME: Key<Bytes, 1> = Key::new("vm.region.<i>.name");

    /// `vm.region.<i>.s_busy` (bytes): in blocks that the program has.
    pub const S_BUSY: Key<Read<usize>, 1> = Key::new("vm.region.<i>.s_busy");

    /// `vm.region.<i>.s_free` (bytes): in free blocks.
    pub const S_FREE: Key<Read<usize>, 1> = Key::new("vm.region.<i>.s_free");
}

/// `vm.stat.*`
pub mod stat {
    use crate::key::{Key, Read};

    /// `vm.stat.extent` (bytes): taken from the system, the allocator's own records among it.
    pub const EXTENT: Key<Read<usize>> = Key::new("vm.stat.extent");

    /// `vm.stat.m_busy` (bytes): of the largest block that the program holds, rounded up to its
    /// class.
    pub const M_BUSY: Key<Read<usize>> = Key::new("vm.stat.m_busy");

    /// `vm.stat.m_free` (bytes): of the largest free block: of runs, the mean of their largest
    /// class.
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

    /// `vm.stat.s_free` (bytes): of the extent, not in blocks that the program holds.
    pub const S_FREE: Key<Read<usize>> = Key::new("vm.stat.s_free");
}
