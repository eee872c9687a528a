//! The lock of the list of regions. A thread that has it may take it again, because what is asked
//! of a region may call functions of the program. It does not outlive a fork: the child takes it
//! over.

use super::process;
use crate::ground::sync::takeover_lock::TakeoverLock;
use core::sync::atomic::{AtomicUsize, Ordering};

/// No thread has the lock.
const NO_THREAD: usize = 0;

pub(super) struct RegionLock {
    lock: TakeoverLock,
    /// The number of the thread that has it, or [`NO_THREAD`].
    thread: AtomicUsize,
}

/// The lock is held. It is released with the outermost value of a thread.
pub(super) struct Held<'a> {
    lock: &'a RegionLock,
    is_outer: bool,
}

impl RegionLock {
    pub(super) const fn new() -> RegionLock {
        RegionLock { lock: TakeoverLock::new(), thread: AtomicUsize::new(NO_THREAD) }
    }

    /// Takes the lock, when no other thread has it.
    pub(super) fn take(&self) -> Held<'_> {
        let forks = process::fork_generation();
        if self.is_mine(forks) {
            return Held { lock: self, is_outer: false };
        }
        self.lock.take(forks);
        self.hold()
    }

    /// Takes the lock unless another thread of this process has it.
    pub(super) fn try_take(&self) -> Option<Held<'_>> {
        let forks = process::fork_generation();
        if self.is_mine(forks) {
            return Some(Held { lock: self, is_outer: false });
        }
        self.lock.try_take(forks)?;
        Some(self.hold())
    }

    /// Releases the lock, if `is_outer` says that [`Held::keep`] took it.
    pub(super) fn release(&self, is_outer: bool) {
        if is_outer {
            self.thread.store(NO_THREAD, Ordering::Relaxed);
            self.lock.release();
        }
    }

    /// Returns whether the calling thread has the lock. Only this thread writes its own number.
    fn is_mine(&self, forks: u64) -> bool {
        self.lock.is_taken(forks) && self.thread.load(Ordering::Relaxed) == process::thread_number()
    }

    /// Notes that the calling thread has taken the lock.
    fn hold(&self) -> Held<'_> {
        self.thread.store(process::thread_number(), Ordering::Relaxed);
        Held { lock: self, is_outer: true }
    }
}

impl Held<'_> {
    /// Keeps the lock held until [`RegionLock::release`].
    pub(super) fn keep(self) -> bool {
        let is_outer = self.is_outer;
        core::mem::forget(self);
        is_outer
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.lock.release(self.is_outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_it_twice_and_another_one_not() {
        let lock = RegionLock::new();
        let outer = lock.take();
        drop(lock.take());
        let other = || std::thread::scope(|scope| scope.spawn(|| lock.try_take().is_some()).join());
        assert_eq!(other().ok(), Some(false));
        drop(outer);
        assert_eq!(other().ok(), Some(true));
        let is_outer = lock.take().keep();
        assert!(is_outer && !lock.take().keep());
        assert_eq!(other().ok(), Some(false));
        lock.release(is_outer);
        assert_eq!(other().ok(), Some(true));
    }

    #[test]
    fn what_the_parent_of_a_fork_held_is_taken_over() {
        let lock = RegionLock::new();
        // A thread of another process.
        lock.lock.take(process::fork_generation() + 7);
        lock.thread.store(process::thread_number(), Ordering::Relaxed);
        let held = lock.try_take().expect("it is nobody's");
        assert!(held.is_outer);
    }
}
