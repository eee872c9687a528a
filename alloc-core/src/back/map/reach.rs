//! The pages that the class map reaches, and its table with a byte for each of them.

use crate::ground::sync::seam::{AtomicPtr, AtomicUsize, Ordering};
use crate::ground::units::LG_PAGE;
use core::ptr;

/// A range of pages, and the table. Empty until it is opened.
pub(super) struct Reach {
    first: AtomicUsize,
    bytes: AtomicPtr<u8>,
    /// 0 until the other fields are written.
    pages: AtomicUsize,
}

impl Reach {
    /// No pages.
    #[cfg(not(loom))]
    pub(super) const fn nothing() -> Reach {
        let [first, pages] = [const { AtomicUsize::new(0) }; 2];
        Reach { first, bytes: AtomicPtr::new(ptr::null_mut()), pages }
    }

    #[cfg(loom)]
    pub(super) fn nothing() -> Reach {
        let [first, pages] = [0, 0].map(AtomicUsize::new);
        Reach { first, bytes: AtomicPtr::new(ptr::null_mut()), pages }
    }

    /// Reaches `pages` pages from now on, of which the first has this index. `table` has a byte for
    /// each. One thread calls this, once.
    pub(super) fn open(&self, table: *mut u8, first: usize, pages: usize) {
        self.bytes.store(table, Ordering::Relaxed);
        self.first.store(first, Ordering::Relaxed);
        // Release: pairs with the Acquire in `byte_of` and in `table`.
        self.pages.store(pages, Ordering::Release);
    }

    /// The byte of the page that contains `address`, or `None` for a page that is not reached.
    #[inline(always)]
    pub(super) fn byte_of(&self, address: usize) -> Option<*mut u8> {
        // Acquire: pairs with the Release in `open`.
        let pages = self.pages.load(Ordering::Acquire);
        let page = (address >> LG_PAGE).wrapping_sub(self.first.load(Ordering::Relaxed));
        if page >= pages {
            return None;
        }
        Some(self.bytes.load(Ordering::Relaxed).wrapping_add(page))
    }

    /// The index of the first page, and how many there are.
    #[cfg(all(test, not(loom)))]
    pub(super) fn pages(&self) -> (usize, usize) {
        // Acquire: pairs with the Release in `open`.
        let pages = self.pages.load(Ordering::Acquire);
        (self.first.load(Ordering::Relaxed), pages)
    }

    /// The table and its size.
    pub(super) fn table(&self) -> (*mut u8, usize) {
        // Acquire: pairs with the Release in `open`.
        let size = self.pages.load(Ordering::Acquire);
        (self.bytes.load(Ordering::Relaxed), size)
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// The first page of the model.
    const FIRST: usize = 0x7f12_3456_7;

    struct World {
        reach: Reach,
        /// The table. What is in it does not matter.
        table: [u8; 4],
        /// Whether the table was made ready.
        ready: UnsafeCell<bool>,
    }

    // SAFETY: loom reports each access to the cell that is not ordered with the others.
    unsafe impl Sync for World {}

    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        /// The address of the table's byte of a page.
        fn byte(&self, page: usize) -> *mut u8 {
            self.table.as_ptr().cast_mut().wrapping_add(page)
        }

        /// A free of a block in a page. Returns whether it found the page.
        fn finds(&self, page: usize) -> bool {
            let found = self.reach.byte_of((FIRST + page) << LG_PAGE);
            if let Some(byte) = found {
                assert_eq!(byte, self.byte(page));
                // SAFETY: it is not written any more.
                assert!(self.ready.with(|ready| unsafe { *ready }));
            }
            found.is_some()
        }
    }

    #[test]
    fn loom_a_page_is_reached_when_its_table_is_there() {
        model(|| {
            let (reach, ready) = (Reach::nothing(), UnsafeCell::new(false));
            let world = Arc::new(World { reach, table: [0; 4], ready });
            let other = Arc::clone(&world);
            let other = thread::spawn(move || {
                let before = other.finds(3);
                assert!(other.finds(2) || !before, "what is reached stays so");
                assert!(!other.finds(4));
                let (table, size) = other.reach.table();
                assert!(size == 0 || (table, size) == (other.byte(0), 4));
            });
            // SAFETY: nobody sees the table yet.
            world.ready.with_mut(|ready| unsafe { *ready = true });
            world.reach.open(world.byte(0), FIRST, 4);
            other.join().unwrap();
            assert!(world.finds(0) && world.finds(3));
        });
    }
}
