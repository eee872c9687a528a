//! Whether a mode watches all threads, in one word that `front/cache/switch.rs` changes.

use core::sync::atomic::{AtomicU32, Ordering};

/// The bit for a mode that watches all threads.
const WATCH: u32 = 1;
/// Added by each switch.
const STEP: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(0);

/// What is told of each allocation and each free of all threads, while it is on.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Observer {
    /// The heap monitor.
    Recorder = 1,
    /// Functions of the program.
    Hooks = 2,
    /// Functions that take the place of malloc.
    Diversion = 4,
}

static OBSERVERS: AtomicU32 = AtomicU32::new(0);

/// Notes whether an observer is on. Called under the registry's lock.
pub(crate) fn set_observer(observer: Observer, on: bool) {
    let bit = observer as u32;
    let others = OBSERVERS.load(Ordering::Relaxed) & !bit;
    OBSERVERS.store(if on { others | bit } else { others }, Ordering::Relaxed);
}

/// Returns whether any observer is on.
#[inline]
pub(crate) fn is_observed() -> bool {
    OBSERVERS.load(Ordering::Relaxed) != 0
}

/// Whether a mode watches all threads, and the number of the switch that set this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State(u32);

impl State {
    /// Returns whether a mode watches all threads.
    #[inline]
    pub(crate) fn is_watching(self) -> bool {
        self.0 & WATCH != 0
    }

    /// Returns the state after one more switch.
    pub(crate) fn switched(self, on: bool) -> State {
        State((self.0.wrapping_add(STEP) & !WATCH) | u32::from(on))
    }
}

/// Returns the present state.
#[inline]
pub(crate) fn state() -> State {
    State(STATE.load(Ordering::Relaxed))
}

/// Sets the state. Called under the registry's lock.
pub(crate) fn set(state: State) {
    // SeqCst: pairs with the fences that a switch makes in every thread.
    STATE.store(state.0, Ordering::SeqCst);
}

/// Returns whether a mode watches all threads.
#[inline]
pub(crate) fn is_on() -> bool {
    state().is_watching()
}

/// Notes, before any thread has a cache, that all are to be watched.
pub(crate) fn begin() {
    STATE.store(WATCH, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_observer_is_told_until_it_ends() {
        set_observer(Observer::Hooks, true);
        set_observer(Observer::Recorder, true);
        set_observer(Observer::Recorder, false);
        assert!(is_observed());
        set_observer(Observer::Hooks, false);
        assert!(!is_observed());
    }

    #[test]
    fn each_switch_makes_another_state() {
        let off = State(0);
        let on = off.switched(true);
        assert!(on.is_watching() && !off.is_watching());
        assert!(on.switched(true).is_watching() && on.switched(true) != on);
        assert!(!on.switched(false).is_watching() && on.switched(false) != off);
    }
}
