//! The pages of one arena: runs are allocated, freed, grown, shrunk, aged and given back.
//!
//! Nothing here locks, because the arena holds the allocator in a lock. Purging has three steps, so
//! that the system calls run outside the lock: [`PageAllocator::take_batch`], [`Batch::purge`]
//! without the lock, [`PageAllocator::file_batch`]. Moving memory has such steps too: [`moves`].

use super::aging::limit::Bounds;
use super::aging::page_aging::{PageAging, Unused};
use super::aging::page_counts::{PageCounts, PurgeCounts};
use super::hooked::hooked_pages::{Hooked, HookedPages};
use super::hooked::hooks::Hooks;
use super::map::extent::{Extent, ExtentState};
use super::map::page_map;
use super::placement::dense::Rest;
pub(crate) use super::placement::memory::Memory;
use super::placement::memory::Request;
use super::placement::{expand, fresh, moves, unused};
use super::purge_batch::Batch;
use super::runs::extent_cache::Filed;
use super::runs::free_runs::FreeRuns;
use super::runs::in_hand::{self, InHand};
use super::runs::in_use::InUse;
use super::runs::low_runs::LowRuns;
use super::runs::source::Source;
use super::runs::{access, contents};
use super::system::page_provider::{Moved, PageProvider};
use super::system::provider::system::system;
#[cfg(any(test, feature = "checks"))]
use crate::ground::holds::holds;
use crate::ground::in_place::{Place, write_fields};
use crate::ground::options::{self, Dss};
use crate::ground::size_class::MAX_RUN_PAGES;

/// The page allocator of one arena.
pub(crate) struct PageAllocator {
    runs: FreeRuns,
    low: LowRuns,
    rest: Rest,
    aging: PageAging,
    bounds: Bounds,
    in_use: InUse,
    purges: PurgeCounts,
    /// The ready runs and the requests of an arena whose pages come from extent hooks.
    hooked: Option<Hooked>,
}

// SAFETY: the records are reached through the allocator alone, under the lock that it lies in.
unsafe impl Send for PageAllocator {}

impl PageAllocator {
    /// The offset of the count of active pages in a [`PageAllocator`], in bytes.
    pub(crate) const ACTIVE: usize = core::mem::offset_of!(PageAllocator, in_use.pages);

    /// Writes the page allocator of an arena, without pages, to `place`.
    pub(crate) fn begin_at(place: Place<Self>, arena: u32, provider: &'static dyn PageProvider) {
        let options = options::current();
        write_fields!(place => PageAllocator {
            runs => |at| FreeRuns::begin_at(at, arena, provider),
            low: LowRuns::new(arena),
            rest: Rest::NONE,
            aging: PageAging::new(options.dirty_decay_ms, options.muzzy_decay_ms),
            bounds: Bounds::new(arena),
            in_use: InUse::new(),
            purges: PurgeCounts::default(),
            hooked: None,
        });
    }

    /// Resets an allocator without pages for its next use, with these decay times.
    pub(crate) fn begin_anew(&mut self, dirty_ms: isize, muzzy_ms: isize, dss: Dss) {
        debug_assert!(self.counts().mapped == self.low.mapped());
        self.aging.set_millis(true, dirty_ms);
        self.aging.set_millis(false, muzzy_ms);
        self.unhook();
        self.runs.source().begin_anew(dss);
        self.rest.begin_anew();
        self.bounds.begin_anew();
        self.aging.set_oversize(0);
    }

    // --- allocating ---

