//! The lock of a region: the first word of its core data, which tells whether a call is in the
//! region.
//!
//! A region of one thread has the word too: it finds calls from inside a call. Setting and clearing
//! it then takes two plain stores.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and another thread sleeps until it is free.
const AWAITED: u32 = 2;

/// The lock of a region.
#[repr(C)]
pub struct Lock {
    word: AtomicU32,
    /// Whether the lock is held for a fork: 1 or 0.
    forking: AtomicU32,
    /// The thread that is in the region, as [`thread_number`](lumalloc::observe::thread_number) has
    /// it, or 0.
    owner: AtomicUsize,
}

/// How threads enter a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The region belongs to one thread at a time.
    Alone,
    /// Threads take turns. Source: vmalloc(3), `VM_SHARE`.
    Shared,
}

impl Lock {
    /// A lock that is free.
    #[must_use]
    pub const fn new() -> Lock {
        Lock { word: AtomicU32::new(FREE), forking: AtomicU32::new(0), owner: AtomicUsize::new(0) }
    }

    /// Makes the lock free, whatever it was.
    pub fn begin(&self) {
        self.word.store(FREE, Ordering::Relaxed);
        self.forking.store(0, Ordering::Relaxed);
        self.owner.store(0, Ordering::Relaxed);
    }

    /// Returns whether a call is in the region.
    pub fn is_held(&self) -> bool {
        self.word.load(Ordering::Relaxed) != FREE
    }

    /// Enters the region. Returns false if this thread is in it already, and for
    /// [`Entry::Alone`] if any thread is. A shared region is waited for.
    #[inline]
    pub fn enter(&self, entry: Entry) -> bool {
        match entry {
            Entry::Alone => {
                let is_free = !self.is_held();
                if is_free {
                    self.word.store(HELD, Ordering::Relaxed);
                }
                is_free
            }
            Entry::Shared => self.enter_shared(lumalloc::observe::thread_number()),
        }
    }

    /// Leaves the region, as it was entered.
    #[inline]
    pub fn leave(&self, entry: Entry) {
        match entry {
            Entry::Alone => self.word.store(FREE, Ordering::Relaxed),
            Entry::Shared => self.leave_shared(),
        }
    }

    /// Enters a shared region until the process has forked, unless this thread is in it.
    pub fn hold_for_fork(&self) {
        let is_held = self.enter(Entry::Shared);
        if is_held {
            self.forking.store(1, Ordering::Relaxed);
        }
    }

    /// Leaves a region that [`Lock::hold_for_fork`] entered, in the parent and in the child.
    pub fn release_after_fork(&self) {
        if self.forking.swap(0, Ordering::Relaxed) == 1 {
            self.leave(Entry::Shared);
        }
    }

    #[inline]
    fn enter_shared(&self, thread: usize) -> bool {
        // Acquire: pairs with the Release in `leave_shared`.
        if self.word.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
            // Only this thread writes its own number.
            if self.owner.load(Ordering::Relaxed) == thread {
                return false;
            }
            self.wait();
        }
        self.owner.store(thread, Ordering::Relaxed);
        true
    }

    #[inline]
    fn leave_shared(&self) {
        self.owner.store(0, Ordering::Relaxed);
        // Release: pairs with the Acquire of the thread that enters next.
        if self.word.swap(FREE, Ordering::Release) == AWAITED {
            futex(&self.word, libc::FUTEX_WAKE, 1);
        }
    }

    #[cold]
    fn wait(&self) {
        // Acquire: pairs with the Release in `leave_shared`.
        while self.word.swap(AWAITED, Ordering::Acquire) != FREE {
            futex(&self.word, libc::FUTEX_WAIT, AWAITED);
        }
    }
}

impl Default for Lock {
    fn default() -> Lock {
        Lock::new()
    }
}

/// Sleeps while the word has a value, or wakes a thread that sleeps on it. Keeps `errno`.
fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: the function always returns a valid pointer to this thread's variable.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let forever = core::ptr::null::<libc::timespec>();
    // SAFETY: the word is mapped, and a null timeout is none.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
    // SAFETY: as above.
    unsafe { *errno = before };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::UnsafeCell;
    use std::thread;
    use std::vec::Vec;

    #[test]
    fn a_call_from_inside_a_call_is_refused() {
        for entry in [Entry::Alone, Entry::Shared] {
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
        struct Counter(Lock, UnsafeCell<u64>);
        // SAFETY: the lock protects the number.
        unsafe impl Sync for Counter {}
        const ROUNDS: u64 = 20_000;
        let counter = Counter(Lock::new(), UnsafeCell::new(0));
        let count = || {
            let counter = &counter;
            for _ in 0..ROUNDS {
                assert!(counter.0.enter(Entry::Shared));
                // SAFETY: the lock is held.
                unsafe { *counter.1.get() += 1 };
                counter.0.leave(Entry::Shared);
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
    fn errno_is_kept() {
        // SAFETY: the function always returns a valid pointer to this thread's variable.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = 77 };
        // The word has another value, so the call fails with EAGAIN.
        futex(&AtomicU32::new(FREE), libc::FUTEX_WAIT, HELD);
        // SAFETY: as above.
        assert_eq!(unsafe { *errno }, 77);
    }
}
