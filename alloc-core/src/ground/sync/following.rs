//! A word of each thread that follows a state of all threads, which another thread switches.
//!
//! ```text
//!   thread                              the thread that switches
//!   a: word = value for the state       1: state = new
//!   b: state changed? again             2: membarrier
//!                                       3: word: compare-exchange old → value for the new state
//!                                       4: membarrier
//! ```
//! Either b sees 1, and the thread corrects its word itself, or 2 came after b, and therefore after
//! a. Then 3 sees what a stored.

use super::seam::{AtomicPtr, Ordering};

/// Sets the calling thread's word by `set`, for the state that `state` reads, until the state stays
/// the same. `fence` is a fence of the compiler, of which membarrier(2) makes a real one.
#[inline(always)]
pub(crate) fn follow<S: Copy + PartialEq>(
    state: impl Fn() -> S,
    set: impl Fn(S),
    fence: impl Fn(),
) {
    let mut seen = state();
    loop {
        set(seen);
        fence();
        let now = state();
        if now == seen {
            return;
        }
        seen = now;
    }
}

/// Changes another thread's word to what `value_for` makes of it. `None`: the word stays, because
/// its thread sets it itself before it goes on.
pub(crate) fn move_word(word: &AtomicPtr<u8>, value_for: impl Fn(*mut u8) -> Option<*mut u8>) {
    let mut seen = word.load(Ordering::Relaxed);
    while let Some(value) = value_for(seen) {
        // SeqCst: pairs with the fences that membarrier(2) makes in every thread.
        match word.compare_exchange(seen, value, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::{AtomicU64, fence, model};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// A thread's word, and the state of all threads. A word says which cache, and for which state.
    struct World {
        word: AtomicPtr<u8>,
        state: AtomicU64,
    }

    fn value(cache: usize, state: u64) -> *mut u8 {
        core::ptr::without_provenance_mut(cache << 8 | state as usize)
    }

    impl World {
        /// By the thread: its word names a cache from now on.
        fn show(&self, cache: usize) {
            follow(
                || self.state.load(Ordering::Relaxed),
                // A swap instead of the plain store, because loom does not keep a store out of the
                // middle of a compare-exchange. It orders nothing but the word itself.
                |state| drop(self.word.swap(value(cache, state), Ordering::Relaxed)),
                // What the membarrier of the other thread makes of the compiler's fence.
                || fence(Ordering::SeqCst),
            );
        }

        /// By another thread.
        fn switch(&self, state: u64) {
            self.state.store(state, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            move_word(&self.word, |word| Some(value(word.addr() >> 8, state)));
            fence(Ordering::SeqCst);
        }
    }

    impl World {
        /// The word, when all threads have ended.
        fn word(&self) -> *mut u8 {
            self.word.swap(core::ptr::null_mut(), Ordering::Relaxed)
        }
    }

    fn world() -> Arc<World> {
        Arc::new(World { word: AtomicPtr::new(value(1, 0)), state: AtomicU64::new(0) })
    }

    #[test]
    fn loom_a_thread_that_changes_its_cache_follows_a_switch() {
        model(|| {
            let world = world();
            let thread = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    world.show(2);
                    world.show(3);
                })
            };
            world.switch(1);
            thread.join().unwrap();
            assert_eq!(world.word(), value(3, 1));
        });
    }

    #[test]
    fn loom_the_last_of_two_switches_counts() {
        model(|| {
            let world = world();
            let thread = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.show(2))
            };
            world.switch(1);
            world.switch(2);
            thread.join().unwrap();
            assert_eq!(world.word(), value(2, 2));
        });
    }

    /// A bin as `front/bins/cache_bin.rs` has it, with three blocks, and what another thread has
    /// taken out of it.
    struct Bin {
        word: AtomicPtr<u8>,
        emptied: AtomicU64,
        /// The number of blocks, and the slots above the base.
        level: AtomicU64,
        slots: [AtomicU64; 5],
        /// Under the lock.
        gone: Mutex<u64>,
        /// Whether a façade of the hardened tier, or one that only counts, goes straight to the
        /// bin. Changed under the lock of the registry.
        is_open: AtomicU64,
        registry: Mutex<()>,
    }

    const FRONT: usize = 1;
    const FACADE: usize = 2;
    const ANOTHER: usize = 3;
    /// The façade of a thread whose every operation is seen.
    const WATCHED: usize = 4;
    /// The façade of the hardened tier, which goes straight to the bin if it is the only mode.
    const HARDENED: usize = 5;

    fn word(which: usize) -> *mut u8 {
        core::ptr::without_provenance_mut(which)
    }

    impl Bin {
        fn new() -> Bin {
            Bin {
                word: AtomicPtr::new(word(FRONT)),
                emptied: AtomicU64::new(0),
                level: AtomicU64::new(3),
                slots: [0, 1, 2, 3, 0].map(AtomicU64::new),
                gone: Mutex::new(0),
                is_open: AtomicU64::new(1),
                registry: Mutex::new(()),
            }
        }

        /// The bin, after the slow path of a thread whose word names the façade.
        fn awake(&self) {
            let seen = self.word.load(Ordering::Relaxed);
            if seen == word(FACADE) || seen == word(WATCHED) {
                self.make_whole();
            }
            if seen == word(FACADE) {
                self.show();
            }
            if seen == word(HARDENED) && self.is_open.load(Ordering::Relaxed) == 0 {
                self.make_whole();
                if let Ok(_registry) = self.registry.try_lock() {
                    let is_open = self.emptied.load(Ordering::Acquire) == 0;
                    self.is_open.store(u64::from(is_open), Ordering::Relaxed);
                }
            }
        }

        /// By the thread: its word names the bin's front from now on, or the façade.
        fn show(&self) {
            follow(
                || self.emptied.load(Ordering::Acquire),
                |emptied| {
                    let which = if emptied == 0 { FRONT } else { FACADE };
                    self.word.swap(word(which), Ordering::Relaxed);
                },
                || fence(Ordering::SeqCst),
            );
        }

        /// By the thread: its word names something else than the bin's front.
        fn leave_for(&self, other: usize) {
            self.word.swap(word(other), Ordering::Relaxed);
        }

        fn make_whole(&self) {
            let mut gone = self.gone.lock().unwrap();
            if self.emptied.load(Ordering::Acquire) != 0 {
                let level = self.level.load(Ordering::Relaxed);
                for slot in *gone + 1..=level {
                    let block = self.slots[slot as usize].load(Ordering::Relaxed);
                    self.slots[(slot - *gone) as usize].store(block, Ordering::Relaxed);
                }
                self.level.store(level - *gone, Ordering::Relaxed);
                *gone = 0;
                self.emptied.store(0, Ordering::SeqCst);
            }
        }

        /// A pop of the thread. 0: the bin is empty.
        fn pop(&self) -> u64 {
            // What the membarrier of the other thread makes of the time between two operations.
            fence(Ordering::SeqCst);
            self.awake();
            let level = self.level.load(Ordering::Relaxed);
            let block = self.slots[level as usize].load(Ordering::Relaxed);
            if block != 0 {
                self.level.store(level - 1, Ordering::Relaxed);
            }
            block
        }

        /// A push of the thread.
        fn push(&self, block: u64) {
            fence(Ordering::SeqCst);
            self.awake();
            let level = self.level.load(Ordering::Relaxed) + 1;
            self.slots[level as usize].store(block, Ordering::Relaxed);
            self.level.store(level, Ordering::Relaxed);
        }

        /// By another thread. Returns the blocks that it took, as bits.
        fn empty(&self) -> u64 {
            let _registry = self.registry.lock().unwrap();
            self.emptied.store(1, Ordering::SeqCst);
            self.is_open.store(0, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let (front, facade) = (word(FRONT), word(FACADE));
            let shut =
                self.word.compare_exchange(front, facade, Ordering::SeqCst, Ordering::Relaxed);
            assert_ne!(shut, Err(front));
            fence(Ordering::SeqCst);
            let mut gone = self.gone.lock().unwrap();
            let mut taken = 0;
            if self.emptied.load(Ordering::Acquire) != 0 {
                let level = self.level.load(Ordering::Relaxed);
                *gone = level.saturating_sub(1);
                for slot in 1..=*gone {
                    taken |= 1 << self.slots[slot as usize].load(Ordering::Relaxed);
                }
            }
            taken
        }
    }

    /// Each block is popped once or taken once.
    fn empties_while(operations: fn(&Bin) -> u64) {
        model(move || {
            let bin = Arc::new(Bin::new());
            let thread = {
                let bin = Arc::clone(&bin);
                thread::spawn(move || operations(&bin))
            };
            let taken = bin.empty();
            let mut popped = thread.join().unwrap() & !1;
            loop {
                let block = bin.pop();
                if block == 0 {
                    break;
                }
                assert_eq!(popped & 1 << block, 0, "popped twice");
                popped |= 1 << block;
            }
            assert_eq!(popped & taken, 0, "popped and taken");
            assert_eq!(popped | taken, 0b1110, "lost");
        });
    }

    #[test]
    fn loom_a_bin_is_emptied_while_its_thread_pops() {
        empties_while(|bin| 1 << bin.pop() | 1 << bin.pop());
    }

    #[test]
    fn loom_a_bin_is_emptied_while_its_thread_pops_and_pushes() {
        empties_while(|bin| {
            let block = bin.pop();
            bin.push(block);
            0
        });
    }

    #[test]
    fn loom_a_bin_is_emptied_while_its_thread_comes_back_to_it() {
        empties_while(|bin| {
            bin.leave_for(ANOTHER);
            bin.show();
            1 << bin.pop() | 1 << bin.pop()
        });
    }

    #[test]
    fn loom_a_bin_is_emptied_while_its_thread_uses_another_one() {
        empties_while(|bin| {
            let first = 1 << bin.pop();
            bin.leave_for(ANOTHER);
            bin.show();
            first | 1 << bin.pop()
        });
    }

    #[test]
    fn loom_a_bin_behind_a_facade_that_goes_straight_to_it_is_emptied() {
        empties_while(|bin| {
            bin.leave_for(HARDENED);
            1 << bin.pop() | 1 << bin.pop()
        });
        empties_while(|bin| {
            bin.leave_for(HARDENED);
            let block = bin.pop();
            bin.push(block);
            0
        });
        // The façade is closed still, because the thread could not open it when it woke.
        empties_while(|bin| {
            bin.leave_for(HARDENED);
            bin.is_open.store(0, Ordering::Relaxed);
            1 << bin.pop() | 1 << bin.pop()
        });
    }

    /// `Emptied::settle`, while another thread sets the rate of the heap profiler and then a mark
    /// that may have been set before.
    #[test]
    fn loom_a_thread_that_takes_a_mark_away_has_seen_why_it_was_set() {
        model(|| {
            let (mark, rate) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
            let thread = {
                let (mark, rate) = (Arc::clone(&mark), Arc::clone(&rate));
                thread::spawn(move || {
                    mark.swap(0, Ordering::AcqRel);
                    rate.load(Ordering::Acquire)
                })
            };
            rate.fetch_add(1, Ordering::Release);
            // A swap instead of the plain store, as in `World::show`.
            mark.swap(1, Ordering::SeqCst);
            let seen = thread.join().unwrap();
            assert!(seen == 1 || mark.load(Ordering::Relaxed) == 1);
        });
    }

    #[test]
    fn loom_a_bin_is_emptied_whose_thread_is_watched() {
        empties_while(|bin| {
            bin.leave_for(WATCHED);
            1 << bin.pop() | 1 << bin.pop()
        });
    }
}
