//! A small random number generator whose numbers a program cannot guess from its own addresses.

use crate::ground::os;
use core::cell::Cell;

/// The generator of one thread: the upper bits of a 64-bit product. The multiplier is the upper
/// half of that of Knuth's MMIX, which fits into an instruction. The seed is odd and comes from the
/// system.
pub(crate) struct Random(Cell<u64>);

impl Random {
    /// Creates a generator with its own seed.
    pub(crate) fn new() -> Random {
        Random(Cell::new(os::random() | 1))
    }

    /// Returns a number below `2^bits`. `bits` is 1 to 32.
    #[inline(always)]
    pub(crate) fn bits(&self, bits: u32) -> usize {
        (self.next() >> (64 - bits)) as usize
    }

    /// Returns a number below `bound`.
    #[inline(always)]
    pub(crate) fn below(&self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// Lends the generator to a function that draws many numbers, so that it can stay in a
    /// register.
    #[inline(always)]
    pub(crate) fn lend(&self, draw: impl FnOnce(&Random)) {
        let lent = Random(Cell::new(self.0.get()));
        draw(&lent);
        self.0.set(lent.0.get());
    }

    #[inline(always)]
    fn next(&self) -> u64 {
        let next = self.0.get().wrapping_mul(0x5851_f42d);
        self.0.set(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_range_and_reach_all_of_it() {
        let random = Random::new();
        let mut seen = [0usize; 16];
        (0..10_000).for_each(|_| seen[random.bits(4)] += 1);
        assert!(seen.iter().all(|count| *count > 300), "{seen:?}");
        let mut seen = [0usize; 10];
        (0..10_000).for_each(|_| seen[random.below(10)] += 1);
        assert!(seen.iter().all(|count| *count > 600), "{seen:?}");
    }
}
