//! What the services share.

/// xorshift64: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns `least` to `least + more - 1` lower-case letters.
    pub fn word(&mut self, least: u64, more: u64) -> String {
        (0..least + self.below(more)).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}
