//! `stats.arenas.mutexes.*`. Made from the rows of the namespace.

/// `stats.arenas.mutexes.base.*`
pub mod base {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.base.max_num_thds` (count): the allocator's records, shown by
    /// arena 0: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.base.max_num_thds");

    /// `stats.arenas.<i>.mutexes.base.max_wait_time` (ns): the allocator's records, shown by arena
    /// 0: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.base.max_wait_time");

    /// `stats.arenas.<i>.mutexes.base.num_ops` (count): the allocator's records, shown by arena 0:
    /// times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.base.num_ops");

    /// `stats.arenas.<i>.mutexes.base.num_owner_switch` (count): the allocator's records, shown by
    /// arena 0: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.base.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.base.num_spin_acq` (count): the allocator's records, shown by
    /// arena 0: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.base.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.base.num_wait` (count): the allocator's records, shown by arena 0:
    /// times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.base.num_wait");

    /// `stats.arenas.<i>.mutexes.base.total_wait_time` (ns): the allocator's records, shown by
    /// arena 0: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.base.total_wait_time");
}

/// `stats.arenas.mutexes.decay_dirty.*`
pub mod decay_dirty {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.decay_dirty.max_num_thds` (count): 0: shown under extents_dirty:
    /// most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.max_num_thds");

    /// `stats.arenas.<i>.mutexes.decay_dirty.max_wait_time` (ns): 0: shown under extents_dirty:
    /// longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.max_wait_time");

    /// `stats.arenas.<i>.mutexes.decay_dirty.num_ops` (count): 0: shown under extents_dirty: times
    /// it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.decay_dirty.num_ops");

    /// `stats.arenas.<i>.mutexes.decay_dirty.num_owner_switch` (count): 0: shown under
    /// extents_dirty: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.decay_dirty.num_spin_acq` (count): 0: shown under extents_dirty:
    /// times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.decay_dirty.num_wait` (count): 0: shown under extents_dirty: times
    /// that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.num_wait");

    /// `stats.arenas.<i>.mutexes.decay_dirty.total_wait_time` (ns): 0: shown under extents_dirty:
    /// time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_dirty.total_wait_time");
}

/// `stats.arenas.mutexes.decay_muzzy.*`
pub mod decay_muzzy {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.decay_muzzy.max_num_thds` (count): 0: shown under extents_dirty:
    /// most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.max_num_thds");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.max_wait_time` (ns): 0: shown under extents_dirty:
    /// longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.max_wait_time");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.num_ops` (count): 0: shown under extents_dirty: times
    /// it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.decay_muzzy.num_ops");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.num_owner_switch` (count): 0: shown under
    /// extents_dirty: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.num_spin_acq` (count): 0: shown under extents_dirty:
    /// times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.num_wait` (count): 0: shown under extents_dirty: times
    /// that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.num_wait");

    /// `stats.arenas.<i>.mutexes.decay_muzzy.total_wait_time` (ns): 0: shown under extents_dirty:
    /// time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.decay_muzzy.total_wait_time");
}

/// `stats.arenas.mutexes.extent_avail.*`
pub mod extent_avail {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.extent_avail.max_num_thds` (count): 0: shown under extents_dirty:
    /// most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.max_num_thds");

    /// `stats.arenas.<i>.mutexes.extent_avail.max_wait_time` (ns): 0: shown under extents_dirty:
    /// longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.max_wait_time");

    /// `stats.arenas.<i>.mutexes.extent_avail.num_ops` (count): 0: shown under extents_dirty: times
    /// it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.num_ops");

    /// `stats.arenas.<i>.mutexes.extent_avail.num_owner_switch` (count): 0: shown under
    /// extents_dirty: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.extent_avail.num_spin_acq` (count): 0: shown under extents_dirty:
    /// times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.extent_avail.num_wait` (count): 0: shown under extents_dirty:
    /// times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.num_wait");

    /// `stats.arenas.<i>.mutexes.extent_avail.total_wait_time` (ns): 0: shown under extents_dirty:
    /// time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extent_avail.total_wait_time");
}

/// `stats.arenas.mutexes.extents_dirty.*`
pub mod extents_dirty {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.extents_dirty.max_num_thds` (count): the arena's runs of pages in
    /// every state: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.max_num_thds");

    /// `stats.arenas.<i>.mutexes.extents_dirty.max_wait_time` (ns): the arena's runs of pages in
    /// every state: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.max_wait_time");

    /// `stats.arenas.<i>.mutexes.extents_dirty.num_ops` (count): the arena's runs of pages in every
    /// state: times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.num_ops");

    /// `stats.arenas.<i>.mutexes.extents_dirty.num_owner_switch` (count): the arena's runs of pages
    /// in every state: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.extents_dirty.num_spin_acq` (count): the arena's runs of pages in
    /// every state: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.extents_dirty.num_wait` (count): the arena's runs of pages in
    /// every state: times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.num_wait");

