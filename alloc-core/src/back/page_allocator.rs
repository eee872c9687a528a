//! All pages of one arena: allocate, free, grow and shrink runs; age them; give them back.
//!
//! Nothing here locks or is shared: the arena holds it in a lock. Purging is in two halves, so that
//! the system calls run outside the lock: [`PageAllocator::take_batch`], then
//! [`Batch::purge`](super::purge_batch::Batch::purge) without the lock, then
//! [`PageAllocator::file_batch`]. So is moving a run's memory: see [`super::moves`].

use super::active_list::ActiveList;
use super::debt::Debt;
use super::decay::Decay;
use super::dense::Rest;
use super::extent::{Extent, ExtentState};
use super::extent_cache::ExtentCache;
use super::hooked_pages::Hooked;
use super::in_hand::{InHand, merge, split};
pub(crate) use super::memory::Memory;
use super::neighbours::{left_neighbour, right_neighbour};
use super::page_counts::PageCounts;
use super::page_map;
use super::page_provider::PageProvider;
use super::spares::Spares;
use super::thp;
use crate::ground::options::{self, Dss};
use crate::ground::size_class::{MAX_RUN_PAGES, page_class_ceil, page_class_pages};
use crate::ground::units::{LG_PAGE, PAGE};

/// The first reservation of an arena, in pages; later ones grow class by class.
pub(super) const FIRST_CHUNK: usize = (2 << 20) / PAGE;
/// No reservation is made larger than this by growth alone.
pub(super) const LAST_CHUNK: usize = (1 << 30) / PAGE;
/// Reservations begin at a multiple of this.
const CHUNK_ALIGN: usize = 2 << 20;

/// The pages of one arena.
pub(crate) struct PageAllocator {
    pub(super) arena: u32,
    pub(super) provider: &'static dyn PageProvider,
    pub(super) dirty: ExtentCache,
    pub(super) muzzy: ExtentCache,
    pub(super) retained: ExtentCache,
    pub(super) dirty_decay: Decay,
    pub(super) muzzy_decay: Decay,
    pub(super) spares: Spares,
    pub(super) rest: Rest,
    pub(super) next_chunk: usize,
    pub(super) debt: Debt,
    pub(super) counts: PageCounts,
    /// The runs in use, where a reset is to find them.
    pub(super) active: Option<ActiveList>,
    /// Its pages come by functions of the program's.
    pub(super) hooked: Option<Hooked>,
    /// When addresses come from the data segment.
    pub(crate) dss: Dss,
    /// Reservations made in advance do not grow beyond so many pages.
    pub(crate) grow_limit: usize,
    /// Runs of so many bytes that are freed are given back at once; 0: none is.
    pub(crate) oversize: usize,
    /// Bytes that it may hold; 0: any. And pages held as they were last reported.
    pub(crate) limit: usize,
    pub(super) reported: usize,
    /// The bound of all arenas refuses it nothing.
    pub(crate) limit_exempt: bool,
}

// SAFETY: the records it holds are reached through it alone, under the lock that it lies in.
unsafe impl Send for PageAllocator {}

impl PageAllocator {
    /// No pages yet.
    pub(crate) fn new(arena: u32, provider: &'static dyn PageProvider) -> PageAllocator {
        let options = options::current();
        PageAllocator {
            arena,
            provider,
            dirty: ExtentCache::new(ExtentState::Dirty),
            muzzy: ExtentCache::new(ExtentState::Muzzy),
            retained: ExtentCache::new(ExtentState::Retained),
            dirty_decay: Decay::new(options.dirty_decay_ms),
            muzzy_decay: Decay::new(options.muzzy_decay_ms),
            spares: Spares::new(arena),
            rest: Rest::NONE,
            next_chunk: FIRST_CHUNK,
            debt: Debt::new(),
            counts: PageCounts::default(),
            active: None,
            hooked: None,
            dss: options.dss,
            grow_limit: LAST_CHUNK,
            oversize: 0,
            limit: 0,
            reported: 0,
            limit_exempt: false,
        }
    }

