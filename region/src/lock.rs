//! The lock of a region: the start of its core data, which tells whether a call is in the region.
//!
//! A region of one thread has a word of its own, which finds calls from inside a call. Setting and
//! clearing it takes two plain stores. It is not the word of shared regions: when a region becomes
//! shared, the one thread may be about to store, and must not change the lock of another thread.
//!
//! Where processes share a region, the word names the process that is in it, so that the others
//! notice if that process has ended. One of them takes the lock over then, and is told that the
//! region may be half changed.

use crate::entry::{Entry, HELD};
use crate::futex::Futex;
use crate::holder::Holder;
use crate::owner;
use crate::seam::{AtomicU8, AtomicU32, AtomicUsize, Ordering, thread_number};

const FREE: u64 = 0;
/// Held, and another thread sleeps until it is free.
const AWAITED: u64 = 1 << 31;

/// The lock is held until the process has forked.
const HELD_FOR_FORK: u8 = 1;
/// The thread that forks is in the region.
const FORKS_INSIDE: u8 = 2;

/// How long a thread sleeps before it looks whether the process that it waits for has ended, at
/// first and at most.
const PATIENCE: (i64, i64) = (5_000_000, 320_000_000);

/// The lock of a region.
#[repr(C)]
pub struct Lock {
    /// Zero, or who is in the shared region: 1, or a process as [`owner`] has it. And [`AWAITED`].
    word: Futex,
    /// The thread that is in the shared region, as [`mark_of_entry`] has it, or that visits the
    /// region of another one, as [`mark_of_thread`] has it, or 0.
    thread: AtomicUsize,
    /// Whether a call is in the region as one that belongs to one thread: 1 or 0.
    alone: AtomicU32,
    /// Whether a process ended in the region, which was not mended since: 1 or 0.
    damaged: AtomicU8,
    /// [`HELD_FOR_FORK`], [`FORKS_INSIDE`], or 0.
    forking: AtomicU8,
}