    /// `stats.arenas.<i>.mutexes.extents_dirty.total_wait_time` (ns): the arena's runs of pages in
    /// every state: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_dirty.total_wait_time");
}

/// `stats.arenas.mutexes.extents_muzzy.*`
pub mod extents_muzzy {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.extents_muzzy.max_num_thds` (count): 0: shown under extents_dirty:
    /// most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.max_num_thds");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.max_wait_time` (ns): 0: shown under extents_dirty:
    /// longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.max_wait_time");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.num_ops` (count): 0: shown under extents_dirty:
    /// times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.num_ops");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.num_owner_switch` (count): 0: shown under
    /// extents_dirty: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.num_spin_acq` (count): 0: shown under extents_dirty:
    /// times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.num_wait` (count): 0: shown under extents_dirty:
    /// times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.num_wait");

    /// `stats.arenas.<i>.mutexes.extents_muzzy.total_wait_time` (ns): 0: shown under extents_dirty:
    /// time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_muzzy.total_wait_time");
}

/// `stats.arenas.mutexes.extents_retained.*`
pub mod extents_retained {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.extents_retained.max_num_thds` (count): 0: shown under
    /// extents_dirty: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.max_num_thds");

    /// `stats.arenas.<i>.mutexes.extents_retained.max_wait_time` (ns): 0: shown under
    /// extents_dirty: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.max_wait_time");

    /// `stats.arenas.<i>.mutexes.extents_retained.num_ops` (count): 0: shown under extents_dirty:
    /// times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.num_ops");

    /// `stats.arenas.<i>.mutexes.extents_retained.num_owner_switch` (count): 0: shown under
    /// extents_dirty: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.extents_retained.num_spin_acq` (count): 0: shown under
    /// extents_dirty: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.extents_retained.num_wait` (count): 0: shown under extents_dirty:
    /// times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.num_wait");

    /// `stats.arenas.<i>.mutexes.extents_retained.total_wait_time` (ns): 0: shown under
    /// extents_dirty: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.extents_retained.total_wait_time");
}

/// `stats.arenas.mutexes.large.*`
pub mod large {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.large.max_num_thds` (count): 0: shown under extents_dirty: most
    /// threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.large.max_num_thds");

    /// `stats.arenas.<i>.mutexes.large.max_wait_time` (ns): 0: shown under extents_dirty: longest
    /// time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.large.max_wait_time");

    /// `stats.arenas.<i>.mutexes.large.num_ops` (count): 0: shown under extents_dirty: times it was
    /// taken.
    pub const NUM_OPS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.large.num_ops");

    /// `stats.arenas.<i>.mutexes.large.num_owner_switch` (count): 0: shown under extents_dirty:
    /// times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.large.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.large.num_spin_acq` (count): 0: shown under extents_dirty: times
    /// that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.large.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.large.num_wait` (count): 0: shown under extents_dirty: times that
    /// taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.large.num_wait");

    /// `stats.arenas.<i>.mutexes.large.total_wait_time` (ns): 0: shown under extents_dirty: time
    /// blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.large.total_wait_time");
}

/// `stats.arenas.mutexes.tcache_list.*`
pub mod tcache_list {
    use crate::key::{Key, Read};

    /// `stats.arenas.<i>.mutexes.tcache_list.max_num_thds` (count): the thread caches whose home
    /// the arena is: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.max_num_thds");

    /// `stats.arenas.<i>.mutexes.tcache_list.max_wait_time` (ns): the thread caches whose home the
    /// arena is: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.max_wait_time");

    /// `stats.arenas.<i>.mutexes.tcache_list.num_ops` (count): the thread caches whose home the
    /// arena is: times it was taken.
    pub const NUM_OPS: Key<Read<u64>, 1> = Key::new("stats.arenas.<i>.mutexes.tcache_list.num_ops");

    /// `stats.arenas.<i>.mutexes.tcache_list.num_owner_switch` (count): the thread caches whose
    /// home the arena is: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.num_owner_switch");

    /// `stats.arenas.<i>.mutexes.tcache_list.num_spin_acq` (count): the thread caches whose home
    /// the arena is: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.num_spin_acq");

    /// `stats.arenas.<i>.mutexes.tcache_list.num_wait` (count): the thread caches whose home the
    /// arena is: times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.num_wait");

    /// `stats.arenas.<i>.mutexes.tcache_list.total_wait_time` (ns): the thread caches whose home
    /// the arena is: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>, 1> =
        Key::new("stats.arenas.<i>.mutexes.tcache_list.total_wait_time");
}
