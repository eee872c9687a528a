//! What growth owes: new memory taken although unused memory is there.
//!
//! Unused pages that no request fits (fragments of runs) would otherwise stay for the whole decay
//! time while the heap grows beside them. So a small run from new memory is noted, and as many of
//! the pages that have been unused longest are given back, half a megabyte or so at a time. A heap
//! that does not grow owes nothing: what is reused within the decay time is not purged.

use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs longer than this owe nothing: large blocks of changing sizes would be purged and faulted in
/// again and again.
const LONGEST: usize = (256 << 10) / PAGE;
/// Unused pages that may be there without anything being owed: this many, or this part of those in
/// use.
const FREE_OF_DEBT: usize = (1 << 20) / PAGE;
const PART_OF_ACTIVE: usize = 64;
/// Pages owed by all arenas together at which it is time to pay.
const DUE: usize = (512 << 10) / PAGE;

static OWED: AtomicUsize = AtomicUsize::new(0);

/// Pages that one arena owes.
pub(crate) struct Debt(usize);

impl Debt {
    /// None.
    pub(crate) const fn new() -> Debt {
        Debt(0)
    }

    /// Notes a run of `pages` from new memory, with `dirty` pages unused and `active` ones in use.
    pub(crate) fn incur(&mut self, pages: usize, dirty: usize, active: usize) {
        if pages <= LONGEST && dirty > FREE_OF_DEBT.max(active / PART_OF_ACTIVE) {
            self.0 += pages;
            OWED.fetch_add(pages, Relaxed);
        }
    }

    /// Takes what is owed. `None`: nothing.
    pub(crate) fn settle(&mut self) -> Option<usize> {
        let owed = core::mem::take(&mut self.0);
        if owed == 0 {
            return None;
        }
        OWED.fetch_sub(owed, Relaxed);
        Some(owed)
    }
}

/// Whether it is time to pay.
#[inline]
pub(crate) fn is_due() -> bool {
    OWED.load(Relaxed) >= DUE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_runs_beside_much_unused_memory_owe() {
        let mut debt = Debt::new();
        debt.incur(16, FREE_OF_DEBT, 0);
        debt.incur(LONGEST + 1, FREE_OF_DEBT * 100, 0);
        debt.incur(16, FREE_OF_DEBT + 1, (FREE_OF_DEBT + 1) * PART_OF_ACTIVE);
        assert_eq!(debt.settle(), None);
        debt.incur(16, FREE_OF_DEBT + 1, 0);
        debt.incur(LONGEST, FREE_OF_DEBT * 100, 0);
        assert_eq!(debt.settle(), Some(16 + LONGEST));
        assert_eq!(debt.settle(), None);
    }
}
