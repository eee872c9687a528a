//! Whether an arena is live. A created arena can be destroyed, and its index can be used again.

use crate::ground::sync::seam::{AtomicU8, AtomicU32, Ordering, Ordering::Relaxed};

/// Whether an arena is live, and how many threads and explicit caches are bound to it.
///
/// A thread that binds first counts itself, or the cache, and then reads the state. A thread that
/// destroys first sets the state and then reads the counts. So one of the two sees the other.
pub(crate) struct Life {
    state: AtomicU8,
    bound: AtomicU32,
    /// Explicit caches that take pages from the arena only.
    caches: AtomicU32,
    /// How often the arena ended.
    ends: AtomicU32,
}

const LIVE: u8 = 0;
const ENDING: u8 = 1;
const DEAD: u8 = 2;

impl Life {
    /// A live arena, with no thread bound to it.
    #[cfg(not(loom))]
    pub(in crate::middle) const fn new() -> Life {
        let [bound, caches, ends] = [const { AtomicU32::new(0) }; 3];
        Life { state: AtomicU8::new(LIVE), bound, caches, ends }
    }

    /// As above. Loom orders SeqCst loads with SeqCst stores only, and no first value is one.
    #[cfg(loom)]
    pub(in crate::middle) fn new() -> Life {
        let [bound, caches, ends] = [0, 0, 0].map(AtomicU32::new);
        let life = Life { state: AtomicU8::new(LIVE), bound, caches, ends };
        life.state.store(LIVE, Ordering::SeqCst);
        [&life.bound, &life.caches].iter().for_each(|count| count.store(0, Ordering::SeqCst));
        life
    }

    /// Whether blocks may be allocated in the arena.
    #[inline]
    pub(in crate::middle) fn is_live(&self) -> bool {
        self.state.load(Relaxed) == LIVE
    }

    /// Counts one more thread that is bound to the arena. `false`: the arena is not live.
    pub(crate) fn bind(&self) -> bool {
        self.count_in(&self.bound)
    }

    /// As [`Life::bind`], but for an explicit cache.
    pub(crate) fn bind_cache(&self) -> bool {
        self.count_in(&self.caches)
    }

    fn count_in(&self, count: &AtomicU32) -> bool {
        // SeqCst: pairs with the exchange in `begin_end`.
        count.fetch_add(1, Ordering::SeqCst);
        // SeqCst: pairs with the exchange in `begin_end`.
        let lives = self.state.load(Ordering::SeqCst) == LIVE;
        if !lives {
            count.fetch_sub(1, Relaxed);
        }
        lives
    }

    /// Counts one explicit cache less.
    pub(crate) fn unbind_cache(&self) {
        self.caches.fetch_sub(1, Relaxed);
    }

    /// Counts one thread less that is bound to the arena.
    pub(crate) fn unbind(&self) {
        self.bound.fetch_sub(1, Relaxed);
    }

    /// How many threads are bound to the arena.
    pub(crate) fn bound(&self) -> u32 {
        self.bound.load(Relaxed)
    }

    /// How often the arena ended.
    pub(crate) fn ends(&self) -> u32 {
        self.ends.load(Relaxed)
    }

    /// Begins the end of the arena. `false`: threads or caches are bound to it, or it is not live.
    pub(in crate::middle) fn begin_end(&self) -> bool {
        // First, because to those that are bound already the arena must always look live.
        if self.is_in_use() {
            return false;
        }
        // SeqCst: pairs with the count in `count_in`.
        if self.state.compare_exchange(LIVE, ENDING, Ordering::SeqCst, Relaxed).is_err() {
            return false;
        }
        if self.is_in_use() {
            self.state.store(LIVE, Relaxed);
            return false;
        }
        true
    }

    /// Whether threads or caches are bound to the arena.
    fn is_in_use(&self) -> bool {
        // SeqCst: pairs with the count in `count_in`.
        [&self.bound, &self.caches].iter().any(|count| count.load(Ordering::SeqCst) > 0)
    }

    /// Ends what [`Life::begin_end`] began.
    pub(in crate::middle) fn complete_end(&self) {
        // First, so that an arena that is live again is never taken for the one that ended.
        self.ends.fetch_add(1, Relaxed);
        // Release: pairs with the Acquire in `is_dead`.
        self.state.store(DEAD, Ordering::Release);
    }

