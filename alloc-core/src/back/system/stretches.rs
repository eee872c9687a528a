//! How many stretches of addresses there are of one kind, which is how many mappings they are at
//! least.

use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// The number of stretches of one kind. Two threads that add or remove neighbours at the same
/// moment may make it wrong by one. All accesses are relaxed: the number stands alone.
pub(in crate::back) struct Stretches(AtomicIsize);

impl Stretches {
    /// Creates the number of no stretches.
    pub(in crate::back) const fn new() -> Stretches {
        Stretches(AtomicIsize::new(0))
    }

    /// Notes that addresses are of the kind from now on. `beside` tells whether those before them
    /// and those behind them are.
    pub(in crate::back) fn add(&self, beside: [bool; 2]) {
        self.0.fetch_add(Stretches::more(beside), Relaxed);
    }

    /// Notes that addresses are of the kind no more.
    pub(in crate::back) fn remove(&self, beside: [bool; 2]) {
        self.0.fetch_sub(Stretches::more(beside), Relaxed);
    }

    /// How many more stretches there are by addresses that are added.
    fn more(beside: [bool; 2]) -> isize {
        1 - isize::from(beside[0]) - isize::from(beside[1])
    }

    /// The number of stretches.
    pub(in crate::back) fn count(&self) -> usize {
        usize::try_from(self.0.load(Relaxed)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn neighbours_are_one_stretch(changed in prop::collection::vec(1usize..20, 0..200)) {
            let (stretches, mut is_there) = (Stretches::new(), [false; 21]);
            for at in changed {
                let beside = [is_there[at - 1], is_there[at + 1]];
                is_there[at] = !is_there[at];
                match is_there[at] {
                    true => stretches.add(beside),
                    false => stretches.remove(beside),
                }
                let begins = is_there.windows(2).filter(|two| **two == [false, true]).count();
                prop_assert_eq!(stretches.count(), begins);
            }
        }
    }
}
