//! How a fork takes locks and releases them.

use crate::ground::sync::aside::{Aside, How, SOON};
use crate::ground::sync::gate::Gate;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;

/// How locks are taken, rank by rank.
pub(super) struct Taker {
    /// Locks of `rank` that were held.
    aside: Aside<&'static dyn ForkLock>,
    rank: Option<LockRank>,
}

impl Taker {
    pub(super) fn new() -> Taker {
        Taker { aside: Aside::new(), rank: None }
    }

    /// Takes a lock, or notes that it is to be taken before any of another rank. Threads hold at
    /// most one of the locks that are noted, and wait for none of its rank meanwhile.
    pub(super) fn take(&mut self, lock: &'static dyn ForkLock) {
        if lock.rank() != self.rank {
            self.settle();
            self.rank = lock.rank();
        }
        match self.rank {
            Some(LockRank::Cache | LockRank::Bin | LockRank::Pages) => {
                self.aside.take(lock, take);
            }
            // There are few of them, and some are given to who waits.
            _ => lock.take(),
        }
    }

    /// Takes what is noted.
    pub(super) fn settle(&mut self) {
        self.aside.settle(take);
    }
}

fn take(lock: &'static dyn ForkLock, how: How) -> bool {
    match how {
        How::AtOnce => return lock.try_take(),
        How::Soon => return lock.take_soon(),
        How::Waiting => lock.take(),
    }
    true
}

/// A lock of any data.
pub(crate) trait ForkLock {
    fn take(&self);
    /// Takes the lock if it is free. Returns whether it is taken now.
    fn try_take(&self) -> bool;
    /// As `try_take`, but waits for the lock for some milliseconds.
    fn take_soon(&self) -> bool;
    fn give_in_parent(&self);
    fn give_in_child(&self);
    /// Returns the lock's rank, or `None` if it has none.
    fn rank(&self) -> Option<LockRank>;
}

impl<T> ForkLock for RankedMutex<T> {
    fn take(&self) {
        self.lock_for_fork();
    }

    fn try_take(&self) -> bool {
        self.try_lock_for_fork()
    }

    fn take_soon(&self) -> bool {
        self.lock_within(SOON).map(core::mem::forget).is_some()
    }

    fn give_in_parent(&self) {
        // SAFETY: the fork's first handler took the lock, on this thread.
        unsafe { self.unlock_in_parent() };
    }

    fn give_in_child(&self) {
        // SAFETY: the fork's first handler took the lock; the child has one thread.
        unsafe { self.unlock_in_child() };
    }

    fn rank(&self) -> Option<LockRank> {
        Some(RankedMutex::rank(self))
    }
}

impl ForkLock for Gate {
    fn take(&self) {
        self.close();
    }

    fn try_take(&self) -> bool {
        self.close();
        true
    }

    fn take_soon(&self) -> bool {
        self.try_take()
    }

    fn give_in_parent(&self) {
        self.open();
    }

    fn give_in_child(&self) {
        self.open_in_child();
    }

    fn rank(&self) -> Option<LockRank> {
        None
    }
}
