//! What an arena counts under the lock of its pages: large blocks and slabs, by class.

use super::handed_out::Untold;
use crate::back::placement::moves;
use crate::ground::size_class::{CLASSES, PAGE_CLASSES, SizeClass, page_class_ceil};
use crate::ground::units::PAGE;

/// No arena has this index or a larger one. 4096 and 4097 have other meanings in the namespace.
pub(crate) const MAX_ARENAS: usize = 4095;

/// How many of some kind were ever made, and how many of these are gone.
#[derive(Clone, Copy, Default)]
pub(crate) struct Turnover {
    pub(crate) made: u64,
    pub(crate) gone: u64,
}

/// Large blocks that left the arena and came back, by class of length. Blocks that thread caches
/// keep and reuse in between are not counted here.
pub(crate) struct LargeCounts {
    /// Bytes in the blocks that have not come back.
    pub(crate) bytes: usize,
    /// Pages of the blocks among these that the system can move.
    pub(crate) movable: usize,
    untold: Untold,
    classes: [Turnover; PAGE_CLASSES],
}

/// Slabs that were made and taken back, by class.
pub(crate) struct SlabCounts {
    classes: [Turnover; CLASSES],
    /// Bytes of the records of slabs.
    pub(crate) record_bytes: usize,
}

impl LargeCounts {
    pub(crate) const fn new() -> LargeCounts {
        LargeCounts {
            bytes: 0,
            movable: 0,
            untold: Untold::of_arena(),
            classes: [Turnover { made: 0, gone: 0 }; PAGE_CLASSES],
        }
    }

    /// The large blocks of one class of lengths.
    pub(crate) fn of(&self, class: usize) -> Turnover {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// Counts a block of `pages` pages that leaves the arena.
    pub(crate) fn add(&mut self, pages: usize) {
        self.bytes += pages * PAGE;
        self.movable += movable(pages);
        self.untold.add((pages * PAGE).cast_signed());
        if let Some(class) = self.classes.get_mut(page_class_ceil(pages)) {
            class.made += 1;
        }
    }

    /// Counts a block of `pages` pages that comes back.
    pub(crate) fn remove(&mut self, pages: usize) {
        self.bytes -= pages * PAGE;
        self.movable -= movable(pages);
        self.untold.add(-(pages * PAGE).cast_signed());
        if let Some(class) = self.classes.get_mut(page_class_ceil(pages)) {
            class.gone += 1;
        }
    }

    /// Counts a block that is resized. If its class changes, it counts as another block.
    pub(crate) fn resize(&mut self, before: usize, after: usize) {
        if page_class_ceil(before) == page_class_ceil(after) {
            self.bytes = self.bytes + after * PAGE - before * PAGE;
            self.movable = self.movable + movable(after) - movable(before);
            self.untold.add((after * PAGE).cast_signed() - (before * PAGE).cast_signed());
        } else {
            self.add(after);
            self.remove(before);
        }
    }
}

/// The pages of a block if the system can move it, and else 0.
fn movable(pages: usize) -> usize {
    if pages * PAGE >= moves::SHORTEST { pages } else { 0 }
}

impl SlabCounts {
    pub(crate) const fn new() -> SlabCounts {
        SlabCounts { classes: [Turnover { made: 0, gone: 0 }; CLASSES], record_bytes: 0 }
    }

    /// The slabs of one class.
    pub(crate) fn of(&self, class: SizeClass) -> Turnover {
        self.classes.get(class.index()).copied().unwrap_or_default()
    }

    /// Counts a slab that is made.
    pub(crate) fn add(&mut self, class: SizeClass) {
        if let Some(class) = self.classes.get_mut(class.index()) {
            class.made += 1;
        }
    }

    /// Counts a slab that is taken back.
    pub(crate) fn remove(&mut self, class: SizeClass) {
        if let Some(class) = self.classes.get_mut(class.index()) {
            class.gone += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_the_system_can_move_are_counted_apart() {
        const SHORTEST: usize = moves::SHORTEST / PAGE;
        let mut counts = LargeCounts::new();
        for pages in [1, SHORTEST - 1, SHORTEST, 2 * SHORTEST] {
            counts.add(pages);
        }
        assert_eq!((counts.bytes, counts.movable), (4 * moves::SHORTEST, 3 * SHORTEST));
        // Over the bound within a class, and down to another class.
        counts.resize(SHORTEST - 1, SHORTEST);
        assert_eq!(counts.movable, 4 * SHORTEST);
        counts.resize(2 * SHORTEST, 1);
        assert_eq!(counts.movable, 2 * SHORTEST);
        for pages in [1, 1, SHORTEST, SHORTEST] {
            counts.remove(pages);
        }
        assert_eq!((counts.bytes, counts.movable), (0, 0));
    }

    #[test]
    fn a_large_block_that_changes_its_class_is_another() {
        let mut counts = LargeCounts::new();
        counts.add(10);
        counts.resize(10, 9);
        assert_eq!((counts.bytes, counts.of(page_class_ceil(10)).made), (9 * PAGE, 1));
        counts.resize(9, 20);
        let (small, long) = (counts.of(page_class_ceil(10)), counts.of(page_class_ceil(20)));
        assert_eq!((small.made, small.gone, long.made, long.gone), (1, 1, 1, 0));
        counts.remove(20);
        assert_eq!((counts.bytes, counts.of(page_class_ceil(20)).gone), (0, 1));
    }
}
