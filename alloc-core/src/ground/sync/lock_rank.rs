//! The order in which locks are taken: that of the variants of [`LockRank`], top to bottom.
//!
//! A thread that holds a lock may take only locks of later ranks. Test builds of the core check
//! each acquisition. The fork handlers take all locks in this order.

/// Ranks, outermost first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum LockRank {
    /// The start and the stop of the background thread.
    Background,
    /// The start of the process, and the decay pass, of which one runs at a time.
    Pass,
    /// The list of caches.
    Registry,
    /// A cache that belongs to no thread, which is locked for each operation.
    Explicit,
    /// The slow paths of one cache.
    Cache,
    /// The list of arenas.
    Arenas,
    /// One size class of one arena.
    Bin,
    /// One arena's page runs.
    Pages,
    /// Events of one thread, for the heap monitor.
    Events,
    /// What takes the events of the heap monitor.
    Recorder,
    /// Samples in use, in parts.
    Samples,
    /// The stacks of samples.
    Sites,
    /// The last samples, and the log of those that were freed.
    History,
    /// The allocator's own records.
    Metadata,
    /// The end of the data segment.
    Break,
    /// The slots of guarded samples.
    Guarded,
}

#[cfg(all(test, not(loom)))]
impl LockRank {
    /// All ranks, in order.
    pub(crate) const ALL: [LockRank; LockRank::Guarded as usize + 1] = [
        LockRank::Background,
        LockRank::Pass,
        LockRank::Registry,
        LockRank::Explicit,
        LockRank::Cache,
        LockRank::Arenas,
        LockRank::Bin,
        LockRank::Pages,
        LockRank::Events,
        LockRank::Recorder,
        LockRank::Samples,
        LockRank::Sites,
        LockRank::History,
        LockRank::Metadata,
        LockRank::Break,
        LockRank::Guarded,
    ];
}

/// Checks the order of acquisitions, per thread, in test builds of the core.
#[cfg(all(test, not(loom)))]
pub(crate) mod witness {
    use super::LockRank;
    use crate::ground::sync::exempt_thread;
    use core::cell::Cell;

    std::thread_local! {
        // How many locks of each rank this thread holds, eight bits a rank.
        static HELD: Cell<u128> = const { Cell::new(0) };
    }

    /// Notes an acquisition. Panics if a lock of this or a later rank is held.
    pub(crate) fn acquire(rank: LockRank) {
        if !exempt_thread::is_caller() {
            check(rank);
            acquire_any(rank);
        }
    }

    /// Panics if a lock of this or a later rank is held.
    pub(crate) fn check(rank: LockRank) {
        let held = HELD.get();
        let later = held >> (rank as u32 * 8);
        assert!(later == 0, "lock order: {rank:?} taken while {held:#x} is held");
    }

    /// Notes an acquisition by try-lock or by fork, which cannot deadlock.
    pub(crate) fn acquire_any(rank: LockRank) {
        HELD.set(HELD.get() + (1 << (rank as u32 * 8)));
    }

    /// Panics if a lock is held. Called before a function of the program.
    pub(crate) fn none_held() {
        let held = HELD.get();
        assert!(held == 0, "a function of the program is called while {held:#x} is held");
    }

    /// Notes a release.
    pub(crate) fn release(rank: LockRank) {
        if !exempt_thread::is_caller() {
            HELD.set(HELD.get() - (1 << (rank as u32 * 8)));
        }
    }
}

/// The witness of other builds, which checks nothing.
#[cfg(not(all(test, not(loom))))]
pub(crate) mod witness {
    use super::LockRank;

    #[inline(always)]
    pub(crate) fn acquire(_rank: LockRank) {}
    #[inline(always)]
    pub(crate) fn check(_rank: LockRank) {}
    #[inline(always)]
    pub(crate) fn acquire_any(_rank: LockRank) {}
    #[inline(always)]
    pub(crate) fn release(_rank: LockRank) {}
    #[inline(always)]
    pub(crate) fn none_held() {}
}
