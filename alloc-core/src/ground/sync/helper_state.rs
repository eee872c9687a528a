//! The states of a helper thread, which other threads start, wake and stop.
//!
//! ```text
//!   OFF ◀──fork, refused── WANTED ──start──▶ BUSY ⇄ NAPPING    until the time is up, or woken
//!    ▲                        ▲                 ⇅
//!    └── STOPPING ◀──stop── (any)             RESTING          until woken
//!
//! A helper that ends of its own accord leaves WANTED, or OFF if none is to come after it.
//! ```
//! Starting and stopping are done under a lock of the callers, one at a time.
//!
//! A thread that makes work tells of it, calls [`work_was_told`], and then looks at the state. If
//! it finds that there is no helper it starts one, unless the lock is taken. A helper that ends
//! because there is no work looks once more after it has released the lock, in
//! [`HelperState::retires_without_work`]. Each side stores first and then loads, with a SeqCst
//! fence between, so that at least one of them sees what the other has stored.

use super::futex::Futex;
use super::seam::{Ordering, fence};

/// What the helper thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum State {
    /// There is none, and none is wanted.
    Off,
    /// There is none. It is to be started when there is work.
    Wanted,
    /// It works.
    Busy,
    /// It sleeps for a time.
    Napping,
    /// It sleeps until another thread wakes it.
    Resting,
    /// It was told to end.
    Stopping,
}

impl State {
    fn of(word: u32) -> State {
        match word {
            1 => State::Wanted,
            2 => State::Busy,
            3 => State::Napping,
            4 => State::Resting,
            5 => State::Stopping,
            _ => State::Off,
        }
    }
}

/// Called after work was told of, and before [`HelperState::get`] says whether a helper is there.
pub(crate) fn work_was_told() {
    // SeqCst: pairs with the fence in `retires_without_work`.
    fence(Ordering::SeqCst);
}

/// The state of one helper thread.
pub(crate) struct HelperState(Futex);

impl HelperState {
    /// Off.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> HelperState {
        HelperState(Futex::new(State::Off as u32))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> HelperState {
        HelperState(Futex::new(State::Off as u32))
    }

    /// The state now.
    #[inline]
    pub(crate) fn get(&self) -> State {
        State::of(self.0.load(Ordering::Relaxed))
    }

    /// Sets the state. Under the callers' lock, where no helper runs.
    pub(crate) fn set(&self, state: State) {
        self.0.store(state as u32, Ordering::Relaxed);
    }

    fn change(&self, from: State, to: State) -> bool {
        // Release: pairs with the Acquire in `stop`.
        let changed =
            self.0.compare_exchange(from as u32, to as u32, Ordering::Release, Ordering::Relaxed);
        changed.is_ok()
    }

    /// Wakes the helper out of one kind of sleep.
    pub(crate) fn wake(&self, from: State) {
        if self.change(from, State::Busy) {
            self.0.wake_one();
        }
    }

    /// Stops the helper, and waits until it has ended. Off afterwards.
    pub(crate) fn stop(&self) {
        loop {
            // Acquire: pairs with the Release in `ends` and `change`, so the last pass of the
            // helper is seen.
            match State::of(self.0.load(Ordering::Acquire)) {
                State::Stopping => self.0.sleep(State::Stopping as u32, None),
                state @ (State::Busy | State::Napping | State::Resting) => {
                    if self.change(state, State::Stopping) {
                        self.0.wake_one();
                    }
                }
                State::Off | State::Wanted => break,
            }
        }
        self.set(State::Off);
    }

    /// By the helper: whether it ends now, because it was told to.
    pub(crate) fn ends(&self) -> bool {
        let ends = self.get() == State::Stopping;
        if ends {
            // Release: pairs with the Acquire in `stop`.
            self.0.store(State::Off as u32, Ordering::Release);
            self.0.wake_one();
        }
        ends
    }

    /// By the helper: whether it ends now of its own accord. The state is `to` afterwards: Off or
    /// Wanted. `false`: it was told something else meanwhile.
    pub(crate) fn retires(&self, to: State) -> bool {
        match self.get() {
            State::Stopping => false,
            state => self.change(state, to),
        }
    }

    /// By the helper, which holds the callers' lock by `held` and has found no work: whether it
    /// ends now. The state is Off then. It goes on if `is_told` says that work was told of
    /// meanwhile, because the thread that told of it may have found this helper, or the lock taken.
    /// `lock` returns `None` if the one who holds the lock waits for the end of this helper.
    pub(crate) fn retires_without_work<G>(
        &self,
        held: G,
        lock: impl FnOnce() -> Option<G>,
        is_told: impl Fn() -> bool,
    ) -> bool {
        if !self.retires(State::Off) {
            return false;
        }
        drop(held);
        // SeqCst: pairs with the fence in `work_was_told`.
        fence(Ordering::SeqCst);
        if !is_told() {
            return true;
        }
        // Who waits for this helper starts another one, or wants none.
        let Some(_held) = lock() else { return true };
        // Another helper may have been started.
        !(is_told() && self.change(State::Off, State::Busy))
    }

    /// By the helper: sleeps for so many milliseconds, unless it was told to end.
    pub(crate) fn nap(&self, millis: u64) {
        // From no other states, because it may be told to end at any time.
        if self.change(State::Busy, State::Napping) || self.change(State::Resting, State::Napping) {
            self.0.sleep(State::Napping as u32, Some(millis));
            self.change(State::Napping, State::Busy);
        }
    }

