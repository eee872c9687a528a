//! All pages of one arena: allocate, free, grow and shrink runs; age them; give them back.
//!
//! Nothing here locks or is shared: the arena holds it in a lock. Purging is in two halves, so that
//! the system calls run outside the lock: [`PageAllocator::take_batch`], then
//! [`Batch::purge`](crate::back::purge_batch::Batch::purge) without the lock, then
//! [`PageAllocator::file_batch`]. So is moving a run's memory: see [`moves`].

use super::aging::limit::Bounds;
use super::aging::page_aging::{PageAging, Unused};
use super::aging::page_counts::{PageCounts, PurgeCounts};
use super::hooked::hooked_pages::{Hooked, HookedPages};
use super::hooked::hooks::Hooks;
use super::map::extent::{Extent, ExtentState};
use super::map::page_map;
use super::placement::dense::Rest;
use super::placement::fresh;
pub(crate) use super::placement::memory::Memory;
use super::placement::memory::Request;
use super::placement::moves;
use super::purge_batch::Batch;
use super::runs::contents;
use super::runs::extent_cache::Filed;
use super::runs::free_runs::FreeRuns;
use super::runs::in_hand::{self, InHand};
use super::runs::in_use::InUse;
use super::runs::neighbours::right_neighbour;
use super::runs::source::Source;
use super::system::page_provider::{Moved, PageProvider};
use super::system::provider::system::system;
use crate::ground::options::{self, Dss};
use crate::ground::size_class::{MAX_RUN_PAGES, page_class_floor};

/// The pages of one arena.
pub(crate) struct PageAllocator {
    runs: FreeRuns,
    rest: Rest,
    aging: PageAging,
    bounds: Bounds,
    in_use: InUse,
    purges: PurgeCounts,
    /// What an arena whose pages come by extent hooks has ready and lacks.
    hooked: Option<Hooked>,
}

// SAFETY: the records it holds are reached through it alone, under the lock that it lies in.
unsafe impl Send for PageAllocator {}

impl PageAllocator {
    /// Where the active pages are counted, in bytes from the beginning.
    pub(crate) const ACTIVE: usize = core::mem::offset_of!(PageAllocator, in_use.pages);

    /// No pages yet.
    pub(crate) fn new(arena: u32, provider: &'static dyn PageProvider) -> PageAllocator {
        let options = options::current();
        PageAllocator {
            runs: FreeRuns::new(arena, provider),
            rest: Rest::NONE,
            aging: PageAging::new(options.dirty_decay_ms, options.muzzy_decay_ms),
            bounds: Bounds::new(arena),
            in_use: InUse::new(),
            purges: PurgeCounts::default(),
            hooked: None,
        }
    }

    /// Begins anew, without pages, with these decay times.
    pub(crate) fn begin_anew(&mut self, dirty_ms: isize, muzzy_ms: isize, dss: Dss) {
        debug_assert_eq!(self.counts().mapped, 0);
        self.aging.set_millis(true, dirty_ms);
        self.aging.set_millis(false, muzzy_ms);
        self.unhook();
        self.runs.source().begin_anew(dss);
        self.bounds.set_own(0);
        self.bounds.set_exempt(false);
        self.aging.set_oversize(0);
    }

    // --- allocating ---

