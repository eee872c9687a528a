//! How many blocks may wait in an overflow stack or a queue, learned from what comes back.
//!
//! When blocks go into slabs because there is no room for them, and as many come from slabs later,
//! these could have stayed. From then on there may be as many blocks more.

/// The number of blocks that may wait.
pub(in crate::middle) struct LearnedDepth {
    depth: u32,
    /// Blocks that went into slabs because there was no room, and did not come from there since.
    gone: u32,
}

impl LearnedDepth {
    /// Creates a depth of `first` blocks.
    pub(in crate::middle) const fn new(first: usize) -> LearnedDepth {
        LearnedDepth { depth: first as u32, gone: 0 }
    }

    /// Returns how many blocks may wait.
    #[inline]
    pub(in crate::middle) fn get(&self) -> usize {
        self.depth as usize
    }

    /// Notes that `n` blocks go into slabs because there is no room.
    #[inline]
    pub(in crate::middle) fn note_gone(&mut self, n: usize) {
        self.gone = self.gone.saturating_add(n as u32);
    }

    /// Notes that `n` blocks came from slabs. The depth grows by as many of them as went there
    /// before, up to `most`.
    #[inline]
    pub(in crate::middle) fn note_refill(&mut self, n: usize, most: usize) {
        let back = self.gone.min(n as u32);
        self.gone -= back;
        self.depth = (self.depth + back).min(most as u32);
    }

    /// Lets the depth fall by `idle` blocks, because so many waited without use, and forgets half
    /// of what went into slabs.
    pub(in crate::middle) fn fall(&mut self, idle: usize) {
        self.depth = self.depth.saturating_sub(idle as u32);
        self.gone /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_what_went_and_came_back_up_to_a_bound() {
        let mut depth = LearnedDepth::new(8);
        depth.note_refill(100, 200);
        assert_eq!(depth.get(), 8, "nothing had gone");
        depth.note_gone(70);
        depth.note_refill(50, 200);
        depth.note_refill(50, 200);
        depth.note_refill(50, 200);
        assert_eq!(depth.get(), 78, "each block counts once");
        depth.note_gone(usize::MAX >> 32);
        depth.note_gone(1);
        depth.note_refill(1000, 200);
        assert_eq!(depth.get(), 200);
    }

    #[test]
    fn it_falls_by_what_was_not_needed_and_forgets() {
        let mut depth = LearnedDepth::new(30);
        depth.note_gone(20);
        depth.fall(12);
        depth.note_refill(100, 200);
        assert_eq!(depth.get(), 18 + 10);
        depth.fall(100);
        assert_eq!(depth.get(), 0);
    }
}
