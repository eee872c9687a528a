//! The free runs of one arena: the list of each state, the records for cutting them, and the
//! provider of more runs.
//!
//! A free run is in the list of its state, and is merged with its free neighbours in that state
//! when it is filed. Every run that leaves a list is an [`InHand`] until it is filed, handed out,
//! or gone.

use super::access;
use super::chunk_notes;
use super::cut;
use super::extent_cache::{ExtentCache, Filed};
use super::in_hand::{self, InHand};
use super::neighbours::{left_neighbour, right_neighbour};
use super::source::Source;
use super::spares::Spares;
use super::waiting::Waiting;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::system::page_provider::{PageProvider, Reserved};
use crate::ground::in_place::{Place, write_fields};
use crate::ground::options;
use crate::ground::units::LG_PAGE;

/// The free runs of one arena.
pub(in crate::back) struct FreeRuns {
    dirty: ExtentCache,
    muzzy: ExtentCache,
    retained: ExtentCache,
    waiting: Waiting,
    spares: Spares,
    source: Source,
    /// Whether free neighbours are merged when they are filed.
    merges: bool,
    /// Pages that came from the provider and were not given back.
    mapped: usize,
    /// Pages of runs that are in hand outside of the lock.
    away: usize,
}

impl FreeRuns {
    /// Writes the free runs of an arena, of which there are none yet, to `place`.
    pub(crate) fn begin_at(place: Place<Self>, arena: u32, provider: &'static dyn PageProvider) {
        write_fields!(place => FreeRuns {
            dirty: ExtentCache::new(ExtentState::Dirty),
            muzzy: ExtentCache::new(ExtentState::Muzzy),
            retained: ExtentCache::new(ExtentState::Retained),
            waiting: Waiting::NONE,
            spares: Spares::new(arena),
            source: Source::new(provider, options::current().dss),
            merges: true,
            mapped: 0,
            away: 0,
        });
    }

    /// The source of more pages.
    pub(crate) fn source(&mut self) -> &mut Source {
        &mut self.source
    }

