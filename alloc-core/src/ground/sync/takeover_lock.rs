//! A lock on a futex of four bytes that a forked child takes over, so no handler of fork takes it
//! before a fork. It does not allocate, poison or panic.
//!
//! ```text
//!   FREE ──take──▶ a process ──(a thread waits)──▶ the same, AWAITED ──release──▶ FREE, wake one
//! ```
//!
//! The word names the *process* whose thread holds the lock. If the process forks while another
//! thread holds it, the holder does not exist in the child. The child sees a number that is not its
//! own, and takes the lock over.
//!
//! Who waits sleeps: a thread of a real-time policy that only yields keeps an ordinary holder on
//! the same processor from running.

use super::futex::Futex;
use super::history::{History, LockHistory};
use super::lock::SPINS;
use super::seam::Ordering;
use crossbeam_utils::Backoff;

const FREE: u32 = 0;
/// Set in the word while a thread of the process may sleep. The bits above are the process's.
const AWAITED: u32 = 1;

/// The lock. What it guards lies beside it.
pub(crate) struct TakeoverLock {
    word: Futex,
    history: History,
}

/// The lock was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// Nobody had it.
    Free,
    /// A thread had it that does not exist in this process. What it did may be half done.
    LeftBehind,
}

/// Returns the bits of the process with so many forks before it. They are those of another one
/// again after 2^31 forks of child by child.
fn bits(forks: u64) -> u32 {
    ((forks % ((1 << 31) - 1)) as u32 + 1) << 1
}

impl TakeoverLock {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> TakeoverLock {
        TakeoverLock { word: Futex::new(FREE), history: History::new() }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> TakeoverLock {
        TakeoverLock { word: Futex::new(FREE), history: History::new() }
    }

    /// Takes the lock, and waits while another thread of this process has it. `forks` is the number
    /// of forks between this process and its first ancestor.
    pub(crate) fn take(&self, forks: u64) -> Taken {
        let mine = bits(forks);
        let taken = self.attempt(mine, mine).unwrap_or_else(|_| self.take_slowly(mine));
        self.note(taken);
        taken
    }

    /// Takes the lock, unless another thread of this process has it.
    pub(crate) fn try_take(&self, forks: u64) -> Option<Taken> {
        let mine = bits(forks);
        let taken = self.attempt(mine, mine).ok()?;
        self.note(taken);
        Some(taken)
    }

    /// Returns whether a thread of this process has the lock.
    pub(crate) fn is_taken(&self, forks: u64) -> bool {
        self.word.load(Ordering::Relaxed) & !AWAITED == bits(forks)
    }

    /// Releases the lock, which the calling thread has.
    pub(crate) fn release(&self) {
        // Release: pairs with the Acquire of who takes it next, in `attempt`.
        if self.word.swap(FREE, Ordering::Release) & AWAITED != 0 {
            self.word.wake_one();
        }
    }

    /// Returns what happened to the lock since [`TakeoverLock::reset_history`].
    pub(crate) fn history(&self) -> LockHistory {
        self.history.get()
    }

    /// Starts the history again. Called by the holder.
    pub(crate) fn reset_history(&self) {
        self.history.reset();
    }

