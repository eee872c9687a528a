//! Counts of what happened to a lock: how often it was taken, how often its holder changed, and how
//! long threads waited for it.
//!
//! The holder writes the counts of each acquisition, without a locked instruction. Threads that
//! wait write the other counts, because they have the time.

use crate::ground::counters::{OwnedCount, SharedCount};
use crate::ground::os;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// How often a lock was taken, and how often another thread was found to have it. Never reset.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct LockCounts {
    pub(crate) taken: u64,
    pub(crate) refused: u64,
}

/// The history of a lock since it was last reset. Source: jemalloc(3), `stats.mutexes.*`.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct LockHistory {
    /// Times that the lock was taken.
    pub(crate) ops: u64,
    /// Times that a thread slept for the lock.
    pub(crate) waits: u64,
    /// Times that the lock was found taken, and got by trying again for a moment.
    pub(crate) spins: u64,
    /// Times that the lock went to another thread than its last holder.
    pub(crate) switches: u64,
    /// Nanoseconds slept in all, and in the longest sleep.
    pub(crate) wait_ns: u64,
    pub(crate) longest_ns: u64,
    /// The most threads that slept at once.
    pub(crate) most_waiting: u32,
}

/// The counts of one lock, which lie in it. First comes what each holder writes.
#[repr(C)]
pub(super) struct History {
    taken: OwnedCount,
    /// The last holder, as its [`os::thread_address`].
    holder: AtomicUsize,
    switches: OwnedCount,
    refused: SharedCount,
    /// `taken` when the history began.
    begun: AtomicU64,
    spins: SharedCount,
    waits: SharedCount,
    wait_ns: SharedCount,
    longest_ns: AtomicU64,
    waiting: AtomicU32,
    most_waiting: AtomicU32,
}

impl History {
    pub(super) const fn new() -> History {
        History {
            taken: OwnedCount::new(),
            refused: SharedCount::new(),
            holder: AtomicUsize::new(0),
            switches: OwnedCount::new(),
            begun: AtomicU64::new(0),
            spins: SharedCount::new(),
            waits: SharedCount::new(),
            wait_ns: SharedCount::new(),
            longest_ns: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            most_waiting: AtomicU32::new(0),
        }
    }

    /// Counts an acquisition. Called by the holder.
    #[inline(always)]
    pub(super) fn taken(&self) {
        self.taken.add(1);
        let me = os::thread_address();
        if self.holder.load(Relaxed) != me {
            self.holder.store(me, Relaxed);
            self.switches.add(1);
        }
    }

    /// Counts that the lock was found taken.
    pub(super) fn refused(&self) {
        self.refused.add(1);
    }

    /// Counts that the lock was got by trying again, without sleeping.
    pub(super) fn spun(&self) {
        self.spins.add(1);
    }

    /// Calls `wait`, which sleeps for the lock, and counts the time.
    pub(super) fn wait<T>(&self, wait: impl FnOnce() -> T) -> T {
        let waiting = self.waiting.fetch_add(1, Relaxed).wrapping_add(1);
        self.most_waiting.fetch_max(waiting, Relaxed);
        let begin = os::nanoseconds();
        let result = wait();
        let slept = os::nanoseconds().saturating_sub(begin);
        // Not below 0, because `forget_waiters` may have forgotten this thread.
        _ = self.waiting.fetch_update(Relaxed, Relaxed, |waiting| waiting.checked_sub(1));
        self.waits.add(1);
        self.wait_ns.add(slept);
        self.longest_ns.fetch_max(slept, Relaxed);
        result
    }

    /// Returns whether a thread sleeps for the lock.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) != 0
    }

    /// Clears the number of waiting threads, in a forked child, where those of its parent are not.
    pub(super) fn forget_waiters(&self) {
        self.waiting.store(0, Relaxed);
    }

    pub(super) fn counts(&self) -> LockCounts {
        LockCounts { taken: self.taken.get(), refused: self.refused.get() }
    }

    pub(super) fn get(&self) -> LockHistory {
        LockHistory {
            ops: self.taken.get().saturating_sub(self.begun.load(Relaxed)),
            waits: self.waits.get(),
            spins: self.spins.get(),
            switches: self.switches.get(),
            wait_ns: self.wait_ns.get(),
            longest_ns: self.longest_ns.load(Relaxed),
            most_waiting: self.most_waiting.load(Relaxed),
        }
    }

    /// Starts the history again. Called by the holder.
    pub(super) fn reset(&self) {
        self.begun.store(self.taken.get(), Relaxed);
        self.switches.reset();
        self.spins.reset();
        self.waits.reset();
        self.wait_ns.reset();
        self.longest_ns.store(0, Relaxed);
        self.most_waiting.store(0, Relaxed);
    }
}
