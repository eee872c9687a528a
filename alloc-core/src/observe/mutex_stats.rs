//! Statistics of locks, as plain numbers, under the names of jemalloc.
//!
//! | jemalloc's name | the lock here |
//! |---|---|
//! | `background_thread` | the start and stop of the background thread |
//! | `max_per_bg_thd` | the decay pass |
//! | `arenas.<i>.mutexes.extents_dirty` | the arena's runs of pages in every state: one lock |
//! | `arenas.<i>.mutexes.base` | the allocator's own records: one lock, shown by arena 0 |
//! | `arenas.<i>.mutexes.tcache_list` | the locks of all caches whose home arena it is |
//! | `arenas.<i>.bins.<j>.mutex` | the bin |
//!
//! Data that jemalloc guards by more locks (`large`, `extent_avail`, `extents_muzzy`,
//! `extents_retained`, `decay_dirty`, `decay_muzzy`) is guarded by the lock `extents_dirty` here.
//! The statistics are shown there alone, so that a sum over all names counts no wait twice.

use crate::ground::sync::history::LockHistory;

/// Statistics of one lock, or of several together, since the start or the last reset. Source:
/// jemalloc(3), `stats.mutexes.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MutexStats {
    /// Times that the lock was taken.
    pub num_ops: u64,
    /// Times that a thread slept for the lock.
    pub num_wait: u64,
    /// Times that the lock was found taken, and trying again for a moment was enough.
    pub num_spin_acq: u64,
    /// Times that the lock went to another thread than its last holder.
    pub num_owner_switch: u64,
    /// Nanoseconds slept for the lock, in all.
    pub total_wait_time: u64,
    /// The longest sleep for the lock, in nanoseconds.
    pub max_wait_time: u64,
    /// The most threads that slept for the lock at once.
    pub max_num_thds: u32,
}

impl MutexStats {
    /// Statistics of a lock that was never used.
    pub const EMPTY: MutexStats = MutexStats {
        num_ops: 0,
        num_wait: 0,
        num_spin_acq: 0,
        num_owner_switch: 0,
        total_wait_time: 0,
        max_wait_time: 0,
        max_num_thds: 0,
    };

    pub(super) fn add_history(&mut self, history: LockHistory) {
        self.add(&MutexStats {
            num_ops: history.ops,
            num_wait: history.waits,
            num_spin_acq: history.spins,
            num_owner_switch: history.switches,
            total_wait_time: history.wait_ns,
            max_wait_time: history.longest_ns,
            max_num_thds: history.most_waiting,
        });
    }

    /// Adds the statistics of another lock. Counts are added, and of the greatest values the
    /// greater one stays.
    pub fn add(&mut self, other: &MutexStats) {
        self.num_ops += other.num_ops;
        self.num_wait += other.num_wait;
        self.num_spin_acq += other.num_spin_acq;
        self.num_owner_switch += other.num_owner_switch;
        self.total_wait_time += other.total_wait_time;
        self.max_wait_time = self.max_wait_time.max(other.max_wait_time);
        self.max_num_thds = self.max_num_thds.max(other.max_num_thds);
    }
}
