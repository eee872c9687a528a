//! A shadow of all runs in use. No run may overlap another, and each keeps what was written to it.

use super::MOST;
use crate::back::map::extent::Extent;
use crate::ground::units::{LG_PAGE, PAGE};
use std::collections::BTreeMap;

/// A run in use, its length in pages when it was stamped, and the number of the stamp.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub(super) run: &'static Extent,
    pub(super) pages: usize,
    pub(super) number: u64,
}

impl Live {
    pub(super) fn stamped(run: &'static Extent, number: u64) -> Live {
        let live = Live { run, pages: run.pages(), number };
        for page in live.looked_at() {
            // SAFETY: inside the run, which the test owns.
            unsafe { live.word(page).write(number ^ page as u64) };
        }
        live
    }

    /// The pages that are looked at: all of a short run, and some hundreds of a long one, including
    /// the first and the last.
    fn looked_at(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.pages).step_by((self.pages / 256).max(1)).chain([self.pages - 1])
    }

    fn word(&self, page: usize) -> *mut u64 {
        self.run.base_ptr().wrapping_add(page << LG_PAGE).cast()
    }

    /// Asserts that all pages that were stamped still are.
    pub(super) fn assert_stamped(&self) {
        for page in self.looked_at() {
            // SAFETY: inside the run, which the test owns.
            let word = unsafe { self.word(page).read() };
            assert_eq!(word, self.number ^ page as u64, "page {page} of {}", self.run.pages());
        }
    }

    /// Asserts that the pages behind the stamped ones read zero, as far as they are looked at.
    pub(super) fn assert_zero_behind(&self) {
        let whole = Live { pages: self.run.pages(), ..*self };
        for page in whole.looked_at().filter(|page| *page >= self.pages) {
            let words = self.word(page);
            let zero = (0..PAGE / 8).all(|at| {
                // SAFETY: inside the run, which the test owns.
                unsafe { words.wrapping_add(at).read() == 0 }
            });
            assert!(zero, "page {page} of {} is called zero, and is not", self.run.pages());
        }
    }
}

/// The runs in use, by base address.
#[derive(Default)]
pub(super) struct Shadow {
    pub(super) live: BTreeMap<usize, Live>,
    pages: usize,
    number: u64,
}

impl Shadow {
    pub(super) fn has_room_for(&self, pages: usize) -> bool {
        self.pages + pages <= MOST
    }

    /// Adds a run that overlaps no other, and stamps it.
    pub(super) fn add(&mut self, run: &'static Extent) {
        if let Some((_, before)) = self.live.range(..=run.base()).next_back() {
            assert!(before.run.end() <= run.base(), "overlaps the run before");
        }
        if let Some((next, _)) = self.live.range(run.base()..).next() {
            assert!(run.end() <= *next, "overlaps the run after");
        }
        self.number += 0x0101_0000;
        self.pages += run.pages();
        self.live.insert(run.base(), Live::stamped(run, self.number));
    }

    /// Takes out a run, and asserts that its contents did not change.
    pub(super) fn take(&mut self, index: usize) -> Option<Live> {
        let nth = index.checked_rem(self.live.len())?;
        let base = *self.live.keys().nth(nth)?;
        let live = self.live.remove(&base)?;
        live.assert_stamped();
        self.pages -= live.run.pages();
        Some(live)
    }
}
