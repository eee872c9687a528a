//! When unused pages of one arena are given back, and how many.

use super::decay::Decay;
use super::growth_purge::GrowthPurge;

/// The decay of one arena's dirty and muzzy pages, and the [`GrowthPurge`] of its growth.
pub(crate) struct PageAging {
    dirty: Decay,
    muzzy: Decay,
    growth_purge: GrowthPurge,
    oversize: usize,
    /// The dirty pages at the last [`PageAging::begin_old`].
    before_old: usize,
}

/// Unused pages of one arena.
#[derive(Clone, Copy)]
pub(in crate::back) struct Unused {
    pub(in crate::back) dirty: usize,
    pub(in crate::back) muzzy: usize,
}

impl PageAging {
    /// Creates the aging of one arena, with these decay times in milliseconds.
    pub(in crate::back) fn new(dirty_ms: isize, muzzy_ms: isize) -> PageAging {
        PageAging {
            dirty: Decay::new(dirty_ms),
            muzzy: Decay::new(muzzy_ms),
            growth_purge: GrowthPurge::new(),
            oversize: 0,
            before_old: 0,
        }
    }

    /// The decay time of dirty or of muzzy pages, in milliseconds. -1 is for ever.
    pub(crate) fn millis(&self, dirty: bool) -> isize {
        if dirty { self.dirty.millis() } else { self.muzzy.millis() }
    }

    /// Sets a decay time. The pages that are unused now count as unused from now on. If dirty pages
    /// are kept for ever from now on, the growth that was counted takes none of them.
    pub(crate) fn set_millis(&mut self, dirty: bool, millis: isize) {
        let decay = if dirty { &mut self.dirty } else { &mut self.muzzy };
        *decay = Decay::new(millis);
        if dirty && millis < 0 {
            let _forgotten = self.growth_purge.take();
        }
    }

    /// Whether decay has work at `now`, in milliseconds.
    pub(in crate::back) fn is_due(&self, now: u64, unused: Unused) -> bool {
        self.dirty.is_due(now, unused.dirty) || self.muzzy.is_due(now, unused.muzzy)
    }

    /// Moves decay to `now` and returns how many dirty and muzzy pages may stay.
    pub(in crate::back) fn advance(&mut self, now: u64, unused: Unused) -> (usize, usize) {
        (self.dirty.advance(now, unused.dirty), self.muzzy.advance(now, unused.muzzy))
    }

    /// Notes that so many dirty and muzzy pages, which are unused now, were so at `then`, in
    /// milliseconds, and have not been used since.
    pub(crate) fn note_unused_at(&mut self, then: u64, dirty: usize, muzzy: usize) {
        self.dirty.note_unused_at(then, dirty);
        self.muzzy.note_unused_at(then, muzzy);
    }

    /// Begins to count pages as old that become unused, of which `dirty` are unused now.
    pub(crate) fn begin_old(&mut self, dirty: usize) {
        self.before_old = dirty;
    }

    /// Ends what [`PageAging::begin_old`] began. The `dirty` pages that are more than before may go
    /// at once.
    pub(crate) fn end_old(&mut self, dirty: usize) {
        self.dirty.note_old(dirty.saturating_sub(self.before_old));
    }

    /// The time in milliseconds at which decay has enough work for a wake-up, or `None` if never.
    pub(in crate::back) fn next(&self, unused: Unused) -> Option<u64> {
        let (dirty, muzzy) = (self.dirty.next_due(unused.dirty), self.muzzy.next_due(unused.muzzy));
        [dirty, muzzy].into_iter().flatten().min()
    }

    /// Counts a run of `pages` pages of new memory, beside `dirty` free dirty pages and `active`
    /// pages in use. Counts nothing if dirty pages are kept for ever.
    pub(in crate::back) fn note_growth(&mut self, pages: usize, dirty: usize, active: usize) {
        if self.dirty.millis() >= 0 {
            self.growth_purge.count(pages, dirty, active);
        }
    }

    /// Takes the pages that [`GrowthPurge`] counts for new memory and returns how many of `dirty`
    /// unused pages may stay without them. Returns `None` if none are counted.
    pub(in crate::back) fn take_growth(&mut self, dirty: usize) -> Option<usize> {
        let counted = self.growth_purge.take()?;
        Some(dirty.saturating_sub(counted))
    }

    /// Freed runs of at least this many bytes are given back at once. 0 is no run.
    pub(crate) fn oversize(&self) -> usize {
        self.oversize
    }

    /// Sets the bytes from which on freed runs are given back at once.
    pub(crate) fn set_oversize(&mut self, bytes: usize) {
        self.oversize = bytes;
    }

    /// Whether a run of this many bytes is given back as soon as it is freed.
    pub(crate) fn is_oversized(&self, bytes: usize) -> bool {
        self.oversize != 0 && bytes >= self.oversize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_beside_pages_that_are_kept_for_ever_does_not_count() {
        const MANY: usize = 1 << 20;
        let mut aging = PageAging::new(-1, 0);
        aging.note_growth(1, MANY, 0);
        assert_eq!(aging.take_growth(MANY), None);
        aging.set_millis(true, 0);
        aging.note_growth(1, MANY, 0);
        assert_eq!(aging.take_growth(MANY), Some(MANY - 1));
    }

    #[test]
    fn growth_that_was_counted_is_forgotten_once_pages_are_kept_for_ever() {
        const MANY: usize = 1 << 20;
        let mut aging = PageAging::new(1000, 1000);
        aging.note_growth(1, MANY, 0);
        aging.set_millis(false, -1);
        assert_eq!(aging.take_growth(MANY), Some(MANY - 1), "muzzy pages are others");
        aging.note_growth(1, MANY, 0);
        aging.set_millis(true, -1);
        assert_eq!(aging.take_growth(MANY), None);
    }
}