    /// Makes the arena live again if it was ending. Called in the child of a fork, where the thread
    /// that ended it is not.
    pub(in crate::middle) fn forget_end(&self) {
        // Relaxed: the child has one thread.
        let _changed = self.state.compare_exchange(ENDING, LIVE, Relaxed, Relaxed);
    }

    /// Whether the arena has ended.
    pub(in crate::middle) fn is_dead(&self) -> bool {
        // Acquire: pairs with the Release in `complete_end`.
        self.state.load(Ordering::Acquire) == DEAD
    }

    /// Makes the arena live again. No other thread changes the state of an arena that has ended.
    pub(in crate::middle) fn revive(&self) {
        // Release: pairs with the SeqCst load in `count_in`, behind which its settings are seen.
        self.state.store(LIVE, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_arena_ends_when_no_thread_is_bound_to_it() {
        let life = Life::new();
        assert!(life.is_live() && !life.is_dead() && life.bind());
        assert!(!life.begin_end() && life.is_live(), "a thread is bound to it");
        life.unbind();
        assert!(life.bind_cache() && !life.begin_end() && life.bound() == 0, "a cache is");
        life.unbind_cache();
        assert!(life.begin_end() && !life.is_live() && !life.is_dead());
        assert!(!life.begin_end(), "it is ending");
        assert!(!life.bind() && !life.bind_cache() && life.bound() == 0);
        life.forget_end();
        assert!(life.is_live() && life.begin_end());
        life.complete_end();
        life.forget_end();
        assert!(life.is_dead() && life.ends() == 1 && !life.bind());
        life.revive();
        assert!(life.is_live() && life.bind());
        assert_eq!((life.bound(), life.ends()), (1, 1));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct World {
        life: Life,
        /// What the arena holds.
        blocks: UnsafeCell<u32>,
    }

    // SAFETY: loom reports each access to the cell that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    fn world() -> Arc<World> {
        Arc::new(World { life: Life::new(), blocks: UnsafeCell::new(0) })
    }

    fn spawn(world: &Arc<World>, f: fn(&World) -> bool) -> thread::JoinHandle<bool> {
        let world = Arc::clone(world);
        thread::spawn(move || f(&world))
    }

    #[test]
    fn loom_no_arena_ends_that_a_thread_or_a_cache_is_bound_to() {
        model(|| {
            let world = world();
            let thread = spawn(&world, |world| world.life.bind());
            let cache = spawn(&world, |world| world.life.bind_cache());
            let ends = world.life.begin_end();
            let (thread, cache) = (thread.join().unwrap(), cache.join().unwrap());
            assert!(!ends || !thread && !cache, "it ends, and something is bound to it");
            assert_eq!(world.life.is_live(), !ends);
            assert_eq!(world.life.bound(), u32::from(thread));
            if cache {
                world.life.unbind_cache();
            }
            if thread {
                world.life.unbind();
            }
            assert_eq!(world.life.begin_end(), !ends, "what did not bind is not counted");
        });
    }

    #[test]
    fn loom_to_a_thread_that_is_bound_the_arena_is_live_while_its_end_is_refused() {
        model(|| {
            let world = world();
            assert!(world.life.bind());
            let other = spawn(&world, |world| world.life.begin_end());
            assert!(world.life.is_live() && world.life.is_live());
            assert!(!other.join().unwrap());
        });
    }

    #[test]
    fn loom_an_arena_ends_once() {
        model(|| {
            let world = world();
            let other = spawn(&world, |world| world.life.begin_end());
            let ends = world.life.begin_end();
            assert!(other.join().unwrap() != ends);
        });
    }

    /// One thread ends the arena, and another one brings it back to life.
    #[test]
    fn loom_an_arena_that_lives_again_has_nothing_of_the_one_that_ended() {
        model(|| {
            let world = world();
            let other = spawn(&world, |world| {
                let is_dead = world.life.is_dead();
                if is_dead {
                    // SAFETY: the thread that ended the arena is done with it.
                    world.blocks.with_mut(|blocks| unsafe { *blocks += 1 });
                    assert_eq!(world.life.ends(), 1);
                    world.life.revive();
                }
                is_dead
            });
            assert!(world.life.begin_end());
            // SAFETY: nothing is bound to the arena.
            world.blocks.with_mut(|blocks| unsafe { *blocks += 1 });
            world.life.complete_end();
            let lives_again = other.join().unwrap();
            assert_eq!((world.life.is_live(), world.life.bind()), (lives_again, lives_again));
        });
    }
}
