//! The length of the next reservation of an arena.
//!
//! The first reservation is short, and each is a size class longer than the one before. So an arena
//! that grows makes few system calls, and an arena that does not grow takes few addresses.

use crate::ground::size_class::{page_class_ceil, page_class_pages};
use crate::ground::units::PAGE;

/// The first reservation of an arena, in pages.
pub(in crate::back) const FIRST_CHUNK: usize = (2 << 20) / PAGE;
/// Growth alone makes no reservation longer than this, in pages.
const LAST_CHUNK: usize = (1 << 30) / PAGE;

/// The length of the next reservation.
pub(crate) struct Growth {
    next: usize,
    limit: usize,
}

impl Growth {
    /// The growth of an arena without pages.
    pub(in crate::back) const fn new() -> Growth {
        Growth { next: FIRST_CHUNK, limit: LAST_CHUNK }
    }

    /// The most pages of a reservation that is made in advance.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the most pages of a reservation that is made in advance.
    pub(crate) fn set_limit(&mut self, pages: usize) {
        self.limit = pages;
    }

    /// How many pages to reserve for `pages` wanted ones, by whole first chunks if `rounded`.
    pub(in crate::back) fn chunk(&self, pages: usize, rounded: bool) -> usize {
        let next = if rounded { self.next.next_multiple_of(FIRST_CHUNK) } else { self.next };
        next.min(self.limit).max(page_class_pages(page_class_ceil(pages)))
    }

    /// Notes that a chunk was reserved, so that the next one is longer. Without `grows` the next
    /// one is no longer than the first.
    pub(in crate::back) fn note(&mut self, grows: bool) {
        let longer = page_class_pages(page_class_ceil(self.next + 1));
        let most = if grows { LAST_CHUNK } else { FIRST_CHUNK };
        self.next = longer.min(most).min(self.limit.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reservation_is_a_class_longer_up_to_the_limit() {
        let mut growth = Growth::new();
        assert_eq!(growth.chunk(1, true), FIRST_CHUNK);
        growth.note(true);
        assert_eq!(growth.chunk(1, false), FIRST_CHUNK * 5 / 4);
        assert_eq!(growth.chunk(1, true), 2 * FIRST_CHUNK);
        for _ in 0..100 {
            growth.note(true);
        }
        assert_eq!(growth.chunk(1, true), LAST_CHUNK);
        growth.note(false);
        assert_eq!(growth.chunk(1, true), FIRST_CHUNK);
        growth.set_limit(7);
        assert_eq!((growth.limit(), growth.chunk(1, true), growth.chunk(8, true)), (7, 7, 8));
        growth.set_limit(0);
        growth.note(true);
        assert_eq!(growth.chunk(3, true), 3);
    }

    #[test]
    fn what_is_longer_is_reserved_as_a_class() {
        let growth = Growth::new();
        let long = FIRST_CHUNK + 1;
        assert_eq!(growth.chunk(long, true), page_class_pages(page_class_ceil(long)));
    }
}