    /// By the helper: sleeps until it is woken, or until the time is up. The first time after a nap
    /// or after work that is `first`, then `later`. Does not sleep if it was told to end.
    pub(crate) fn rest(&self, first: Option<u64>, later: Option<u64>) {
        let millis = if self.change(State::Busy, State::Resting) { first } else { later };
        self.0.sleep(State::Resting as u32, millis);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::{AtomicU32, model};
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct World {
        state: HelperState,
        /// What a pass of the helper changes.
        passes: UnsafeCell<u32>,
    }

    // SAFETY: loom reports each access to the cell that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    /// A helper that works now, and sleeps in one way between its passes.
    fn helped(sleep: fn(&HelperState)) -> (Arc<World>, thread::JoinHandle<()>) {
        let world = Arc::new(World { state: HelperState::new(), passes: UnsafeCell::new(0) });
        world.state.set(State::Busy);
        let helper = Arc::clone(&world);
        let helper = thread::spawn(move || {
            while !helper.state.ends() {
                // SAFETY: the helper is alone with it until `stop` returns.
                helper.passes.with_mut(|passes| unsafe { *passes += 1 });
                sleep(&helper.state);
            }
        });
        (world, helper)
    }

    /// Stops the helper, at any moment: its last pass is seen.
    fn stop(world: &World, helper: thread::JoinHandle<()>) {
        world.state.stop();
        // SAFETY: the helper has ended.
        world.passes.with_mut(|passes| unsafe { *passes += 1 });
        assert_eq!(world.state.get(), State::Off);
        helper.join().unwrap();
    }

    const NAP: fn(&HelperState) = |state| state.nap(10);
    const REST: fn(&HelperState) = |state| state.rest(None, None);

    #[test]
    fn loom_a_helper_that_naps_is_stopped() {
        model(|| {
            let (world, helper) = helped(NAP);
            stop(&world, helper);
        });
    }

    #[test]
    fn loom_a_helper_that_rests_is_stopped() {
        model(|| {
            let (world, helper) = helped(REST);
            stop(&world, helper);
        });
    }

    #[test]
    fn loom_a_helper_is_woken_while_it_is_stopped() {
        model(|| {
            let (world, helper) = helped(REST);
            let caller = Arc::clone(&world);
            let caller = thread::spawn(move || caller.state.wake(State::Resting));
            stop(&world, helper);
            caller.join().unwrap();
        });
    }

    /// The helper ends of its own accord while it is told to end.
    #[test]
    fn loom_a_helper_that_retires_is_stopped() {
        for to in [State::Wanted, State::Off] {
            model(move || {
                let state = Arc::new(HelperState::new());
                state.set(State::Busy);
                let helper = Arc::clone(&state);
                let ends = move || helper.ends() || helper.retires(to) || helper.ends();
                let helper = thread::spawn(ends);
                state.stop();
                assert_eq!(state.get(), State::Off);
                assert!(helper.join().unwrap(), "it ended");
            });
        }
    }

    /// Work, which is told of, and a helper that ends when there is none.
    struct Work {
        state: HelperState,
        lock: loom::sync::Mutex<()>,
        is_told: AtomicU32,
        /// As free pages, under the lock of their arena, where a thread also tells of them.
        is_there: loom::sync::Mutex<bool>,
    }

    impl Work {
        fn is_told(&self) -> bool {
            self.is_told.load(Ordering::Relaxed) != 0
        }

        /// As the helper of the front tier: forgets what was told, does what is there, and ends.
        fn help(&self) {
            loop {
                self.is_told.store(0, Ordering::Relaxed);
                *self.is_there.lock().unwrap() = false;
                let Ok(held) = self.lock.try_lock() else {
                    thread::yield_now();
                    continue;
                };
                let lock = || Some(self.lock.lock().unwrap());
                if self.state.retires_without_work(held, lock, || self.is_told()) {
                    break;
                }
            }
        }

        /// As a thread of the program: makes work, tells of it, and starts a helper if there is
        /// none.
        fn make(&self) {
            let mut is_there = self.is_there.lock().unwrap();
            *is_there = true;
            self.is_told.store(1, Ordering::Relaxed);
            work_was_told();
            drop(is_there);
            let is_off = || self.state.get() == State::Off;
            if is_off()
                && let Ok(_held) = self.lock.try_lock()
                && is_off()
            {
                self.state.set(State::Busy);
            }
        }
    }

    /// Work that comes while a helper ends for lack of it is done, by this helper or by another one
    /// that is started for it.
    #[test]
    fn loom_work_that_comes_while_a_helper_retires_is_not_left() {
        model(|| {
            let work = Arc::new(Work {
                state: HelperState::new(),
                lock: loom::sync::Mutex::new(()),
                is_told: AtomicU32::new(0),
                is_there: loom::sync::Mutex::new(false),
            });
            work.state.set(State::Busy);
            let helper = Arc::clone(&work);
            let helper = thread::spawn(move || helper.help());
            work.make();
            helper.join().unwrap();
            let is_started = work.state.get() == State::Busy;
            let is_left = *work.is_there.lock().unwrap();
            assert!(is_started || !is_left, "nobody does it");
        });
    }

    /// The helper ends of its own accord while it is woken.
    #[test]
    fn loom_a_helper_that_is_woken_retires_later() {
        model(|| {
            let state = Arc::new(HelperState::new());
            state.set(State::Resting);
            let caller = Arc::clone(&state);
            let caller = thread::spawn(move || caller.wake(State::Resting));
            let retired = state.retires(State::Off);
            caller.join().unwrap();
            let now = state.get();
            assert_eq!(now, if retired { State::Off } else { State::Busy });
        });
    }
}
