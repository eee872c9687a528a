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
    use loom::sync::Arc;
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
}
