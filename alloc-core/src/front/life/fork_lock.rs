//! How a fork takes locks and releases them.

use crate::ground::sync::gate::Gate;
use crate::ground::sync::lock::RankedMutex;
#[cfg(test)]
use crate::ground::sync::lock_rank::LockRank;

/// A lock of any data.
pub(crate) trait ForkLock {
    fn take(&self);
    fn give_in_parent(&self);
    fn give_in_child(&self);
    /// Returns the lock's rank, or `None` if it has none.
    #[cfg(test)]
    fn rank(&self) -> Option<LockRank>;
}

impl<T> ForkLock for RankedMutex<T> {
    fn take(&self) {
        self.lock_for_fork();
    }

    fn give_in_parent(&self) {
        // SAFETY: the fork's first handler took the lock, on this thread.
        unsafe { self.unlock_in_parent() };
    }

    fn give_in_child(&self) {
        // SAFETY: the fork's first handler took the lock; the child has one thread.
        unsafe { self.unlock_in_child() };
    }

    #[cfg(test)]
    fn rank(&self) -> Option<LockRank> {
        Some(RankedMutex::rank(self))
    }
}

impl ForkLock for Gate {
    fn take(&self) {
        self.close();
    }

    fn give_in_parent(&self) {
        self.open();
    }

    fn give_in_child(&self) {
        self.open_in_child();
    }

    #[cfg(test)]
    fn rank(&self) -> Option<LockRank> {
        None
    }
}
