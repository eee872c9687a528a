//! Abilities of the system that are found out by a trial.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// An ability of the system, tried at the first call, and again as long as the trial says nothing.
pub(super) struct Tried(AtomicU8);

impl Tried {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;

    /// Creates an ability that was not tried.
    pub(super) const fn new() -> Tried {
        Tried(AtomicU8::new(Tried::UNKNOWN))
    }

    /// Whether the system has the ability. `find_out` returns `None` if its trial says nothing.
    pub(super) fn get(&self, find_out: impl FnOnce() -> Option<bool>) -> bool {
        match self.0.load(Relaxed) {
            Tried::YES => return true,
            Tried::NO => return false,
            _ => {}
        }
        let Some(answer) = find_out() else { return false };
        self.0.store(if answer { Tried::YES } else { Tried::NO }, Relaxed);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ability_is_not_noted_before_a_trial_has_told_it() {
        let tried = Tried::new();
        assert_eq!(
            [None, Some(true), Some(false)].map(|told| tried.get(|| told)),
            [false, true, true]
        );
        let tried = Tried::new();
        assert_eq!([Some(false), Some(true)].map(|told| tried.get(|| told)), [false, false]);
    }
}
