//! The lock of the list of regions. A thread that has it may take it again, because what is asked
//! of a region may call functions of the program. It does not outlive a fork: the child takes it
//! over.

use super::process;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Nobody has the lock, or no thread has.
const NOBODY: u64 = 0;
const NO_THREAD: usize = 0;

/// How often a thread looks whether the lock is free before it lets others run.
const LOOKS: usize = 200;

pub(super) struct RegionLock {
    /// The generation of forks of who has it, and 1; or [`NOBODY`].
    holder: AtomicU64,
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
        RegionLock { holder: AtomicU64::new(NOBODY), thread: AtomicUsize::new(NO_THREAD) }
    }

    /// Takes the lock, when no other thread has it.
    pub(super) fn take(&self) -> Held<'_> {
        let mut looks = 0;
        loop {
            if let Some(held) = self.try_take() {
                return held;
            }
            if looks < LOOKS {
                looks += 1;
                spin_loop();
                continue;
            }
            // SAFETY: sched_yield has no requirements.
            unsafe { libc::sched_yield() };
        }
    }

    /// Takes the lock unless another thread of this process has it.
    pub(super) fn try_take(&self) -> Option<Held<'_>> {
        let (generation, thread) = (process::fork_generation() + 1, process::thread_number());
        let holder = self.holder.load(Ordering::Relaxed);
        // Only this thread writes its own number.
        if holder == generation && self.thread.load(Ordering::Relaxed) == thread {
            return Some(Held { lock: self, is_outer: false });
        }
        if holder == generation {
            return None;
        }
        // It is free, or was left behind by the parent of a fork.
        // Acquire: pairs with the Release in `release`.
        let taken =
            self.holder.compare_exchange(holder, generation, Ordering::Acquire, Ordering::Relaxed);
        taken.ok()?;
        self.thread.store(thread, Ordering::Relaxed);
        Some(Held { lock: self, is_outer: true })
    }

    /// Releases the lock, if `is_outer` says that [`Held::keep`] took it.
    pub(super) fn release(&self, is_outer: bool) {
        if is_outer {
            self.thread.store(NO_THREAD, Ordering::Relaxed);
            // Release: pairs with the Acquire of who takes it next, in `try_take`.
            self.holder.store(NOBODY, Ordering::Release);
        }
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
        // The number of another generation.
        lock.holder.store(process::fork_generation() + 7, Ordering::Relaxed);
        lock.thread.store(process::thread_number(), Ordering::Relaxed);
        let held = lock.try_take().expect("it is nobody's");
        assert!(held.is_outer);
    }
}