    /// A run of `pages` pages at a multiple of `align`. `None`: there is none of that memory.
    pub(crate) fn allocate(
        &mut self,
        pages: usize,
        align: usize,
        memory: Memory,
    ) -> Option<&'static Extent> {
        if pages == 0 || pages > MAX_RUN_PAGES {
            return None;
        }
        if self.is_hooked() {
            let run = self.hooks().take_ready(pages, align, memory != Memory::Resident)?;
            return Some(self.in_use.add(run));
        }
        self.runs.keep_records()?;
        let most = pages.saturating_mul(1 << options::current().lg_extent_max_active_fit.min(40));
        let (runs, rest) = (&mut self.runs, &mut self.rest);
        let run = runs
            .take(ExtentState::Dirty, pages, align, most)
            .or_else(|| runs.take(ExtentState::Muzzy, pages, align, most))
            // Cutting up a long run that has memory is better than touching new memory.
            .or_else(|| runs.take(ExtentState::Dirty, pages, align, usize::MAX))
            .or_else(|| rest.take_if_open(runs, pages, align))
            .or_else(|| self.allocate_fresh(Request { pages, align, memory }))?;
        Some(self.in_use.add(run))
    }

    /// A run of new memory, as far as the request lets it and bounds do.
    fn allocate_fresh(&mut self, request: Request) -> Option<InHand> {
        if request.memory == Memory::Resident || !self.admits(request.pages) {
            return None;
        }
        let (runs, active) = (&mut self.runs, self.in_use.pages);
        let (run, new) = fresh::take(runs, &mut self.rest, &self.bounds, active, request)?;
        self.aging.note_growth(new, runs.pages(ExtentState::Dirty), active);
        self.report();
        Some(run)
    }

    // --- freeing ---

    /// Takes a run back.
    pub(crate) fn free(&mut self, extent: &'static Extent) {
        let run = self.in_use.remove(extent);
        self.runs.file(run, ExtentState::Dirty);
    }

    /// Takes a run back that is to be purged now, and not to wait among the unused ones.
    pub(crate) fn free_into_batch(&mut self, extent: &'static Extent) -> Batch {
        let run = self.in_use.remove(extent);
        Batch::of(&mut self.runs, self.hooked.as_ref().map(Hooked::hooks), run)
    }

    // --- resizing ---

    /// Cuts an active run down to its first `pages` pages. `false`: no record; nothing changed.
    pub(crate) fn shrink(&mut self, extent: &'static Extent, pages: usize) -> bool {
        if self.runs.keep_records().is_none() {
            return false;
        }
        let Some(tail) = self.runs.take_record() else { return false };
        self.shrink_into(extent, pages, tail);
        true
    }

    /// As [`PageAllocator::shrink`], with the record for what is cut off: that cannot fail.
    pub(crate) fn shrink_into(
        &mut self,
        extent: &'static Extent,
        pages: usize,
        tail: &'static Extent,
    ) {
        let tail = in_hand::split(extent, pages, tail, ExtentState::Dirty);
        let tail = self.in_use.add_part(tail);
        self.free(contents::junked(tail));
    }

    /// Lengthens an active run to `pages` pages in place. Returns whether the new part reads zero;
    /// `None`: what lies behind is in use.
    pub(crate) fn grow(&mut self, extent: &'static Extent, pages: usize) -> Option<bool> {
        let more = pages - extent.pages();
        let right = ExtentState::FREE
            .into_iter()
            .find_map(|state| right_neighbour(extent, state))
            .filter(|right| right.pages() >= more)?;
        if right.state.get() == ExtentState::Retained && !self.admits(more) {
            return None;
        }
        self.runs.keep_records()?;
        let right = self.runs.remove(right);
        if let Some(rest) = self.runs.cut_off(&right, more) {
            self.runs.list_again(rest);
        }
        self.in_use.pages += right.pages();
        Some(self.runs.append_to_active(extent, right))
    }

    /// Addresses without memory for a move of `run` to `pages` pages at a multiple of `align`.
    /// `None`: there are none, or enough runs have been moved. The caller owns `run`.
    pub(crate) fn begin_move(
        &mut self,
        run: &'static Extent,
        pages: usize,
        align: usize,
    ) -> Option<&'static Extent> {
        if !moves::is_possible(run) || !self.admits(pages.saturating_sub(run.pages())) {
            return None;
        }
        let new = moves::begin(&mut self.runs, run, pages, align)?;
        self.in_use.pages += pages;
        Some(new)
    }

    /// Files what came of a move. `true`: the block is `new`, and `run` is free; else `new` is.
    pub(crate) fn end_move(
        &mut self,
        run: &'static Extent,
        new: &'static Extent,
        moved: Moved,
    ) -> bool {
        let done = moves::is_done(moved);
        self.in_use.pages -= if done { run.pages() } else { new.pages() };
        moves::end(&mut self.runs, run, new, moved);
        done
    }

    // --- aging and purging ---

    fn unused(&self) -> Unused {
        let dirty = self.runs.pages(ExtentState::Dirty) + self.rest.pages();
        Unused { dirty, muzzy: self.runs.pages(ExtentState::Muzzy) }
    }

    /// Whether decay has anything to do at `now` (milliseconds).
    pub(crate) fn is_decay_due(&self, now: u64) -> bool {
        self.aging.is_due(now, self.unused())
    }

    /// Moves decay to `now`, and returns how many dirty and muzzy pages may stay.
    pub(crate) fn advance(&mut self, now: u64) -> (usize, usize) {
        self.rest.age();
        self.aging.advance(now, self.unused())
    }

    /// When decay will have something to do that is worth a wake-up (milliseconds). `None`: never.
    pub(crate) fn next_decay(&self) -> Option<u64> {
        self.aging.next(self.unused())
    }

    /// How many unused pages may stay after what is owed for new memory was given back. `None`:
    /// nothing is owed.
    pub(crate) fn pay(&mut self) -> Option<usize> {
        self.aging.pay(self.unused().dirty)
    }

    /// The oldest runs beyond what may stay, a batch at a time; `None` when all is done.
    pub(crate) fn take_batch(&mut self, dirty: usize, muzzy: usize) -> Option<Batch> {
        if dirty < self.rest.pages() {
            self.rest.file(&mut self.runs);
        }
        let dirty = dirty.saturating_sub(self.rest.pages());
        // Muzzy pages exist only while their decay time is not 0; without one they go at once.
        let lazily = self.aging.millis(false) != 0 && muzzy > 0;
        let hooks = self.hooked.as_ref().map(Hooked::hooks);
        Batch::take(&mut self.runs, hooks, Unused { dirty, muzzy }, lazily)
    }

    /// Files what came of a batch. `false`: the system refused some of it; stop asking for now.
    pub(crate) fn file_batch(&mut self, batch: Batch) -> bool {
        let all = batch.file(&mut self.runs, &mut self.purges);
        self.report();
        all
    }

    // --- hooks ---

    /// Takes pages by hooks from now on.
    pub(crate) fn hook(&mut self, hooks: &'static Hooks) {
        if self.hooked.is_none() {
            self.rest.file(&mut self.runs);
            self.hooked = Some(Hooked::new(hooks));
            self.runs.set_provider(hooks, false);
        }
    }

    /// Forgets the hooks: the arena is empty.
    fn unhook(&mut self) {
        self.hooks().forget_wants();
        if self.hooked.take().is_some() {
            self.runs.set_provider(system(), true);
        }
    }

    /// Whether its pages come by hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.is_some()
    }

    /// The pages as hooks see them.
    pub(crate) fn hooks(&mut self) -> HookedPages<'_> {
        HookedPages {
            hooked: self.hooked.as_mut(),
            runs: &mut self.runs,
            bounds: &mut self.bounds,
            in_use: &mut self.in_use,
        }
    }

    // --- the end of an arena ---

    /// An unused run that is in nobody's list any more, nor in the page map.
    pub(crate) fn take_unused(&mut self) -> Option<InHand> {
        self.rest.file(&mut self.runs);
        self.hooks().file_ready();
        let run = ExtentState::FREE.into_iter().find_map(|state| self.runs.oldest(state))?;
        let run = self.runs.remove(run);
        page_map::bury(&run);
        Some(self.runs.send_away(run))
    }

    /// Takes in addresses, with or without memory, that another arena leaves. Without memory for a
    /// record they are lost.
    pub(crate) fn adopt(&mut self, base: usize, pages: usize) {
        self.runs.adopt(base, pages);
    }

    // --- bounds ---

    /// Pages with memory.
    pub(crate) fn held(&self) -> usize {
        self.runs.held()
    }

    /// The bounds of the arena.
    pub(crate) fn bounds(&mut self) -> &mut Bounds {
        &mut self.bounds
    }

    fn admits(&mut self, pages: usize) -> bool {
        self.bounds.admits(self.runs.held(), pages)
    }

    fn report(&mut self) {
        self.bounds.report(self.runs.held());
    }

    // --- settings ---

    /// Where its pages come from.
    pub(crate) fn source(&mut self) -> &mut Source {
        self.runs.source()
    }

    /// How long unused pages are kept.
    pub(crate) fn aging(&mut self) -> &mut PageAging {
        &mut self.aging
    }

    /// Keeps a list of the runs in use from now on, which are none yet.
    pub(crate) fn list_active(&mut self) {
        self.in_use.keep_list();
        self.rest.set_alone();
    }

    /// A run in use, of those that are listed.
    pub(crate) fn first_active(&self) -> Option<&'static Extent> {
        self.in_use.first()
    }

    // --- statistics ---

    /// What the pages are doing now.
    pub(crate) fn counts(&self) -> PageCounts {
        let unused = self.unused();
        PageCounts {
            active: self.in_use.pages,
            taken: self.in_use.taken,
            given: self.in_use.given,
            dirty: unused.dirty,
            muzzy: unused.muzzy,
            retained: self.runs.pages(ExtentState::Retained),
            purging: self.runs.away(),
            mapped: self.runs.mapped(),
            records: self.runs.records().1,
            abandoned: self.runs.abandoned(),
            purges: self.purges,
        }
    }

    /// The unused runs of a size class in a state.
    pub(crate) fn filed(&self, state: ExtentState, class: usize) -> Filed {
        let (filed, rest) = (self.runs.filed(state, class), self.rest.pages());
        if state == ExtentState::Dirty && rest > 0 && page_class_floor(rest) == class {
            return Filed { runs: filed.runs + 1, pages: filed.pages + rest };
        }
        filed
    }

    /// Records of runs that wait for their next use.
    pub(crate) fn spare_records(&self) -> usize {
        self.runs.records().0
    }

    /// Judges itself.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.runs.check();
        let counts = self.counts();
        assert_eq!(counts.sum(), counts.mapped);
    }
}

#[cfg(test)]
#[path = "page_allocator_test.rs"]
mod tests;
