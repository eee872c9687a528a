//! Free runs in one state: by size class with the lowest address first, and by age.

use super::extent_heap::ExtentHeap;
use super::in_hand::InHand;
use crate::back::map::extent::{Extent, ExtentState};
#[cfg(any(test, feature = "checks"))]
use crate::ground::holds::holds;
use crate::ground::size_class::{
    PAGE_CLASSES, page_class_ceil, page_class_floor, page_class_pages,
};

const BITMAP_WORDS: usize = PAGE_CLASSES.div_ceil(64);

/// Free runs that are all dirty, all muzzy or all retained.
pub(crate) struct ExtentCache {
    state: ExtentState,
    heaps: [ExtentHeap; PAGE_CLASSES],
    /// Which heaps are not empty.
    filled: [u64; BITMAP_WORDS],
    oldest: Option<&'static Extent>,
    youngest: Option<&'static Extent>,
    pages: usize,
    /// Runs and pages of each class.
    classes: [Filed; PAGE_CLASSES],
}

/// The number of runs of one class, and of the pages in them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Filed {
    pub(crate) runs: usize,
    pub(crate) pages: usize,
}

impl ExtentCache {
    /// Creates a cache without runs, for runs in `state`.
    pub(crate) const fn new(state: ExtentState) -> ExtentCache {
        ExtentCache {
            state,
            heaps: [const { ExtentHeap::new() }; PAGE_CLASSES],
            filled: [0; BITMAP_WORDS],
            oldest: None,
            youngest: None,
            pages: 0,
            classes: [Filed { runs: 0, pages: 0 }; PAGE_CLASSES],
        }
    }

