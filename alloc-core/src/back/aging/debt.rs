//! What growth owes: new memory taken although unused memory is there.
//!
//! Unused pages that no request fits (fragments of runs) would otherwise stay for the whole decay
//! time while the heap grows beside them. So a run from new memory is noted, and as many of
//! the pages that have been unused longest are given back, half a megabyte or so at a time. A heap
//! that does not grow owes nothing: what is reused within the decay time is not purged.

use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Unused pages that may be there without anything being owed: this many, or this part of those in
/// use.
const FREE_OF_DEBT: usize = (1 << 20) / PAGE;
const PART_OF_ACTIVE: usize = 64;
/// Runs longer than this owe nothing: blocks of changing sizes would be purged and faulted in again
/// and again.
const SHORT: usize = (256 << 10) / PAGE;
/// But from this length on, where a fault brings in a huge page, they owe, with more free of debt.
const LONG: usize = (4 << 20) / PAGE;
const FREE_OF_LONG_DEBT: usize = (8 << 20) / PAGE;
const LONG_PART_OF_ACTIVE: usize = 8;
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
        let free = match pages {
            ..=SHORT => FREE_OF_DEBT.max(active / PART_OF_ACTIVE),
            LONG.. => FREE_OF_LONG_DEBT.max(active / LONG_PART_OF_ACTIVE),
            _ => return,
        };
        if dirty > free {
            let owed = if pages <= SHORT { pages } else { pages.min(dirty - free) };
            self.0 += owed;
            OWED.fetch_add(owed, Relaxed);
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
    fn runs_beside_much_unused_memory_owe_but_for_those_between() {
        let mut debt = Debt::new();
        debt.incur(16, FREE_OF_DEBT, 0);
        debt.incur(SHORT + 1, FREE_OF_DEBT * 100, 0);
        debt.incur(LONG - 1, FREE_OF_DEBT * 100, 0);
        debt.incur(LONG, FREE_OF_LONG_DEBT, 0);
        debt.incur(16, FREE_OF_DEBT + 1, (FREE_OF_DEBT + 1) * PART_OF_ACTIVE);
        assert_eq!(debt.settle(), None);
        debt.incur(16, FREE_OF_DEBT + 1, 0);
        debt.incur(SHORT, FREE_OF_DEBT * 100, 0);
        assert_eq!(debt.settle(), Some(16 + SHORT));
        debt.incur(LONG, FREE_OF_LONG_DEBT + 10, 0);
        assert_eq!(debt.settle(), Some(10));
        assert_eq!(debt.settle(), None);
    }
}