impl Lock {
    /// A lock that is free.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Lock {
        Lock {
            word: Futex::new(FREE),
            thread: AtomicUsize::new(0),
            alone: AtomicU32::new(0),
            damaged: AtomicU8::new(0),
            forking: AtomicU8::new(0),
        }
    }

    #[cfg(loom)]
    pub fn new() -> Lock {
        Lock {
            word: Futex::new(FREE),
            thread: AtomicUsize::new(0),
            alone: AtomicU32::new(0),
            damaged: AtomicU8::new(0),
            forking: AtomicU8::new(0),
        }
    }

    /// Makes the lock free, whatever it was.
    pub fn begin(&self) {
        self.word.store(FREE, Ordering::Relaxed);
        self.alone.store(0, Ordering::Relaxed);
        self.forking.store(0, Ordering::Relaxed);
        self.thread.store(0, Ordering::Relaxed);
        self.damaged.store(0, Ordering::Relaxed);
    }

    /// Returns whether a call is in the region.
    pub fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) != FREE || self.is_held_alone()
    }

    /// Enters the region. Returns false if this thread is in it already, and for
    /// [`Entry::Alone`] if any thread entered it so. A shared region is waited for.
    #[inline]
    pub fn enter(&self, entry: Entry) -> bool {
        match entry {
            Entry::Alone => {
                let is_free = !self.is_held_alone();
                if is_free {
                    self.hold_alone();
                }
                is_free
            }
            Entry::Shared => self.take_turn(HELD, wait),
            Entry::Processes => self.take_turn(owner::own(), wait_for_processes),
        }
    }

    /// Leaves the region, as it was entered.
    #[inline]
    pub fn leave(&self, entry: Entry) {
        match entry {
            // Release: pairs with the Acquire in `is_left`.
            Entry::Alone => self.alone.store(0, Ordering::Release),
            Entry::Shared | Entry::Processes => self.leave_shared(),
        }
    }

    /// Returns whether a call is in the region as one that belongs to one thread.
    #[inline]
    pub(crate) fn is_held_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed) != 0
    }

    /// Enters a region that belongs to one thread, in which no call is.
    #[inline]
    pub(crate) fn hold_alone(&self) {
        self.alone.store(1, Ordering::Relaxed);
    }

    /// Enters a shared region if it is free now. Returns whether it did, or `None` if this thread
    /// is in it.
    pub(crate) fn try_enter(&self, entry: Entry) -> Option<bool> {
        let own = entry.own();
        // Acquire: pairs with the Release in `leave_shared`.
        let taken = self.word.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            // Release: pairs with the Acquire in `forget_thread`.
            self.thread.store(mark_of_entry(own), Ordering::Release);
        } else if self.is_of_this_thread_of(own) {
            return None;
        }
        Some(taken.is_ok())
    }

    /// Enters a region of several processes, unless a process that exists is in it: this one
    /// neither waits for it nor for a thread of its own.
    #[cfg(not(loom))]
    pub(crate) fn enter_at_once(&self) -> bool {
        if self.try_enter(Entry::Processes) == Some(true) {
            return true;
        }
        let (own, word) = (owner::own(), self.word.load(Ordering::Relaxed));
        if word == FREE || names_process(word) || !take_over(self, word, own) {
            return false;
        }
        // Release: pairs with the Acquire in `forget_thread`.
        self.thread.store(mark_of_entry(own), Ordering::Release);
        true
    }

    /// Returns whether no call of the one thread is in the region, and what the last one wrote is
    /// seen.
    pub(crate) fn is_left(&self) -> bool {
        // Acquire: pairs with the Release in `leave`.
        self.alone.load(Ordering::Acquire) == 0
    }

    /// Notes this thread in the lock of a region of one thread, as its visitor, or nobody.
    pub(crate) fn note_this_thread(&self, on: bool) {
        let mark = if on { mark_of_thread(HELD) } else { 0 };
        self.thread.store(mark, Ordering::Relaxed);
    }

    /// Returns whether this thread was noted.
    pub(crate) fn is_of_this_thread(&self) -> bool {
        self.thread.load(Ordering::Relaxed) == mark_of_thread(HELD)
    }

    /// Enters a shared region until the process has forked, unless this thread is in it.
    pub fn hold_for_fork(&self) {
        let is_held = self.enter(Entry::Shared);
        let state = if is_held { HELD_FOR_FORK } else { FORKS_INSIDE };
        self.forking.store(state, Ordering::Relaxed);
    }

    /// Notes before a fork whether this thread is in the shared region, which is not held for it.
    pub fn note_fork(&self, entry: Entry) {
        if self.is_of_this_thread_of(entry.own()) {
            self.forking.store(FORKS_INSIDE, Ordering::Relaxed);
        }
    }

    /// Leaves a region that [`Lock::hold_for_fork`] entered, in the parent and in the child, where
    /// the process is noted already.
    pub fn release_after_fork(&self) {
        if self.ends_fork(HELD_FOR_FORK) {
            self.leave(Entry::Shared);
        } else {
            self.follow_fork(Entry::Shared);
        }
    }

    /// Keeps this thread in a region in which it was before the fork, in the parent and in the
    /// child, where the process is noted already. If both have the memory, it is one of them.
    pub fn follow_fork(&self, entry: Entry) {
        if !self.ends_fork(FORKS_INSIDE) {
            return;
        }
        let own = entry.own();
        if entry == Entry::Processes {
            // A thread that sleeps meanwhile is woken.
            self.word.store(own | AWAITED, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `forget_thread`.
        self.thread.store(mark_of_entry(own), Ordering::Release);
    }

    /// Notes this thread as the one in the shared region, in a process that was noted anew.
    pub fn note_process(&self) {
        // Release: pairs with the Acquire in `forget_thread`.
        self.thread.store(mark_of_entry(HELD), Ordering::Release);
    }

    fn ends_fork(&self, state: u8) -> bool {
        let ended = self.forking.compare_exchange(state, 0, Ordering::Relaxed, Ordering::Relaxed);
        ended.is_ok()
    }

    /// Returns whether a process ended in the region, and nobody mended it since. Only who is in
    /// the region may ask.
    #[inline]
    pub fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed) != 0
    }

    /// Notes that the region is whole again.
    pub fn mended(&self) {
        self.damaged.store(0, Ordering::Relaxed);
    }

    /// Frees the lock of a process that ended. The caller knows of no process that has the region,
    /// but may be wrong: the lock of a process that is seen to exist stays. Returns whether it does
    /// not.
    pub(crate) fn free_unless_seen(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let owner = word & !AWAITED;
        if owner == FREE {
            return true;
        }
        let is_seen = owner::is_seen(owner);
        if !is_seen {
            forget_thread(self, word);
            // Release: pairs with the Acquire in `is_of_this_thread_of`. If it fails, a process was
            // faster.
            let _ = self.word.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed);
        }
        !is_seen
    }

    /// Returns the process that is in a region of several processes, or was when it ended.
    pub fn holder(&self) -> Option<Holder> {
        let word = self.word.load(Ordering::Relaxed) & !AWAITED;
        (word != FREE).then(|| Holder::of(word))
    }

    #[inline]
    fn take_turn(&self, own: u64, wait: fn(&Lock, u64)) -> bool {
        // Acquire: pairs with the Release in `leave_shared`.
        let taken = self.word.compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            if self.is_of_this_thread_of(own) {
                return false;
            }
            wait(self, own);
        }
        // Release: pairs with the Acquire in `forget_thread`.
        self.thread.store(mark_of_entry(own), Ordering::Release);
        true
    }

    /// Returns whether this thread of a process entered the shared region. The process may have
    /// had a number of fewer parts then.
    fn is_of_this_thread_of(&self, own: u64) -> bool {
        // Acquire: pairs with the Release in `take_over` and in `free_unless_seen`. The mark that a
        // process left when it ended is not seen any more.
        let word = self.word.load(Ordering::Acquire) & !AWAITED;
        // Only this thread writes its own mark.
        owner::is_same(word, own) && self.thread.load(Ordering::Relaxed) == mark_of_entry(word)
    }

    #[inline]
    fn leave_shared(&self) {
        self.thread.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire of the thread that enters next.
        if self.word.swap(FREE, Ordering::Release) & AWAITED != 0 {
            self.word.wake_one();
        }
    }
}