    /// The number of pages in this cache.
    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.pages
    }

    /// The runs and pages of a class.
    pub(crate) fn filed(&self, class: usize) -> Filed {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// The run that has been in this cache longest.
    pub(crate) fn oldest(&self) -> Option<&'static Extent> {
        self.oldest
    }

    /// Files a run as the youngest.
    pub(in crate::back) fn insert(&mut self, run: InHand) {
        let extent = run.release(self.state);
        let pages = extent.pages();
        self.pages += pages;
        let class = page_class_floor(pages);
        if let Some(filed) = self.classes.get_mut(class) {
            filed.runs += 1;
            filed.pages += pages;
            if let Some(heap) = self.heaps.get_mut(class) {
                heap.insert(extent);
            }
        }
        if let Some(word) = self.filled.get_mut(class / 64) {
            *word |= 1 << (class % 64);
        }
        extent.younger.set(None);
        extent.older.set(self.youngest);
        match self.youngest {
            Some(youngest) => youngest.younger.set(Some(extent)),
            None => self.oldest = Some(extent),
        }
        self.youngest = Some(extent);
    }

    /// Takes out a run that is in this cache.
    pub(in crate::back) fn remove(&mut self, extent: &'static Extent) -> InHand {
        debug_assert_eq!(extent.state.get(), self.state, "the run is not in this list");
        let pages = extent.pages();
        self.pages -= pages;
        let class = page_class_floor(pages);
        if let Some(filed) = self.classes.get_mut(class) {
            filed.runs -= 1;
            filed.pages -= pages;
            if let Some(heap) = self.heaps.get_mut(class) {
                heap.remove(extent);
            }
            if filed.runs == 0
                && let Some(word) = self.filled.get_mut(class / 64)
            {
                *word &= !(1 << (class % 64));
            }
        }
        let (older, younger) = (extent.older.take(), extent.younger.take());
        match older {
            Some(older) => older.younger.set(younger),
            None => self.oldest = younger,
        }
        match younger {
            Some(younger) => younger.older.set(older),
            None => self.youngest = older,
        }
        InHand::hold(extent, self.state)
    }

    /// The lowest run of the smallest class that holds `pages` pages at a multiple of `align`,
    /// among runs of classes up to `most` pages. It stays in this cache.
    pub(crate) fn fit(&self, pages: usize, align: usize, most: usize) -> Option<&'static Extent> {
        self.fit_where(pages, align, most, |_| true)
    }

    /// As [`ExtentCache::fit`], but the lowest run of the class must be `wanted`.
    pub(in crate::back) fn fit_where(
        &self,
        pages: usize,
        align: usize,
        most: usize,
        wanted: impl Fn(&Extent) -> bool,
    ) -> Option<&'static Extent> {
        let fits = |run: &&Extent| run.fit(pages, align).is_some() && wanted(run);
        let mut class = self.next_filled(page_class_ceil(pages))?;
        loop {
            if page_class_pages(class) > most {
                return None;
            }
            let first = self.heaps.get(class)?.first();
            if let Some(extent) = first.filter(|run| fits(run)) {
                return Some(extent);
            }
            class = self.next_filled(class + 1)?;
        }
    }

    /// The lowest run of each class, the longest class first. They stay in this cache.
    pub(crate) fn longest_first(&self) -> impl Iterator<Item = &'static Extent> {
        let below = |class: &usize| self.last_filled(class.checked_sub(1)?);
        let classes = core::iter::successors(self.last_filled(PAGE_CLASSES - 1), below);
        classes.filter_map(|class| self.heaps.get(class)?.first())
    }

    fn last_filled(&self, from: usize) -> Option<usize> {
        let mut mask = !0u64 >> (63 - from % 64);
        for index in (0..=from / 64).rev() {
            let bits = self.filled.get(index)? & mask;
            if bits != 0 {
                return Some(index * 64 + 63 - bits.leading_zeros() as usize);
            }
            mask = !0;
        }
        None
    }

    fn next_filled(&self, from: usize) -> Option<usize> {
        let mut mask = !0u64 << (from % 64);
        for (index, word) in self.filled.iter().enumerate().skip(from / 64) {
            let bits = word & mask;
            if bits != 0 {
                return Some(index * 64 + bits.trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
    }

    /// Checks that sums, links and states agree, and calls `see` with each run.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn check(&self, see: impl Fn(&'static Extent)) {
        let mut pages = 0;
        let mut at = self.oldest;
        let mut last = None::<&'static Extent>;
        while let Some(extent) = at {
            holds(extent.state.get() == self.state);
            holds(extent.older.get().map(Extent::base) == last.map(Extent::base));
            let heap = self.heaps.get(page_class_floor(extent.pages()));
            holds(heap.is_some_and(|heap| heap.first().is_some()));
            see(extent);
            pages += extent.pages();
            last = at;
            at = extent.younger.get();
        }
        holds(pages == self.pages);
        holds(pages == self.classes.iter().map(|filed| filed.pages).sum::<usize>());
        holds(self.youngest.map(Extent::base) == last.map(Extent::base));
        for (class, heap) in self.heaps.iter().enumerate() {
            let bit = self.filled.get(class / 64).map_or(0, |word| word >> (class % 64) & 1);
            holds(heap.check() == self.classes.get(class).map_or(0, |filed| filed.runs));
            holds(heap.first().is_some() == (bit == 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;
    use crate::ground::units::PAGE;
    use proptest::prelude::*;

    /// The lowest run of a class.
    fn lowest(runs: &[&'static Extent], class: usize) -> Option<&'static Extent> {
        let of_class = runs.iter().filter(|run| page_class_floor(run.pages()) == class);
        of_class.min_by_key(|run| run.base()).copied()
    }

    /// The result of [`ExtentCache::fit`], found by a look at all runs.
    fn fit(runs: &[&'static Extent], pages: usize, align: usize, most: usize) -> Option<usize> {
        let classes = page_class_ceil(pages)..PAGE_CLASSES;
        let classes = classes.take_while(|class| page_class_pages(*class) <= most);
        let mut firsts = classes.filter_map(|class| lowest(runs, class));
        firsts.find(|run| run.fit(pages, align).is_some()).map(Extent::base)
    }

    /// The length of a run in pages: mostly short, and up to 16 GiB.
    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![2 => 1usize..3000, 1 => (1usize << 16)..(1 << 22)]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn runs_are_found_by_class_and_by_age(
            lengths in prop::collection::vec(length(), 1..40),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
            (pages, lg_align, most) in (length(), 12u32..22, length()),
        ) {
            let mut cache = ExtentCache::new(ExtentState::Dirty);
            let mut runs: Vec<&'static Extent> = Vec::new();
            // The addresses are in no order.
            for (at, length) in lengths.iter().enumerate() {
                let run = keep(Box::new(Extent::new(0)));
                run.set_range((1 + at * 17 % 41) * 5000 * PAGE, *length);
                let run: &'static Extent = run;
                cache.insert(InHand::hold(run, ExtentState::Dirty));
                runs.push(run);
            }
            for index in removed {
                if runs.is_empty() {
                    break;
                }
                let run = runs.remove(index.index(runs.len()));
                cache.remove(run).release(ExtentState::Active);
            }
            cache.check(|_| ());
            let bases = |run: &'static Extent| run.base();
            prop_assert_eq!(cache.oldest().map(bases), runs.first().copied().map(bases));
            prop_assert_eq!(cache.pages(), runs.iter().map(|run| run.pages()).sum::<usize>());
            let align = 1 << lg_align;
            // A bound of any length, and the bound that just admits the class of the request.
            for most in [most, page_class_pages(page_class_ceil(pages))] {
                let found = cache.fit(pages, align, most).map(bases);
                prop_assert_eq!(found, fit(&runs, pages, align, most));
            }
            let classes = (0..PAGE_CLASSES).rev();
            let expected: Vec<usize> =
                classes.filter_map(|class| lowest(&runs, class)).map(bases).collect();
            let longest: Vec<usize> = cache.longest_first().map(bases).collect();
            prop_assert_eq!(longest, expected);
            for class in 0..PAGE_CLASSES {
                let of_class = runs.iter().filter(|run| page_class_floor(run.pages()) == class);
                let filed = cache.filed(class);
                prop_assert_eq!(filed.runs, of_class.clone().count());
                prop_assert_eq!(filed.pages, of_class.map(|run| run.pages()).sum::<usize>());
            }
        }
    }
}
