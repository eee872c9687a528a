//! Numbers that look random and are the same in every run.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    /// The series of a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// A size: mostly small, now and then a large block's.
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

/// A number that depends on every bit of another.
pub(crate) fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