/// Returns whether the word of a lock of processes names one that exists.
#[cfg(not(loom))]
pub(crate) fn names_process(word: u64) -> bool {
    let owner = word & !AWAITED;
    owner != FREE && owner::is_alive(owner)
}

/// Returns a number of this thread of a process. Threads of two processes may have the same number
/// in each, so the process counts too: a mark that a process left when it ended is no thread's.
#[inline]
fn mark_of_thread(own: u64) -> usize {
    /// An odd number without structure: the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    thread_number() ^ own.wrapping_mul(FACTOR) as usize
}

/// Returns the mark of this thread for a word that says who is in the shared region. The word of
/// threads is the same in all processes, which may share the region's memory all the same.
#[inline]
fn mark_of_entry(word: u64) -> usize {
    mark_of_thread(if word == HELD { owner::noted() } else { word })
}

/// Waits until the lock is free, and takes it.
#[cold]
fn wait(lock: &Lock, own: u64) {
    // Acquire: pairs with the Release in `leave_shared`.
    while lock.word.swap(own | AWAITED, Ordering::Acquire) != FREE {
        lock.word.sleep(own | AWAITED, None);
    }
}

/// Waits until the lock is free, or the process that has it is gone, and takes it.
#[cold]
fn wait_for_processes(lock: &Lock, own: u64) {
    let (mut nanoseconds, longest) = PATIENCE;
    let mut word = lock.word.load(Ordering::Relaxed);
    loop {
        let awaited = word | AWAITED;
        // Others may wait too, so whoever had to wait leaves the mark.
        let next = if word == FREE { own | AWAITED } else { awaited };
        // Acquire: pairs with the Release in `leave_shared`.
        match lock.word.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed) {
            Ok(FREE) => return,
            Err(now) => {
                word = now;
                continue;
            }
            Ok(_) => {}
        }
        lock.word.sleep(awaited, Some(nanoseconds));
        word = lock.word.load(Ordering::Relaxed);
        if word == awaited {
            if !owner::is_alive(word & !AWAITED) && take_over(lock, word, own) {
                return;
            }
            nanoseconds = (nanoseconds * 2).min(longest);
            word = lock.word.load(Ordering::Relaxed);
        }
    }
}