    /// The provider of more pages.
    pub(crate) fn provider(&self) -> &'static dyn PageProvider {
        self.source.provider()
    }

    /// Sets the provider of more pages. With `merges`, free neighbours are merged when they are
    /// filed. Otherwise extent hooks are asked first.
    pub(crate) fn set_provider(&mut self, provider: &'static dyn PageProvider, merges: bool) {
        self.end_waiting();
        self.source.set_provider(provider);
        self.merges = merges;
    }

    // --- what there is ---

    /// The number of pages of the free runs in a state.
    pub(crate) fn pages(&self, state: ExtentState) -> usize {
        self.list(state).pages()
    }

    /// The number of pages of the free runs without memory, with those that wait.
    pub(crate) fn without_memory(&self) -> usize {
        self.retained.pages() + self.waiting.pages()
    }

    /// The free runs of a size class in a state.
    pub(crate) fn filed(&self, state: ExtentState, class: usize) -> Filed {
        self.list(state).filed(class)
    }

    /// The run that has been free longest in a state. Its `younger` link leads to the next.
    pub(crate) fn oldest(&self, state: ExtentState) -> Option<&'static Extent> {
        self.list(state).oldest()
    }

    /// The lowest dirty run of each size class, the longest class first.
    pub(crate) fn longest_dirty(&self) -> impl Iterator<Item = &'static Extent> {
        self.dirty.longest_first()
    }

    /// The run that [`FreeRuns::take`] would cut, of any size class.
    pub(crate) fn fit(
        &self,
        state: ExtentState,
        pages: usize,
        align: usize,
    ) -> Option<&'static Extent> {
        self.list(state).fit(pages, align, usize::MAX)
    }

    /// As [`FreeRuns::fit`], but among the retained runs of size classes up to `most` pages that
    /// are `wanted`.
    pub(crate) fn fit_retained(
        &self,
        pages: usize,
        align: usize,
        most: usize,
        wanted: impl Fn(&Extent) -> bool,
    ) -> Option<&'static Extent> {
        self.retained.fit_where(pages, align, most, wanted)
    }

    /// The number of pages that came from the provider and were not given back.
    pub(crate) fn mapped(&self) -> usize {
        self.mapped
    }

    /// The number of mapped pages that have memory.
    pub(crate) fn held(&self) -> usize {
        self.mapped.saturating_sub(self.without_memory())
    }

    /// The number of pages of runs that are in hand outside of the lock.
    pub(crate) fn away(&self) -> usize {
        self.away
    }

    /// The number of lost pages, which are not used and were not given back.
    pub(crate) fn abandoned(&self) -> usize {
        self.source.abandoned()
    }

    fn list(&self, state: ExtentState) -> &ExtentCache {
        match state {
            ExtentState::Dirty => &self.dirty,
            ExtentState::Muzzy => &self.muzzy,
            _ => &self.retained,
        }
    }

    fn list_mut(&mut self, state: ExtentState) -> &mut ExtentCache {
        match state {
            ExtentState::Dirty => &mut self.dirty,
            ExtentState::Muzzy => &mut self.muzzy,
            _ => &mut self.retained,
        }
    }

    // --- records ---

    /// Makes as many records as one operation needs. Returns `None` without memory.
    pub(crate) fn keep_records(&mut self) -> Option<()> {
        self.spares.keep()
    }

    /// Takes a record for the second part of a run that is cut. Returns `None` without memory.
    pub(crate) fn take_record(&mut self) -> Option<&'static Extent> {
        self.spares.take_or_make()
    }

    /// Takes back a record that stands for no run any more.
    pub(crate) fn put_record(&mut self, record: &'static Extent) {
        self.spares.put(record);
    }

    /// The number of records that stand for no run, and of all records ever made.
    pub(crate) fn records(&self) -> (usize, usize) {
        (self.spares.count(), self.spares.made())
    }

    // --- taking ---

    /// Takes a free run out of the list of its state.
    pub(crate) fn remove(&mut self, run: &'static Extent) -> InHand {
        self.list_mut(run.state.get()).remove(run)
    }

    /// Cuts a run out of a free one in a state, which is of a size class up to `most` pages.
    /// Returns `None` if there is none.
    pub(crate) fn take(
        &mut self,
        state: ExtentState,
        pages: usize,
        align: usize,
        most: usize,
    ) -> Option<InHand> {
        let run = self.list(state).fit(pages, align, most)?;
        let run = self.remove(run);
        self.cut(run, pages, align)
    }

    /// Takes a run without memory, of the free ones or from the provider. Runs that wait are used
    /// only if there is no other.
    pub(crate) fn take_addresses(&mut self, pages: usize, align: usize) -> Option<InHand> {
        self.take(ExtentState::Retained, pages, align, usize::MAX)
            .or_else(|| self.reserve(pages, align))
    }

    /// Counts a run as in hand outside of the lock.
    pub(crate) fn send_away(&mut self, run: InHand) -> InHand {
        self.away += run.pages();
        run
    }

    /// Notes that a run of [`FreeRuns::send_away`] is back.
    pub(crate) fn note_back(&mut self, run: &Extent) {
        self.away -= run.pages();
    }

    /// Gives up the runs that are in hand outside of the lock, except for `kept` pages of them. The
    /// threads that held them are not in this process.
    pub(crate) fn abandon_away(&mut self, kept: usize) {
        let lost = core::mem::replace(&mut self.away, kept) - kept;
        self.mapped -= lost;
        self.source.abandon(lost);
    }

    // --- cutting and merging ---

    /// Cuts a run after its first `pages` pages and returns the rest, or `None` if there is no rest
    /// or no record for it.
    pub(crate) fn cut_off(&mut self, run: &InHand, pages: usize) -> Option<InHand> {
        cut::cut_off(&mut self.spares, run, pages)
    }

    /// Cuts an aligned part out of a run, and lists the rest again. If the part does not fit or
    /// there is no record, lists all of the run again and returns `None`.
    pub(crate) fn cut(&mut self, run: InHand, pages: usize, align: usize) -> Option<InHand> {
        match cut::cut_out(&mut self.spares, run, pages, align) {
            Ok(cut) => {
                cut.lead.into_iter().chain(cut.behind).for_each(|part| self.list_again(part));
                Some(cut.wanted)
            }
            Err(whole) => {
                self.list_again(whole);
                None
            }
        }
    }

    /// As [`FreeRuns::cut`], but files the pages before the part as dirty, and returns those behind
    /// it. A run that is not cut is filed as dirty.
    pub(crate) fn cut_front(
        &mut self,
        run: InHand,
        pages: usize,
        align: usize,
    ) -> Option<(InHand, Option<InHand>)> {
        match cut::cut_out(&mut self.spares, run, pages, align) {
            Ok(cut) => {
                if let Some(lead) = cut.lead {
                    self.file(lead, ExtentState::Dirty);
                }
                Some((cut.wanted, cut.behind))
            }
            Err(whole) => {
                self.file(whole, ExtentState::Dirty);
                None
            }
        }
    }

    /// Makes `right`, which begins where the run ends, a part of the run.
    pub(crate) fn append(&mut self, run: &InHand, right: InHand) {
        let record = run.append(right);
        self.spares.put(record);
    }

    /// As [`FreeRuns::append`], for an active run. Returns whether `right` reads zero.
    pub(crate) fn append_to_active(&mut self, run: &'static Extent, right: InHand) -> bool {
        let (zeroed, was_zeroed) = (right.zeroed.get(), run.zeroed.get());
        let record = in_hand::merge(run, right);
        run.zeroed.set(was_zeroed);
        run.marks.set_wiped(false);
        self.spares.put(record);
        zeroed
    }

    // --- giving back ---

    /// Puts a run in the list that it was taken from, without merging it with its neighbours.
    pub(crate) fn list_again(&mut self, run: InHand) {
        self.list_mut(run.from()).insert(run);
    }

    /// Files a run, and merges it with free neighbours in the same state.
    pub(crate) fn file(&mut self, run: InHand, state: ExtentState) {
        let mut run = if self.merges { run } else { access::open_for_hooks(run) };
        if let Some(left) = left_neighbour(&run, state).filter(|_| self.merges) {
            let left = self.remove(left);
            self.append(&left, run);
            run = left;
        }
        if let Some(right) = right_neighbour(&run, state).filter(|_| self.merges) {
            let right = self.remove(right);
            self.append(&run, right);
        }
        self.list_mut(state).insert(run);
    }

    /// Lets a closed run without memory wait, and files the one that leaves for it. A run that is
    /// not closed is filed.
    pub(crate) fn wait(&mut self, run: InHand) {
        let waits = self.merges && run.marks.is_closed();
        let left = if waits { self.waiting.exchange(run) } else { Some(run) };
        left.into_iter().for_each(|left| self.file(left, ExtentState::Retained));
    }

    /// Files all runs that wait.
    pub(crate) fn end_waiting(&mut self) {
        while let Some(run) = self.waiting.take_oldest() {
            self.file(run, ExtentState::Retained);
        }
    }

    /// Uncounts a run whose addresses were given back or lost. The run has left the page map.
    pub(crate) fn forget(&mut self, run: InHand) {
        chunk_notes::forget_lost_chunks(&run);
        self.mapped -= run.pages();
        page_map::uncover(run.bytes());
        self.spares.put(run.set_aside());
    }

    // --- reserving ---

    /// Reserves a run of new addresses. Takes one of those that waited if there are none.
    fn reserve(&mut self, pages: usize, align: usize) -> Option<InHand> {
        let record = self.spares.take()?;
        let Some((got, chunk)) = self.source.reserve(pages, align) else {
            self.spares.put(record);
            self.end_waiting();
            return self.take(ExtentState::Retained, pages, align, usize::MAX);
        };
        let run = self.hold_new(record, &got, chunk);
        if chunk == pages { Some(run) } else { self.cut(run, pages, align) }
    }

    /// Takes in new memory that the page map covers.
    fn hold_new(&mut self, record: &'static Extent, got: &Reserved, pages: usize) -> InHand {
        record.set_range(got.base.as_ptr().expose_provenance(), pages);
        record.marks.set_closed(false);
        page_map::clear_marks(record);
        self.hold_head(record, got.zeroed)
    }

    /// Takes hold of a run that is merged with nothing before it.
    fn hold_head(&mut self, record: &'static Extent, zeroed: bool) -> InHand {
        record.zeroed.set(zeroed);
        record.marks.set_wiped(false);
        record.marks.set_head(true);
        page_map::set_ends(record);
        self.mapped += record.pages();
        InHand::hold(record, ExtentState::Retained)
    }

    /// Takes in new memory. Returns `None` without memory for a record or for the page map.
    pub(crate) fn take_in(&mut self, got: &Reserved, pages: usize) -> Option<InHand> {
        self.spares.keep()?;
        if !page_map::cover(got.base.as_ptr().expose_provenance(), pages << LG_PAGE) {
            return None;
        }
        let record = self.spares.take()?;
        Some(self.hold_new(record, got, pages))
    }

    /// Takes in addresses, with or without memory, that another arena leaves. They are lost, and
    /// counted as lost, if there is no memory for a record.
    pub(crate) fn adopt(&mut self, base: usize, pages: usize) {
        let Some(record) = self.take_record() else { return self.source.abandon(pages) };
        record.set_range(base, pages);
        record.marks.set_closed(access::are_some_closed());
        page_map::recover(record.bytes());
        page_map::clear_marks(record);
        let run = self.hold_head(record, false);
        self.file(run, ExtentState::Dirty);
    }

    /// Checks the lists of all states, and that the page map leads to their runs.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self) {
        self.waiting.check();
        for cache in [&self.dirty, &self.muzzy, &self.retained] {
            cache.check(|run| crate::ground::holds::holds(page_map::leads_to(run)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::PageAllocator;
    use crate::back::system::provider::fixed::Fixed;
    use crate::ground::size_class::page_class_floor;
    use crate::ground::units::PAGE;
    use ExtentState::Dirty;

    const PAGES: usize = 16;

    /// An arena whose only dirty run is at the beginning of its reservation.
    fn with_a_dirty_run() -> PageAllocator {
        let mut pages = PageAllocator::for_test(Fixed::leak(8 << 20));
        let runs = pages.runs();
        runs.keep_records().unwrap();
        let run = runs.take_addresses(PAGES, 8 * PAGE).unwrap();
        runs.file(run, Dirty);
        pages
    }

    fn assert_whole(runs: &FreeRuns) {
        assert_eq!((runs.pages(Dirty), runs.oldest(Dirty).unwrap().pages()), (PAGES, PAGES));
        runs.check();
    }

    #[test]
    fn a_run_is_cut_into_parts_and_is_one_again() {
        let mut pages = with_a_dirty_run();
        let runs = pages.runs();
        let first = runs.take(Dirty, 1, PAGE, usize::MAX).unwrap();
        let wanted = runs.take(Dirty, 4, 8 * PAGE, usize::MAX).unwrap();
        assert_eq!(wanted.base(), first.base() + 8 * PAGE);
        assert_eq!((runs.pages(Dirty), first.pages(), wanted.pages()), (11, 1, 4));
        let end = runs.cut_off(&wanted, 3).unwrap();
        assert_eq!((end.base(), end.pages()), (wanted.end(), 1));
        assert!(runs.cut_off(&wanted, 3).is_none());
        for part in [wanted, first, end] {
            runs.file(part, Dirty);
        }
        assert_whole(runs);
        assert!(runs.take(Dirty, PAGES + 1, PAGE, usize::MAX).is_none());
        assert!(runs.take(Dirty, PAGES / 2, PAGE, PAGES / 2).is_none(), "it is of a longer class");
        assert_whole(runs);
    }

    #[test]
    fn what_is_cut_off_the_front_leaves_the_rest_in_hand() {
        let mut pages = with_a_dirty_run();
        let runs = pages.runs();
        let first = runs.take(Dirty, PAGES, PAGE, usize::MAX).unwrap();
        let rest = runs.cut_off(&first, 1).unwrap();
        let (wanted, behind) = runs.cut_front(rest, 4, 8 * PAGE).unwrap();
        assert_eq!((wanted.base(), runs.pages(Dirty)), (first.base() + 8 * PAGE, 7));
        let behind = behind.unwrap();
        assert_eq!((behind.base(), behind.pages()), (wanted.end(), 4));
        assert!(runs.cut_front(behind, 5, PAGE).is_none());
        assert_eq!(runs.pages(Dirty), 11, "what does not fit is filed");
        runs.file(wanted, Dirty);
        runs.file(first, Dirty);
        assert_whole(runs);
    }

    #[test]
    fn neighbours_stay_apart_where_hooks_are_asked() {
        let mut pages = with_a_dirty_run();
        let runs = pages.runs();
        let provider = runs.provider();
        runs.set_provider(provider, false);
        let left = runs.take(Dirty, PAGES, PAGE, usize::MAX).unwrap();
        let right = runs.cut_off(&left, PAGES / 2).unwrap();
        runs.file(left, Dirty);
        runs.file(right, Dirty);
        assert_eq!(runs.filed(Dirty, page_class_floor(PAGES / 2)).runs, 2);
        runs.check();
    }

    #[test]
    fn runs_that_are_away_are_counted_and_may_be_lost() {
        let mut pages = with_a_dirty_run();
        let runs = pages.runs();
        let (mapped, held) = (runs.mapped(), runs.held());
        let run = runs.take(Dirty, 4, PAGE, usize::MAX).unwrap();
        let run = runs.send_away(run);
        assert_eq!((runs.away(), runs.held()), (4, held));
        runs.note_back(&run);
        assert_eq!(runs.away(), 0);
        core::mem::forget(runs.send_away(run));
        runs.abandon_away(1);
        assert_eq!((runs.away(), runs.mapped(), runs.abandoned()), (1, mapped - 3, 3));
    }

    #[test]
    fn addresses_that_were_ours_may_be_adopted() {
        let mut pages = with_a_dirty_run();
        let runs = pages.runs();
        let mapped = runs.mapped();
        let run = runs.take(Dirty, 4, PAGE, usize::MAX).unwrap();
        let base = run.base();
        // As the end of an arena marks them.
        page_map::mark_given_back(&run);
        runs.forget(run);
        assert_eq!((runs.mapped(), runs.pages(Dirty)), (mapped - 4, PAGES - 4));
        runs.adopt(base, 4);
        assert_eq!(runs.mapped(), mapped);
        let inside = page_map::lookup(base + PAGE);
        assert_eq!(inside.dead_arena(), None, "the pages are of an arena again");
        assert_whole(runs);
    }
}
