//! A lock on a futex of four bytes, with a rank. It does not allocate, poison or panic.
//!
//! ```text
//!   FREE ──lock──▶ HELD ──(a thread waits)──▶ CONTENDED ──unlock──▶ FREE, wake one
//! ```

use super::exempt_thread;
use super::futex::Futex;
use super::history::{History, LockHistory};
use super::lock_rank::{LockRank, witness};
use super::seam::Ordering;
use crate::ground::in_place::{Place, write_fields};
use crate::ground::os;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use crossbeam_utils::Backoff;

/// Rounds of spinning until a waiter sleeps. Each is twice as long as the one before. Together they
/// take a few microseconds, about as long as a holder that is not preempted. In a model one round
/// shows all that several would.
pub(crate) const SPINS: usize = if cfg!(loom) { 1 } else { 6 };

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// A lock, and data that only its holder may touch. Small data is in the cache line of the word.
#[repr(C)]
pub(crate) struct RankedMutex<T> {
    word: Futex,
    rank: LockRank,
    data: UnsafeCell<T>,
    history: History,
}

// SAFETY: the data is reached through a guard only, and there is one guard at a time. `T: Send` is
// needed because any thread may take the guard.
unsafe impl<T: Send> Sync for RankedMutex<T> {}

pub(crate) use super::history::LockCounts;

/// The right to the data of a lock. Dropping it releases the lock.
#[must_use]
pub(crate) struct Guard<'a, T> {
    mutex: &'a RankedMutex<T>,
}

impl<T> RankedMutex<T> {
    /// A free lock around `data`.
    #[cfg(not(loom))]
    pub(crate) const fn new(rank: LockRank, data: T) -> RankedMutex<T> {
        RankedMutex {
            word: Futex::new(FREE),
            rank,
            history: History::new(),
            data: UnsafeCell::new(data),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(rank: LockRank, data: T) -> RankedMutex<T> {
        let (word, history) = (Futex::new(FREE), History::new());
        RankedMutex { word, rank, history, data: UnsafeCell::new(data) }
    }

    /// Writes a free lock to `place`, with the data that `write` writes to the place it gets.
    pub(crate) fn begin_at(
        place: Place<RankedMutex<T>>,
        rank: LockRank,
        write: impl FnOnce(Place<T>),
    ) {
        write_fields!(place => RankedMutex {
            word: Futex::new(FREE),
            rank: rank,
            history: History::new(),
            data => |at: Place<UnsafeCell<T>>| write(at.inside()),
        });
    }

    /// Returns how often the lock was taken, and how often it was found taken, since it was made.
    pub(crate) fn counts(&self) -> LockCounts {
        self.history.counts()
    }

    /// Returns what happened to the lock since [`RankedMutex::reset_history`].
    pub(crate) fn history(&self) -> LockHistory {
        self.history.get()
    }

    /// Returns the lock's place in the order.
    pub(crate) fn rank(&self) -> LockRank {
        self.rank
    }

    /// Returns the address of the data. Only the holder may touch the data.
    pub(crate) fn place(&self) -> *const T {
        self.data.get()
    }

    /// Takes the lock, and starts its history again.
    pub(crate) fn reset_history(&self) {
        let _held = self.lock();
        self.history.reset();
    }

    /// Takes the lock, and waits for it if it is taken.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.lock_and_tell().0
    }

    /// As [`RankedMutex::lock`], but also returns whether another thread had the lock.
    #[inline]
    pub(crate) fn lock_and_tell(&self) -> (Guard<'_, T>, bool) {
        witness::acquire(self.rank);
        self.lock_unwitnessed()
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        if !self.take_free() {
            self.history.refused();
            return None;
        }
        witness::acquire_any(self.rank);
        self.history.taken();
        Some(Guard { mutex: self })
    }

    /// Takes the lock if it is free and no thread sleeps for it. Where many threads try often for a
    /// lock that is held for long, one of them would take it each time before a woken sleeper runs.
    pub(crate) fn try_lock_unless_awaited(&self) -> Option<Guard<'_, T>> {
        if self.history.is_awaited() { None } else { self.try_lock() }
    }

    /// Checks in test builds that the calling thread may take the lock. Called where the lock is
    /// taken in rare cases only.
    #[inline]
    pub(crate) fn check_order(&self) {
        witness::check(self.rank);
    }

    /// Takes the lock for a fork, which holds many locks of one rank at once, in one fixed order.
    /// An [`exempt_thread`] may take it again.
    pub(crate) fn lock_for_fork(&self) {
        witness::acquire_any(self.rank);
        core::mem::forget(self.lock_unwitnessed().0);
    }

    /// As [`RankedMutex::lock_for_fork`], if the lock is free. Returns whether it is taken now.
    pub(crate) fn try_lock_for_fork(&self) -> bool {
        if exempt_thread::is_caller() {
            self.lock_for_fork();
            return true;
        }
        self.try_lock_again().map(core::mem::forget).is_some()
    }