/// Clears the mark that a process left when it ended: until the new owner writes its own, another
/// thread of it may find its own number there, and take itself for the one in the region. The mark
/// of a faster new owner stays.
fn forget_thread(lock: &Lock, word: u64) {
    // Acquire: pairs with the Release in `take_turn`. If the mark is a new owner's, the word is
    // seen to be, too.
    let mark = lock.thread.load(Ordering::Acquire);
    if lock.word.load(Ordering::Relaxed) == word {
        // If it fails, a new owner was faster.
        let _ = lock.thread.compare_exchange(mark, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Takes the lock of a process that is gone, unless another one was faster.
fn take_over(lock: &Lock, word: u64, own: u64) -> bool {
    forget_thread(lock, word);
    // Acquire: pairs with the Release in `leave_shared` of the process before. The one that ended
    // has left all that it wrote. Release: pairs with the Acquire in `is_of_this_thread_of`.
    let taken =
        lock.word.compare_exchange(word, own | AWAITED, Ordering::AcqRel, Ordering::Relaxed);
    if taken.is_ok() {
        lock.damaged.store(1, Ordering::Relaxed);
    }
    taken.is_ok()
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}

#[cfg(all(test, loom))]
#[path = "lock_loom.rs"]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::UnsafeCell;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn a_call_from_inside_a_call_is_refused() {
        for entry in [Entry::Alone, Entry::Shared, Entry::Processes] {
            let lock = Lock::new();
            assert!(!lock.is_held());
            assert!(lock.enter(entry));
            assert!(lock.is_held());
            assert!(!lock.enter(entry));
            lock.leave(entry);
            assert!(lock.enter(entry));
        }
    }

    #[test]
    fn threads_take_turns() {
        take_turns(Entry::Shared);
    }

    #[test]
    fn threads_take_turns_where_processes_do() {
        take_turns(Entry::Processes);
    }

    fn take_turns(entry: Entry) {
        struct Counter(Lock, UnsafeCell<u64>);
        // SAFETY: the lock protects the number.
        unsafe impl Sync for Counter {}
        const ROUNDS: u64 = 20_000;
        let counter = Counter(Lock::new(), UnsafeCell::new(0));
        let count = || {
            let counter = &counter;
            for _ in 0..ROUNDS {
                assert!(counter.0.enter(entry));
                // SAFETY: the lock is held.
                unsafe { *counter.1.get() += 1 };
                counter.0.leave(entry);
            }
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            for thread in threads {
                assert!(thread.join().is_ok());
            }
        });
        assert_eq!(counter.1.into_inner(), 4 * ROUNDS);
    }

    #[test]
    fn a_fork_leaves_the_region_as_it_found_it() {
        let lock = Lock::new();
        lock.hold_for_fork();
        assert!(lock.is_held());
        lock.release_after_fork();
        assert!(!lock.is_held());
        assert!(lock.enter(Entry::Shared));
        lock.hold_for_fork();
        lock.release_after_fork();
        assert!(lock.is_held());
    }

    #[test]
    fn the_lock_of_a_process_that_is_gone_is_taken_over() {
        let lock = Lock::new();
        assert_eq!(lock.holder(), None);
        // A process of the last boot.
        lock.word.store(owner::of_another_boot(), Ordering::Relaxed);
        lock.thread.store(mark_of_entry(owner::of_another_boot()), Ordering::Relaxed);
        let holder = lock.holder().unwrap();
        assert_eq!((holder.process, holder.is_alive()), (std::process::id(), false));
        assert!(lock.enter(Entry::Processes));
        assert!(lock.is_damaged());
        assert!(!lock.enter(Entry::Processes));
        lock.mended();
        lock.leave(Entry::Processes);
        assert!(lock.enter(Entry::Processes));
        assert!(!lock.is_damaged());
    }

    #[test]
    fn a_thread_is_known_that_entered_when_its_process_knew_less_of_itself() {
        let lock = Lock::new();
        let few = owner::own() & !(0xfff << 52);
        lock.word.store(few | AWAITED, Ordering::Relaxed);
        lock.thread.store(mark_of_thread(few), Ordering::Relaxed);
        assert!(!lock.enter(Entry::Processes));
        assert_eq!(lock.try_enter(Entry::Processes), None);
        // Another thread's mark.
        lock.thread.store(mark_of_thread(few) ^ 1, Ordering::Relaxed);
        assert_eq!(lock.try_enter(Entry::Processes), Some(false));
    }

    #[test]
    fn the_lock_of_a_process_that_is_seen_is_not_freed() {
        let lock = Lock::new();
        assert!(lock.free_unless_seen());
        assert!(lock.enter(Entry::Processes));
        assert!(!lock.free_unless_seen() && lock.is_held());
        // Of another boot, and of another namespace.
        for gone in [owner::of_another_boot(), owner::of_another_space()] {
            lock.word.store(gone | AWAITED, Ordering::Relaxed);
            assert!(lock.free_unless_seen() && !lock.is_held());
        }
    }

    #[test]
    fn who_does_not_wait_enters_unless_a_process_is_in_the_region() {
        let lock = Lock::new();
        assert!(lock.enter_at_once());
        assert!(!lock.enter_at_once(), "this thread is in it");
        lock.leave(Entry::Processes);
        // Another one, which cannot be seen and counts as alive.
        lock.word.store(owner::of_another_space(), Ordering::Relaxed);
        assert!(!lock.enter_at_once() && !lock.is_damaged());
        lock.word.store(owner::of_another_boot(), Ordering::Relaxed);
        assert!(lock.enter_at_once() && lock.is_damaged());
        assert_eq!(lock.try_enter(Entry::Processes), None);
    }

    #[test]
    fn who_takes_a_lock_over_clears_the_mark_of_the_thread_that_is_gone() {
        let lock = Lock::new();
        let gone = owner::of_another_boot();
        lock.word.store(gone | AWAITED, Ordering::Relaxed);
        // The number that another thread of this process has by chance.
        lock.thread.store(77, Ordering::Relaxed);
        assert!(take_over(&lock, gone | AWAITED, owner::own()));
        assert_eq!(lock.thread.load(Ordering::Relaxed), 0);
        // Another one comes too late, and leaves the mark of the owner.
        lock.thread.store(78, Ordering::Relaxed);
        assert!(!take_over(&lock, gone | AWAITED, owner::own()));
        assert_eq!(lock.thread.load(Ordering::Relaxed), 78);
    }
}