    /// Writes `word` if no thread of the process `mine` has the lock. The error is the word that
    /// was found.
    fn attempt(&self, mine: u32, word: u32) -> Result<Taken, u32> {
        let found = self.word.load(Ordering::Relaxed);
        if found & !AWAITED == mine {
            return Err(found);
        }
        // Acquire: pairs with the Release in `release`.
        self.word.compare_exchange(found, word, Ordering::Acquire, Ordering::Relaxed)?;
        Ok(if found == FREE { Taken::Free } else { Taken::LeftBehind })
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(&self, mine: u32) -> Taken {
        self.history.refused();
        let backoff = Backoff::new();
        for _ in 0..SPINS {
            match self.attempt(mine, mine) {
                Ok(taken) => {
                    self.history.spun();
                    return taken;
                }
                Err(found) if found == mine | AWAITED => break,
                Err(_) => backoff.spin(),
            }
        }
        // AWAITED also when this thread has the lock, because other threads may sleep too.
        self.history.wait(|| {
            loop {
                match self.attempt(mine, mine | AWAITED) {
                    Ok(taken) => return taken,
                    Err(found) => self.sleep(mine, found),
                }
            }
        })
    }

    /// Sleeps while a thread of the process `mine` has the lock. May return early.
    fn sleep(&self, mine: u32, found: u32) {
        let awaited = mine | AWAITED;
        let order = Ordering::Relaxed;
        let is_marked = found == awaited
            || found == mine && self.word.compare_exchange(mine, awaited, order, order).is_ok();
        if is_marked {
            self.word.sleep(awaited, None);
        }
    }

    /// Counts that this thread has taken the lock.
    fn note(&self, taken: Taken) {
        if taken == Taken::LeftBehind {
            self.history.forget_waiters();
        }
        self.history.taken();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn sanit_who_waits_for_it_sleeps_and_is_woken() {
        let lock = Arc::new(TakeoverLock::new());
        assert_eq!(lock.take(0), Taken::Free);
        assert_eq!(lock.try_take(0), None);
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                std::thread::spawn(move || {
                    assert_eq!(lock.take(0), Taken::Free);
                    lock.release();
                })
            })
            .collect();
        // A waiter sets this bit before it sleeps.
        while lock.word.load(Ordering::Relaxed) != bits(0) | AWAITED
            || lock.history().most_waiting < 2
        {
            std::thread::yield_now();
        }
        lock.release();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(!lock.is_taken(0));
        let history = lock.history();
        assert_eq!((history.ops, history.waits, history.most_waiting), (3, 2, 2));
        lock.take(0);
        lock.reset_history();
        lock.release();
        assert_eq!(lock.history(), LockHistory::default());
    }

    #[test]
    fn a_child_takes_over_what_a_thread_of_its_parent_had() {
        for awaited in [0, AWAITED] {
            let lock = TakeoverLock::new();
            lock.take(6);
            lock.word.fetch_or(awaited, Ordering::Relaxed);
            assert!(lock.is_taken(6) && !lock.is_taken(7));
            assert_eq!(lock.take(7), Taken::LeftBehind);
            assert_eq!((lock.try_take(7), lock.word.load(Ordering::Relaxed)), (None, bits(7)));
            lock.release();
            assert_eq!(lock.try_take(7), Some(Taken::Free));
        }
    }

    #[test]
    fn no_process_has_the_word_of_a_free_lock() {
        let most = (1 << 31) - 2;
        assert_eq!((bits(0), bits(1), bits(most)), (2, 4, u32::MAX - 1));
        assert_eq!((bits(most + 1), bits(u64::MAX) & AWAITED), (2, 0));
        assert_ne!(bits(u64::MAX), FREE);
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
    struct World {
        lock: TakeoverLock,
        data: UnsafeCell<u32>,
    }

    // SAFETY: loom reports each access to the data that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        fn add(&self) {
            self.lock.take(1);
            // SAFETY: this thread has the lock.
            self.data.with_mut(|data| unsafe { *data += 1 });
            self.lock.release();
        }
    }

    /// Three threads take the lock, of which two may sleep at once, so each wake-up has to lead to
    /// the next one.
    fn each_thread_gets(lock: fn() -> TakeoverLock) {
        model(move || {
            let world = Arc::new(World { lock: lock(), data: UnsafeCell::new(0) });
            let others = [0, 1].map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.add())
            });
            world.add();
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(world.lock.try_take(1), Some(Taken::Free));
            // SAFETY: this thread has the lock.
            assert_eq!(world.data.with(|data| unsafe { *data }), 3);
        });
    }

    #[test]
    fn loom_each_thread_that_waits_for_it_gets_it() {
        each_thread_gets(TakeoverLock::new);
    }

    #[test]
    fn loom_one_thread_of_a_child_takes_it_over() {
        each_thread_gets(|| {
            let lock = TakeoverLock::new();
            lock.word.store(bits(0) | AWAITED, Ordering::Relaxed);
            lock
        });
    }
}