    /// As [`RankedMutex::try_lock`], for one who tries often. So it is not counted that the lock is
    /// held. An [`exempt_thread`] may take it again.
    #[inline]
    pub(crate) fn try_lock_again(&self) -> Option<Guard<'_, T>> {
        if exempt_thread::is_caller() {
            return Some(self.lock());
        }
        if self.is_held() { None } else { self.try_lock() }
    }

    /// Takes the lock, and waits for it for so many milliseconds at most.
    pub(crate) fn lock_within(&self, millis: u64) -> Option<Guard<'_, T>> {
        if let Some(taken) = self.try_lock_again() {
            return Some(taken);
        }
        let end = os::nanoseconds().saturating_add(millis * 1_000_000);
        let is_taken = self.history.wait(|| {
            // Acquire: pairs with the Release in `unlock`. If the time is up the word stays
            // CONTENDED, and the holder wakes nobody.
            while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
                if os::nanoseconds() >= end {
                    return false;
                }
                self.word.sleep(CONTENDED, Some(millis));
            }
            true
        });
        if !is_taken {
            return None;
        }
        witness::acquire_any(self.rank);
        self.history.taken();
        Some(Guard { mutex: self })
    }

    /// Returns the data, for a thread that holds many locks at once.
    ///
    /// # Safety
    /// This thread holds the lock by `lock_for_fork`, and there is no other reference to the data.
    #[expect(clippy::mut_from_ref, reason = "the lock is the guard")]
    pub(crate) unsafe fn held(&self) -> &mut T {
        // SAFETY: the holder alone may touch the data (the caller's promise).
        unsafe { &mut *self.data.get() }
    }

    /// Releases a lock that `lock_for_fork` took, in the parent.
    ///
    /// # Safety
    /// This thread holds the lock by `lock_for_fork`.
    pub(crate) unsafe fn unlock_in_parent(&self) {
        drop(Guard { mutex: self });
    }

    /// Releases a lock that `lock_for_fork` took, in the child, where no other thread exists.
    ///
    /// # Safety
    /// This thread holds the lock by `lock_for_fork`, and is the only thread.
    pub(crate) unsafe fn unlock_in_child(&self) {
        witness::release(self.rank);
        self.free_in_child();
    }

    /// Returns whether some thread holds the lock now.
    pub(crate) fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) != FREE
    }

    /// Releases a lock in the child of a fork that a thread of the parent may have held to read.
    /// The child has one thread, which does not hold it.
    pub(crate) fn free_in_child(&self) {
        self.history.forget_waiters();
        // Release: pairs with the Acquire of the child's later threads.
        self.word.store(FREE, Ordering::Release);
    }

    #[inline]
    fn take_free(&self) -> bool {
        // Acquire: pairs with the Release in `unlock`.
        self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn lock_unwitnessed(&self) -> (Guard<'_, T>, bool) {
        let was_taken = !self.take_free();
        if was_taken {
            self.lock_slow();
        }
        self.history.taken();
        (Guard { mutex: self }, was_taken)
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) {
        if exempt_thread::is_caller() {
            return;
        }
        self.history.refused();
        let backoff = Backoff::new();
        for _ in 0..SPINS {
            if self.word.load(Ordering::Relaxed) == FREE && self.take_free() {
                self.history.spun();
                return;
            }
            backoff.spin();
            if self.word.load(Ordering::Relaxed) == CONTENDED {
                break;
            }
        }
        self.history.wait(|| {
            // Acquire: pairs with the Release in `unlock`. The word becomes CONTENDED, because
            // other threads may sleep too.
            while self.word.swap(CONTENDED, Ordering::Acquire) != FREE {
                self.word.sleep(CONTENDED, None);
            }
        });
    }

    #[inline]
    fn unlock(&self) {
        witness::release(self.rank);
        if exempt_thread::is_caller() {
            return;
        }
        // Release: pairs with the Acquire of the next holder.
        if self.word.swap(FREE, Ordering::Release) == CONTENDED {
            self.word.wake_one();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the proof that this thread alone may touch the data.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` is the only way to the guard.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;
    use std::sync::Arc;

    #[test]
    fn sanit_one_holder_at_a_time() {
        let total = Arc::new(RankedMutex::new(LockRank::Bin, 0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let total = Arc::clone(&total);
                std::thread::spawn(move || (0..10_000).for_each(|_| *total.lock() += 1))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*total.lock(), 40_000);
    }

    #[test]
    fn a_thread_that_sleeps_for_the_lock_gets_it_before_those_that_only_try() {
        let mutex = RankedMutex::new(LockRank::Bin, ());
        for _ in 0..100 {
            let has_waited = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let held = mutex.lock();
                scope.spawn(|| {
                    let _held = mutex.lock();
                    has_waited.store(true, Ordering::Relaxed);
                });
                while !mutex.history.is_awaited() {
                    std::thread::yield_now();
                }
                drop(held);
                while mutex.try_lock_unless_awaited().is_none() {
                    std::hint::spin_loop();
                }
                assert!(has_waited.load(Ordering::Relaxed));
            });
        }
    }

    #[test]
    fn a_wait_for_a_lock_ends_with_its_time_or_with_the_lock() {
        let lock = RankedMutex::new(LockRank::Pages, ());
        let held = lock.lock();
        let waiting = |millis| {
            std::thread::scope(|scope| {
                scope.spawn(|| lock.lock_within(millis).is_some()).join().expect("no panic")
            })
        };
        assert!(!waiting(1) && !waiting(5), "it is held all the time");
        assert!(std::thread::scope(|scope| {
            let other = scope.spawn(|| lock.lock_within(600_000).is_some());
            while !lock.history.is_awaited() {
                std::thread::yield_now();
            }
            drop(held);
            other.join().expect("no panic")
        }));
        assert!(lock.lock_within(0).is_some(), "it is free again");
    }

    #[test]
    fn try_lock_answers_at_once() {
        let mutex = RankedMutex::new(LockRank::Bin, ());
        let guard = mutex.try_lock().unwrap();
        assert!(mutex.try_lock().is_none());
        drop(guard);
        assert!(mutex.try_lock().is_some());
        drop(mutex.lock());
        assert_eq!(mutex.counts(), LockCounts { taken: 3, refused: 1 });
    }

    #[test]
    fn sanit_who_waits_is_counted_and_timed() {
        let mutex = Arc::new(RankedMutex::new(LockRank::Bin, ()));
        let guard = mutex.lock();
        let waiter = {
            let mutex = Arc::clone(&mutex);
            std::thread::spawn(move || drop(mutex.lock()))
        };
        // The waiter sets this word before it sleeps.
        while mutex.word.load(Ordering::Relaxed) != CONTENDED {
            std::thread::yield_now();
        }
        drop(guard);
        waiter.join().unwrap();
        let history = mutex.history();
        assert_eq!((history.ops, history.waits, history.switches), (2, 1, 2));
        assert_eq!((history.spins, history.most_waiting), (0, 1));
        assert!(history.wait_ns > 0 && history.wait_ns == history.longest_ns);
        mutex.reset_history();
        assert_eq!(mutex.history(), LockHistory::default());
        drop(mutex.lock());
        assert_eq!(mutex.history(), LockHistory { ops: 1, ..LockHistory::default() });
        assert_eq!(mutex.counts().taken, 4, "what scaling is judged by is not reset");
    }

    #[test]
    #[should_panic(expected = "lock order")]
    fn the_wrong_order_is_noticed() {
        let inner = RankedMutex::new(LockRank::Pages, ());
        let outer = RankedMutex::new(LockRank::Bin, ());
        let _inner = inner.lock();
        let _outer = outer.lock();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// The lock, and data that loom watches: it reports accesses that are not ordered.
    type Lock = Arc<RankedMutex<UnsafeCell<u32>>>;

    fn lock() -> Lock {
        Arc::new(RankedMutex::new(LockRank::Bin, UnsafeCell::new(0)))
    }

    /// Adds one as the holder, while nobody else may see the data.
    fn add(lock: &Lock) {
        let data = lock.lock();
        // SAFETY: this thread holds the lock.
        data.with_mut(|data| unsafe { *data += 1 });
    }

    fn spawn(lock: &Lock, f: fn(&Lock)) -> thread::JoinHandle<()> {
        let lock = Arc::clone(lock);
        thread::spawn(move || f(&lock))
    }

    /// The last holder finds what all others have done.
    fn counted(lock: &Lock, expected: u32) {
        let data = lock.try_lock().expect("nobody holds it");
        // SAFETY: this thread holds the lock.
        assert_eq!(data.with(|data| unsafe { *data }), expected);
    }

    /// Two of the three may sleep at once, so each wake-up has to lead to the next one.
    #[test]
    fn loom_each_thread_that_waits_for_a_lock_gets_it() {
        model(|| {
            let lock = lock();
            let others = [add, add].map(|add| spawn(&lock, add));
            add(&lock);
            others.into_iter().for_each(|other| other.join().unwrap());
            counted(&lock, 3);
        });
    }

    #[test]
    fn loom_a_lock_that_is_tried_is_held_by_one_thread() {
        model(|| {
            let lock = lock();
            let other = spawn(&lock, |lock| {
                add(lock);
                add(lock);
            });
            let mut expected = 2;
            if let Some(data) = lock.try_lock() {
                // SAFETY: this thread holds the lock.
                data.with_mut(|data| unsafe { *data += 1 });
                expected += 1;
            }
            other.join().unwrap();
            counted(&lock, expected);
        });
    }
}