    /// Allocates `pages` pages at a multiple of `align`. Returns `None` if there is no such memory.
    pub(crate) fn allocate(
        &mut self,
        pages: usize,
        align: usize,
        memory: Memory,
    ) -> Option<&'static Extent> {
        let is_refused = matches!(memory, Memory::Low | Memory::Roomy { .. }) && self.is_hooked();
        if pages == 0 || pages > MAX_RUN_PAGES || is_refused {
            return None;
        }
        self.runs.keep_records()?;
        let request = Request { pages, align, memory };
        let run = match memory {
            _ if self.is_hooked() => self.hooks().take_ready(request)?,
            Memory::Low => return self.allocate_fresh(request).map(|run| self.in_use.add(run)),
            Memory::Roomy { .. } => unused::take_roomy(&mut self.runs, request, self.in_use.pages)?,
            _ => unused::take(&mut self.runs, &mut self.rest, request)
                .or_else(|| self.allocate_fresh(request))?,
        };
        Some(self.in_use.add(access::opened(run, |run| self.runs.file(run, ExtentState::Dirty))?))
    }

    /// Allocates a run of new memory, if the request and the bounds allow it.
    fn allocate_fresh(&mut self, request: Request) -> Option<InHand> {
        if request.memory == Memory::Resident || !self.takes_room(request.pages) {
            return None;
        }
        let (held, active) = (self.held(), self.in_use.pages);
        let taken = match request.memory {
            Memory::Low => fresh::take_low(&mut self.low, &self.rest, &self.bounds, held, request),
            _ => fresh::take(&mut self.runs, &mut self.rest, &self.bounds, active, request),
        };
        self.note_growth(taken.as_ref().map_or(0, |(_, new)| *new));
        self.report();
        taken.map(|(run, _)| run)
    }

    /// Counts `new` pages that had no memory and are used from now on.
    fn note_growth(&mut self, new: usize) {
        self.aging.note_growth(new, self.runs.pages(ExtentState::Dirty), self.in_use.pages);
    }

    // --- freeing ---

    /// Frees a run in use. It becomes a dirty run.
    pub(crate) fn free(&mut self, extent: &'static Extent) {
        match self.in_use.remove(extent) {
            run if run.is_low() => self.low.put(run),
            run => self.runs.file(run, ExtentState::Dirty),
        }
    }

    /// Frees a run in use that is to be purged now. Returns the batch that purges it.
    pub(crate) fn free_into_batch(&mut self, extent: &'static Extent) -> Batch {
        let run = self.in_use.remove(extent);
        Batch::of(&mut self.runs, self.hooked.as_ref().map(Hooked::hooks), run)
    }

    // --- resizing ---

    /// Cuts an active run to its first `pages` pages, or returns `false` if there is no record.
    pub(crate) fn shrink(&mut self, extent: &'static Extent, pages: usize) -> bool {
        self.runs.take_record().map(|tail| self.shrink_into(extent, pages, tail)).is_some()
    }

    /// Frees the first `pages` pages of an active run and returns the rest, or all of the run if
    /// there is no record for the rest.
    pub(crate) fn cut_lead(&mut self, extent: &'static Extent, pages: usize) -> &'static Extent {
        let Some(rest) = self.runs.take_record() else { return extent };
        let rest = self.in_use.add_part(in_hand::split(extent, pages, rest, ExtentState::Dirty));
        access::close(extent, self.is_hooked());
        self.free(extent);
        rest
    }

    /// As [`PageAllocator::shrink`], but with a record for what is cut off. This cannot fail.
    pub(crate) fn shrink_into(&mut self, run: &'static Extent, pages: usize, cut: &'static Extent) {
        let cut = in_hand::split(run, pages, cut, ExtentState::Dirty);
        let cut = contents::junked(self.in_use.add_part(cut));
        access::close(cut, self.is_hooked());
        self.free(cut);
    }

    /// Lengthens an active run to `pages` pages in place. Returns whether the new part reads zero,
    /// or `None` if the pages behind the run cannot be taken. A page stays free behind it and one
    /// before the next block in the hardened tier.
    pub(crate) fn grow(&mut self, extent: &'static Extent, pages: usize) -> Option<bool> {
        let gap = usize::from(access::leaves_gap(pages));
        let more = pages - extent.pages() + gap;
        let new = expand::new_pages(extent, more + gap)?;
        self.runs.keep_records()?;
        if self.is_hooked() || (new > 0 && !self.takes_room(new)) {
            return None;
        }
        let is_zero = expand::expand(&mut self.runs, &mut self.in_use, extent, more);
        self.report();
        self.note_growth(if is_zero.is_some() { new } else { 0 });
        if gap > 0 && is_zero.is_some() {
            self.shrink(extent, pages);
        }
        is_zero
    }

    /// Takes addresses for a move of `run`, which the caller owns, to `pages` pages at a multiple
    /// of `align`. Returns `None` if there are none or if the run is not to be moved.
    pub(crate) fn begin_move(
        &mut self,
        run: &'static Extent,
        pages: usize,
        align: usize,
    ) -> Option<&'static Extent> {
        let more = pages.saturating_sub(run.pages());
        let keeps = moves::keep_too_much(&self.runs, &self.aging, self.in_use.pages);
        // The arena may have got hooks since the caller looked.
        let may = !self.is_hooked() && !keeps && moves::is_wanted(&self.runs, run, pages, align);
        let is_wanted = may && self.takes_room(more);
        let (runs, in_use) = (&mut self.runs, &mut self.in_use);
        let new = is_wanted.then(|| moves::begin(runs, in_use, run, pages, align))?;
        self.report();
        new
    }

    /// Files the result of a move. Returns whether `new` is the block and `run` is free.
    pub(crate) fn end_move(
        &mut self,
        run: &'static Extent,
        new: &'static Extent,
        moved: Moved,
    ) -> bool {
        let more = moves::end(&mut self.runs, &mut self.in_use, run, new, moved);
        self.report();
        self.note_growth(more.unwrap_or(0));
        more.is_some()
    }

    // --- aging and purging ---

    fn unused(&self) -> Unused {
        let dirty = self.runs.pages(ExtentState::Dirty) + self.rest.pages() + self.low.dirty();
        Unused { dirty, muzzy: self.runs.pages(ExtentState::Muzzy) }
    }

    /// Whether decay has work at `now`, in milliseconds.
    pub(crate) fn is_decay_due(&self, now: u64) -> bool {
        self.aging.is_due(now, self.unused())
    }

    /// Moves decay to `now` and returns how many dirty and muzzy pages may stay.
    pub(crate) fn advance(&mut self, now: u64) -> (usize, usize) {
        self.rest.age();
        self.aging.advance(now, self.unused())
    }

    /// The time in milliseconds at which decay has enough work for a wake-up, or `None` if never.
    pub(crate) fn next_decay(&self) -> Option<u64> {
        self.aging.next(self.unused())
    }

    /// Takes the pages that `GrowthPurge` counts for new memory and returns how many unused pages
    /// may stay without them. Returns `None` if none are counted.
    pub(crate) fn take_growth(&mut self) -> Option<usize> {
        self.aging.take_growth(self.unused().dirty)
    }

    /// Takes a batch of the oldest runs beyond what may stay. Returns `None` when all is done.
    pub(crate) fn take_batch(&mut self, dirty: usize, muzzy: usize) -> Option<Batch> {
        if dirty < self.rest.pages() {
            self.rest.file(&mut self.runs);
        }
        let dirty = dirty.saturating_sub(self.rest.pages());
        let dirty = self.low.purge(self.runs.pages(ExtentState::Dirty), dirty);
        self.report();
        // Dirty pages become muzzy only if muzzy pages may stay. Otherwise they are purged at once.
        let lazily = self.aging.millis(false) != 0 && muzzy > 0;
        let hooks = self.hooked.as_ref().map(Hooked::hooks);
        Batch::take(&mut self.runs, hooks, Unused { dirty, muzzy }, lazily)
    }

    /// Files a purged batch. Returns `false` if the system refused all runs. Purging then stops.
    pub(crate) fn file_batch(&mut self, batch: Batch) -> bool {
        let any = batch.file(&mut self.runs, &mut self.purges);
        self.report();
        any
    }

    // --- hooks ---

    /// Takes new pages from `hooks` from now on. An arena that has hooks keeps them.
    pub(crate) fn hook(&mut self, hooks: &'static Hooks) {
        if self.hooked.is_none() {
            self.rest.file(&mut self.runs);
            self.hooked = Some(Hooked::new(hooks));
            self.runs.set_provider(hooks, false);
            self.hooks().open_all();
        }
    }

    /// Forgets the hooks of an arena without pages.
    fn unhook(&mut self) {
        self.hooks().forget_requests();
        if self.hooked.take().is_some() {
            self.runs.set_provider(system(), true);
        }
    }

    /// Whether the pages of this arena come from hooks.
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
            low: self.low.held(),
        }
    }

    // --- the end of an arena ---

    /// Takes an unused run out of its list and out of the page map, at the end of the arena.
    pub(crate) fn take_unused(&mut self) -> Option<InHand> {
        self.rest.file(&mut self.runs);
        self.runs.end_waiting();
        self.low.purge(0, 0);
        self.report();
        self.hooks().file_ready();
        let run = ExtentState::FREE.into_iter().find_map(|state| self.runs.oldest(state))?;
        let run = self.runs.remove(run);
        page_map::mark_given_back(&run);
        Some(self.runs.send_away(run))
    }

    /// Takes in addresses that another arena leaves, as [`FreeRuns::adopt`].
    pub(crate) fn adopt(&mut self, base: usize, pages: usize) {
        self.runs.adopt(base, pages);
        self.report();
    }

    // --- bounds ---

    /// The number of pages that have memory.
    pub(crate) fn held(&self) -> usize {
        self.runs.held() + self.low.held() - self.in_use.moving()
    }

    /// The bounds of the arena.
    pub(crate) fn bounds(&mut self) -> &mut Bounds {
        &mut self.bounds
    }

    fn report(&mut self) {
        self.bounds.report(self.held());
    }

    /// Whether the bounds admit `pages` new pages. The caller then reports what it holds.
    fn takes_room(&mut self, pages: usize) -> bool {
        self.bounds.take_room(self.held(), pages)
    }

    // --- settings ---

    /// The source of new pages.
    pub(crate) fn source(&mut self) -> &mut Source {
        self.runs.source()
    }

    /// The aging of unused pages.
    pub(crate) fn aging(&mut self) -> &mut PageAging {
        &mut self.aging
    }

    /// Keeps a list of the runs in use from now on. No run is in use yet.
    pub(crate) fn list_active(&mut self) {
        self.in_use.keep_list();
        self.rest.set_alone();
    }

    /// The first run of the list that [`PageAllocator::list_active`] began.
    pub(crate) fn first_active(&self) -> Option<&'static Extent> {
        self.in_use.first()
    }

    // --- statistics ---

    /// The pages in each state, and counts of operations.
    pub(crate) fn counts(&self) -> PageCounts {
        let InUse { pages: active, taken, given, .. } = self.in_use;
        let (dirty, purges) = (self.rest.pages(), self.purges);
        let mut counts = PageCounts { active, taken, given, dirty, purges, ..Default::default() };
        counts.add(&self.runs);
        self.low.runs().inspect(|low| counts.add(low));
        counts
    }

    /// The number of unused runs of a size class in a state, and of their pages.
    pub(crate) fn filed(&self, state: ExtentState, class: usize) -> Filed {
        self.rest.filed(state, class, self.runs.filed(state, class))
    }

    /// Checks the lists, and that the counts add up.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self) {
        self.runs.check();
        self.in_use.check();
        holds(self.counts().sum() == self.counts().mapped);
        holds(self.runs.away() > 0 || self.bounds.reported() == self.held());
    }
}

#[cfg(test)]
#[path = "page_allocator_test.rs"]
mod tests;
