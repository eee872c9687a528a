//! `stats.mutexes.*`. Made from the rows of the namespace.

use crate::key::{Act, Key};

/// `stats.mutexes.reset`: sets the statistics of all locks to zero.
pub const RESET: Key<Act> = Key::new("stats.mutexes.reset");

/// `stats.mutexes.arenas.*`
pub mod arenas {
    use crate::key::{Key, Read};

    /// `stats.mutexes.arenas.max_num_thds` (count): the making of arenas: most threads that waited
    /// at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> = Key::new("stats.mutexes.arenas.max_num_thds");

    /// `stats.mutexes.arenas.max_wait_time` (ns): the making of arenas: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.arenas.max_wait_time");

    /// `stats.mutexes.arenas.num_ops` (count): the making of arenas: times it was taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.arenas.num_ops");

    /// `stats.mutexes.arenas.num_owner_switch` (count): the making of arenas: times that the taker
    /// changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> = Key::new("stats.mutexes.arenas.num_owner_switch");

    /// `stats.mutexes.arenas.num_spin_acq` (count): the making of arenas: times that spinning was
    /// enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> = Key::new("stats.mutexes.arenas.num_spin_acq");

    /// `stats.mutexes.arenas.num_wait` (count): the making of arenas: times that taking it had to
    /// block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.arenas.num_wait");

    /// `stats.mutexes.arenas.total_wait_time` (ns): the making of arenas: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.arenas.total_wait_time");
}

/// `stats.mutexes.background_thread.*`
pub mod background_thread {
    use crate::key::{Key, Read};

    /// `stats.mutexes.background_thread.max_num_thds` (count): start and stop of the background
    /// thread: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> =
        Key::new("stats.mutexes.background_thread.max_num_thds");

    /// `stats.mutexes.background_thread.max_wait_time` (ns): start and stop of the background
    /// thread: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> =
        Key::new("stats.mutexes.background_thread.max_wait_time");

    /// `stats.mutexes.background_thread.num_ops` (count): start and stop of the background thread:
    /// times it was taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.background_thread.num_ops");

    /// `stats.mutexes.background_thread.num_owner_switch` (count): start and stop of the background
    /// thread: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> =
        Key::new("stats.mutexes.background_thread.num_owner_switch");

    /// `stats.mutexes.background_thread.num_spin_acq` (count): start and stop of the background
    /// thread: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> =
        Key::new("stats.mutexes.background_thread.num_spin_acq");

    /// `stats.mutexes.background_thread.num_wait` (count): start and stop of the background thread:
    /// times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.background_thread.num_wait");

    /// `stats.mutexes.background_thread.total_wait_time` (ns): start and stop of the background
    /// thread: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> =
        Key::new("stats.mutexes.background_thread.total_wait_time");
}

/// `stats.mutexes.ctl.*`
pub mod ctl {
    use crate::key::{Key, Read};

    /// `stats.mutexes.ctl.max_num_thds` (count): the namespace: most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> = Key::new("stats.mutexes.ctl.max_num_thds");

    /// `stats.mutexes.ctl.max_wait_time` (ns): the namespace: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.ctl.max_wait_time");

    /// `stats.mutexes.ctl.num_ops` (count): the namespace: times it was taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.ctl.num_ops");

    /// `stats.mutexes.ctl.num_owner_switch` (count): the namespace: times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> = Key::new("stats.mutexes.ctl.num_owner_switch");

    /// `stats.mutexes.ctl.num_spin_acq` (count): the namespace: times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> = Key::new("stats.mutexes.ctl.num_spin_acq");

    /// `stats.mutexes.ctl.num_wait` (count): the namespace: times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.ctl.num_wait");

    /// `stats.mutexes.ctl.total_wait_time` (ns): the namespace: time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.ctl.total_wait_time");
}

/// `stats.mutexes.max_per_bg_thd.*`
pub mod max_per_bg_thd {
    use crate::key::{Key, Read};

    /// `stats.mutexes.max_per_bg_thd.max_num_thds` (count): the pass of decay: most threads that
    /// waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> = Key::new("stats.mutexes.max_per_bg_thd.max_num_thds");

    /// `stats.mutexes.max_per_bg_thd.max_wait_time` (ns): the pass of decay: longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> =
        Key::new("stats.mutexes.max_per_bg_thd.max_wait_time");

