//! When the unused pages of one arena are to go, and how many.

use super::page_allocator::PageAllocator;

impl PageAllocator {
    /// Whether decay has anything to do at `now` (milliseconds).
    pub(crate) fn is_decay_due(&self, now: u64) -> bool {
        self.dirty_decay.is_due(now, self.unused())
            || self.muzzy_decay.is_due(now, self.muzzy.pages())
    }

    /// Moves decay to `now`, and answers how many dirty and muzzy pages may stay.
    pub(crate) fn advance(&mut self, now: u64) -> (usize, usize) {
        self.age_rest();
        let dirty = self.dirty_decay.advance(now, self.unused());
        (dirty, self.muzzy_decay.advance(now, self.muzzy.pages()))
    }

    /// When decay will have something to do that is worth a wake-up (milliseconds). `None`: never.
    pub(crate) fn next_decay(&self) -> Option<u64> {
        let dirty = self.dirty_decay.next_due(self.unused());
        let muzzy = self.muzzy_decay.next_due(self.muzzy.pages());
        [dirty, muzzy].into_iter().flatten().min()
    }

    /// How many unused pages may stay after what is owed for new memory was given back. `None`:
    /// nothing is owed.
    pub(crate) fn pay(&mut self) -> Option<usize> {
        let owed = self.debt.settle()?;
        Some(self.unused().saturating_sub(owed))
    }
}
