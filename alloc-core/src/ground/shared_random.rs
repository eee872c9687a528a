//! Random numbers that need not be secret, from one state that all threads share (splitmix64).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a state differs by from the next one.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// States that one caller takes. Callers that draw more numbers share the rest with others.
const TAKEN: u64 = 64;

/// A source of random numbers.
pub(crate) struct SharedRandom(AtomicU64);

impl SharedRandom {
    /// Creates a source whose state is 0.
    pub(crate) const fn new() -> SharedRandom {
        SharedRandom(AtomicU64::new(0))
    }

    /// Sets the state. The numbers depend on nothing else.
    pub(crate) fn seed(&self, seed: u64) {
        self.0.store(seed, Relaxed);
    }

    /// Returns a function that draws numbers of 64 random bits. The shared state is written to
    /// once.
    #[inline]
    pub(crate) fn draws(&self) -> impl FnMut() -> u64 + use<> {
        let mut state = self.0.fetch_add(STEP.wrapping_mul(TAKEN), Relaxed);
        move || {
            state = state.wrapping_add(STEP);
            mixed(state)
        }
    }
}

fn mixed(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of splitmix64 from the state 1234567, as its other writers give them.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let random = SharedRandom::new();
        random.seed(1_234_567);
        let mut draw = random.draws();
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([draw(), draw()], expected);
    }

    #[test]
    fn each_caller_draws_other_numbers() {
        let random = SharedRandom::new();
        let taken: Vec<u64> = {
            let (mut one, mut other) = (random.draws(), random.draws());
            (0..TAKEN).flat_map(|_| [one(), other()]).collect()
        };
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), taken.len());
    }
}
