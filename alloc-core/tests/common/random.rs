//! Pseudo-random numbers, which are the same in every run.

/// A SplitMix64 generator.
pub(crate) struct Random(u64);

impl Random {
    /// The series that begins with `seed`.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which must not be 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A size: mostly small, sometimes that of a large block.
    pub(crate) fn size(&mut self) -> usize {
        let most = match self.below(100) {
            0..60 => 256,
            60..85 => 4096,
            85..98 => 40_000,
            _ => 300_000,
        };
        self.below(most)
    }
}

/// A number that depends on every bit of `n`.
pub(crate) fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