    /// Where its pages come from.
    pub(crate) fn provider(&self) -> &'static dyn PageProvider {
        self.provider
    }

    /// Pages that nobody uses and that have memory.
    pub(super) fn unused(&self) -> usize {
        self.dirty.pages() + self.rest.pages()
    }

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
            let run = self.take_ready(pages, align, memory != Memory::Resident)?;
            return Some(self.hand_out(run));
        }
        self.spares.keep()?;
        let most = pages.saturating_mul(1 << options::current().lg_extent_max_active_fit.min(40));
        let run = self
            .take(ExtentState::Dirty, pages, align, most)
            .or_else(|| self.take(ExtentState::Muzzy, pages, align, most))
            // Cutting up a long run that has memory is better than touching new memory.
            .or_else(|| self.take(ExtentState::Dirty, pages, align, usize::MAX))
            .or_else(|| self.take_of_open_rest(pages, align))
            .or_else(|| self.allocate_fresh(pages, align, memory))?;
        Some(self.hand_out(run))
    }

    /// Counts a run as in use.
    fn hand_out(&mut self, run: InHand) -> &'static Extent {
        let extent = run.release(ExtentState::Active);
        self.counts.active += extent.pages();
        self.counts.taken += 1;
        if let Some(active) = &mut self.active {
            active.push(extent);
        }
        extent
    }

    /// A run without memory.
    pub(super) fn take_addresses(&mut self, pages: usize, align: usize) -> Option<InHand> {
        self.take(ExtentState::Retained, pages, align, usize::MAX)
            .or_else(|| self.reserve(pages, align))
    }

    /// Takes a run back.
    pub(crate) fn free(&mut self, extent: &'static Extent) {
        let run = self.take_back(extent);
        self.file(run, ExtentState::Dirty);
    }

    /// Takes back a run that was in use and counts it as free, whatever becomes of it.
    pub(super) fn take_back(&mut self, extent: &'static Extent) -> InHand {
        debug_assert!(matches!(extent.state.get(), ExtentState::Active | ExtentState::Kept));
        if let Some(active) = &mut self.active {
            active.remove(extent);
        }
        self.counts.active -= extent.pages();
        self.counts.given += 1;
        extent.zeroed.set(false);
        InHand::hold(extent, ExtentState::Dirty)
    }

    /// Cuts an active run down to its first `pages` pages. `false`: no record; nothing changed.
    pub(crate) fn shrink(&mut self, extent: &'static Extent, pages: usize) -> bool {
        if self.spares.keep().is_none() {
            return false;
        }
        let Some(tail) = self.spares.take() else { return false };
        self.shrink_into(extent, pages, tail);
        true
    }

    /// The same, with the record for what is cut off: that cannot fail.
    pub(crate) fn shrink_into(
        &mut self,
        extent: &'static Extent,
        pages: usize,
        tail: &'static Extent,
    ) {
        let tail = split(extent, pages, tail, ExtentState::Dirty).release(ExtentState::Active);
        if let Some(active) = &mut self.active {
            active.push(tail);
        }
        self.free(super::contents::junked(tail));
    }

    /// Lengthens an active run to `pages` pages in place. Answers whether the new part reads zero;
    /// `None`: what lies behind is in use.
    pub(crate) fn grow(&mut self, extent: &'static Extent, pages: usize) -> Option<bool> {
        let more = pages - extent.pages();
        let right = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained]
            .into_iter()
            .find_map(|state| right_neighbour(extent, state))
            .filter(|right| right.pages() >= more)?;
        if right.state.get() == ExtentState::Retained && !self.admits(more) {
            return None;
        }
        self.spares.keep()?;
        let right = self.cache(right.state.get()).remove(right);
        if right.pages() > more
            && let Some(record) = self.spares.take()
        {
            let rest = right.split_off(more, record);
            self.list_again(rest);
        }
        let (zeroed, was_zeroed) = (right.zeroed.get(), extent.zeroed.get());
        self.counts.active += right.pages();
        let record = merge(extent, right);
        extent.zeroed.set(was_zeroed);
        self.spares.put(record);
        Some(zeroed)
    }

    pub(super) fn cache(&mut self, state: ExtentState) -> &mut ExtentCache {
        match state {
            ExtentState::Dirty => &mut self.dirty,
            ExtentState::Muzzy => &mut self.muzzy,
            _ => &mut self.retained,
        }
    }

    pub(super) fn take(
        &mut self,
        state: ExtentState,
        pages: usize,
        align: usize,
        most: usize,
    ) -> Option<InHand> {
        let extent = self.cache(state).fit(pages, align, most)?;
        let run = self.cache(state).remove(extent);
        self.cut(run, pages, align)
    }

    /// Puts a run in the list that it was taken from. It is not merged with its neighbours.
    pub(super) fn list_again(&mut self, run: InHand) {
        self.cache(run.from()).insert(run);
    }

    /// Cuts the aligned part out of a run, and lists again what is left over. `None`: it does not
    /// fit, or there is no record; all of the run is listed again.
    pub(super) fn cut(&mut self, run: InHand, pages: usize, align: usize) -> Option<InHand> {
        let Some(begin) = run.fit(pages, align).filter(|_| self.spares.suffice_for_cut()) else {
            self.list_again(run);
            return None;
        };
        let lead = (begin - run.base()) >> LG_PAGE;
        let mut run = run;
        if lead > 0
            && let Some(record) = self.spares.take()
        {
            let rest = run.split_off(lead, record);
            self.list_again(run);
            run = rest;
        }
        if run.pages() > pages
            && let Some(record) = self.spares.take()
        {
            let rest = run.split_off(pages, record);
            self.list_again(rest);
        }
        Some(run)
    }

    /// Asks the provider for a new chunk and cuts the run out of it.
    pub(super) fn reserve(&mut self, pages: usize, align: usize) -> Option<InHand> {
        let is_long = !options::current().retain && pages >= FIRST_CHUNK;
        // What is not to stay is not taken in advance either.
        if align > CHUNK_ALIGN || is_long {
            return self.reserve_exactly(pages, align);
        }
        let least = page_class_pages(page_class_ceil(pages));
        let whole = self.next_chunk.next_multiple_of(FIRST_CHUNK);
        let chunk = whole.min(self.grow_limit).max(least);
        let run = match self.reserve_exactly(chunk, CHUNK_ALIGN) {
            Some(run) => {
                let grown = page_class_pages(page_class_ceil(self.next_chunk + 1));
                let most = if options::current().retain { LAST_CHUNK } else { FIRST_CHUNK };
                self.next_chunk = grown.min(most).min(self.grow_limit.max(1));
                run
            }
            // No room for a generous chunk: what is needed and no more.
            None => self.reserve_exactly(pages, align.max(PAGE))?,
        };
        self.cut(run, pages, align)
    }

    fn reserve_exactly(&mut self, pages: usize, align: usize) -> Option<InHand> {
        let extent = self.spares.take()?;
        let run = self.reserve_into(extent, pages, align);
        if run.is_none() {
            self.spares.put(extent);
        }
        run
    }

    /// Reserves a run that `extent` becomes the record of. `None`: there are no addresses.
    fn reserve_into(
        &mut self,
        extent: &'static Extent,
        pages: usize,
        align: usize,
    ) -> Option<InHand> {
        let bytes = pages << LG_PAGE;
        let got = self.provider.reserve_by(self.dss, bytes, align)?;
        let base = got.base.as_ptr().expose_provenance();
        if !page_map::cover(base, bytes) {
            // SAFETY: just reserved, and nobody knows it. If it is refused it stays, unused.
            if !unsafe { self.provider.release(got.base, bytes) } {
                self.counts.abandoned += bytes >> LG_PAGE;
            }
            return None;
        }
        thp::advise_new(self.provider, got.base, bytes);
        extent.set_range(base, pages);
        page_map::clear_graves(extent);
        Some(self.hold_new(extent, got.zeroed))
    }

    /// Takes hold of a run of new addresses whose record has its range.
    pub(super) fn hold_new(&mut self, extent: &'static Extent, zeroed: bool) -> InHand {
        let run = InHand::hold(extent, ExtentState::Retained);
        extent.zeroed.set(zeroed);
        extent.head.set(true);
        page_map::set_ends(extent);
        self.counts.mapped += extent.pages();
        run
    }

    /// Files a run, made one with free neighbours in the same state.
    pub(super) fn file(&mut self, run: InHand, state: ExtentState) {
        let mut run = run;
        // Hooks are asked before runs are made one, and not here.
        let merges = !self.is_hooked();
        if let Some(left) = left_neighbour(&run, state).filter(|_| merges) {
            let left = self.cache(state).remove(left);
            let record = left.append(run);
            self.spares.put(record);
            run = left;
        }
        if let Some(right) = right_neighbour(&run, state).filter(|_| merges) {
            let right = self.cache(state).remove(right);
            let record = run.append(right);
            self.spares.put(record);
        }
        self.cache(state).insert(run);
    }

    /// Judges itself.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.dirty.check();
        self.muzzy.check();
        self.retained.check();
        let counts = self.counts();
        assert_eq!(counts.sum(), counts.mapped);
    }
}

#[cfg(test)]
#[path = "page_allocator_test.rs"]
mod tests;