    /// `stats.mutexes.max_per_bg_thd.num_ops` (count): the pass of decay: times it was taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.max_per_bg_thd.num_ops");

    /// `stats.mutexes.max_per_bg_thd.num_owner_switch` (count): the pass of decay: times that the
    /// taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> =
        Key::new("stats.mutexes.max_per_bg_thd.num_owner_switch");

    /// `stats.mutexes.max_per_bg_thd.num_spin_acq` (count): the pass of decay: times that spinning
    /// was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> = Key::new("stats.mutexes.max_per_bg_thd.num_spin_acq");

    /// `stats.mutexes.max_per_bg_thd.num_wait` (count): the pass of decay: times that taking it had
    /// to block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.max_per_bg_thd.num_wait");

    /// `stats.mutexes.max_per_bg_thd.total_wait_time` (ns): the pass of decay: time blocked, in
    /// all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> =
        Key::new("stats.mutexes.max_per_bg_thd.total_wait_time");
}

/// `stats.mutexes.prof.*`
pub mod prof {
    use crate::key::{Key, Read};

    /// `stats.mutexes.prof.max_num_thds` (count): the profiler (always 0: it has no lock that
    /// allocations wait for): most threads that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> = Key::new("stats.mutexes.prof.max_num_thds");

    /// `stats.mutexes.prof.max_wait_time` (ns): the profiler (always 0: it has no lock that
    /// allocations wait for): longest time blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.prof.max_wait_time");

    /// `stats.mutexes.prof.num_ops` (count): the profiler (always 0: it has no lock that
    /// allocations wait for): times it was taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.prof.num_ops");

    /// `stats.mutexes.prof.num_owner_switch` (count): the profiler (always 0: it has no lock that
    /// allocations wait for): times that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> = Key::new("stats.mutexes.prof.num_owner_switch");

    /// `stats.mutexes.prof.num_spin_acq` (count): the profiler (always 0: it has no lock that
    /// allocations wait for): times that spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> = Key::new("stats.mutexes.prof.num_spin_acq");

    /// `stats.mutexes.prof.num_wait` (count): the profiler (always 0: it has no lock that
    /// allocations wait for): times that taking it had to block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.prof.num_wait");

    /// `stats.mutexes.prof.total_wait_time` (ns): the profiler (always 0: it has no lock that
    /// allocations wait for): time blocked, in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.prof.total_wait_time");
}

/// `stats.mutexes.thread_caches.*`
pub mod thread_caches {
    use crate::key::{Key, Read};

    /// `stats.mutexes.thread_caches.max_num_thds` (count): the list of thread caches: most threads
    /// that waited at once.
    pub const MAX_NUM_THDS: Key<Read<u32>> = Key::new("stats.mutexes.thread_caches.max_num_thds");

    /// `stats.mutexes.thread_caches.max_wait_time` (ns): the list of thread caches: longest time
    /// blocked.
    pub const MAX_WAIT_TIME: Key<Read<u64>> = Key::new("stats.mutexes.thread_caches.max_wait_time");

    /// `stats.mutexes.thread_caches.num_ops` (count): the list of thread caches: times it was
    /// taken.
    pub const NUM_OPS: Key<Read<u64>> = Key::new("stats.mutexes.thread_caches.num_ops");

    /// `stats.mutexes.thread_caches.num_owner_switch` (count): the list of thread caches: times
    /// that the taker changed.
    pub const NUM_OWNER_SWITCH: Key<Read<u64>> =
        Key::new("stats.mutexes.thread_caches.num_owner_switch");

    /// `stats.mutexes.thread_caches.num_spin_acq` (count): the list of thread caches: times that
    /// spinning was enough.
    pub const NUM_SPIN_ACQ: Key<Read<u64>> = Key::new("stats.mutexes.thread_caches.num_spin_acq");

    /// `stats.mutexes.thread_caches.num_wait` (count): the list of thread caches: times that taking
    /// it had to block.
    pub const NUM_WAIT: Key<Read<u64>> = Key::new("stats.mutexes.thread_caches.num_wait");

    /// `stats.mutexes.thread_caches.total_wait_time` (ns): the list of thread caches: time blocked,
    /// in all.
    pub const TOTAL_WAIT_TIME: Key<Read<u64>> =
        Key::new("stats.mutexes.thread_caches.total_wait_time");
}
