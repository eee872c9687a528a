//! [`GrowthPurge`]: counts new memory that is taken although unused memory is there.
//!
//! Unused pages that no request fits (fragments of runs) would otherwise stay for the whole decay
//! time while the heap grows beside them. So runs of new memory are counted, and as many of the
//! pages unused longest are given back, about half a megabyte at a time. In a heap that does not
//! grow nothing is counted, so what is reused within the decay time is not purged.

use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Unused pages beside which new memory is not counted: this many, or this part of the pages in use
/// if that is more.
const UNCOUNTED: usize = (1 << 20) / PAGE;
const PART_OF_ACTIVE: usize = 64;
/// Longer runs are not counted, because blocks of changing sizes would be purged and faulted in
/// again and again.
const SHORT: usize = (256 << 10) / PAGE;
/// From this length on a fault brings in a huge page, so runs are counted beside more unused pages.
const LONG: usize = (4 << 20) / PAGE;
const LONG_UNCOUNTED: usize = (8 << 20) / PAGE;
const LONG_PART_OF_ACTIVE: usize = 8;
/// Pages counted in all arenas together from which on pages are given back.
const DUE: usize = (512 << 10) / PAGE;

const _: () = assert!(SHORT < LONG && UNCOUNTED < LONG_UNCOUNTED);

static COUNTED: AtomicUsize = AtomicUsize::new(0);

/// The pages of new memory that were counted in one arena.
pub(crate) struct GrowthPurge(usize);

impl GrowthPurge {
    /// Creates a count of 0.
    pub(crate) const fn new() -> GrowthPurge {
        GrowthPurge(0)
    }

    /// Counts a run of `pages` pages of new memory beside `dirty` unused and `active` used pages.
    pub(crate) fn count(&mut self, pages: usize, dirty: usize, active: usize) {
        let free = match pages {
            ..=SHORT => UNCOUNTED.max(active / PART_OF_ACTIVE),
            LONG.. => LONG_UNCOUNTED.max(active / LONG_PART_OF_ACTIVE),
            _ => return,
        };
        if dirty > free {
            let counted = if pages <= SHORT { pages } else { pages.min(dirty - free) };
            self.0 += counted;
            COUNTED.fetch_add(counted, Relaxed);
        }
    }

    /// Takes the count and resets it to 0. Returns `None` if it was 0.
    pub(crate) fn take(&mut self) -> Option<usize> {
        let counted = core::mem::take(&mut self.0);
        if counted == 0 {
            return None;
        }
        COUNTED.fetch_sub(counted, Relaxed);
        Some(counted)
    }
}

/// Whether enough pages are counted to give pages back.
#[inline]
pub(crate) fn is_due() -> bool {
    COUNTED.load(Relaxed) >= DUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_beside_much_unused_memory_count_but_for_those_between() {
        let mut growth_purge = GrowthPurge::new();
        growth_purge.count(16, UNCOUNTED, 0);
        growth_purge.count(SHORT + 1, UNCOUNTED * 100, 0);
        growth_purge.count(LONG - 1, UNCOUNTED * 100, 0);
        growth_purge.count(LONG, LONG_UNCOUNTED, 0);
        growth_purge.count(16, UNCOUNTED + 1, (UNCOUNTED + 1) * PART_OF_ACTIVE);
        assert_eq!(growth_purge.take(), None);
        growth_purge.count(16, UNCOUNTED + 1, 0);
        growth_purge.count(SHORT, UNCOUNTED * 100, 0);
        assert_eq!(growth_purge.take(), Some(16 + SHORT));
        growth_purge.count(LONG, LONG_UNCOUNTED + 10, 0);
        assert_eq!(growth_purge.take(), Some(10));
        assert_eq!(growth_purge.take(), None);
    }
}
