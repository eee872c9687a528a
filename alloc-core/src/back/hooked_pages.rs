//! The pages of an arena with extent hooks: everything that calls a hook happens under no lock.
//!
//! ```text
//!   allocate   under the lock: a run that is ready, or one that fits exactly; else the want is
//!              noted, and the allocation fails
//!   serve      under no lock, when the caller has let go of all: take a free run, commit it, cut
//!              it, or ask for memory; file the parts and the run that is ready; then try again
//! ```
//! Freed runs are filed as they are, and made one with their neighbours only when nothing fits. A
//! run that hooks are at work on is in nobody's list, and nobody looks at it.

use super::extent::{Extent, ExtentState};
use super::hooks::Hooks;
use super::moves::{self, DECOMMITTED};
use super::page_allocator::{LAST_CHUNK, PageAllocator};
use super::page_map;
use super::page_provider::Reserved;
use super::split_merge::{merge, right_neighbour, split};
use crate::ground::size_class::{page_class_ceil, page_class_pages};
use crate::ground::units::LG_PAGE;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Arenas that lack a run.
static WANTS: AtomicU32 = AtomicU32::new(0);

/// Of so many runs of each state neighbours are looked for.
const LOOKED_AT: usize = 1024;
/// Runs that may be ready at a time.
const READY: usize = 8;

/// A run that an allocation lacked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) pages: usize,
    pub(crate) align: usize,
}

/// What an arena with hooks has ready, and what it lacks. Under the lock of its pages.
pub(crate) struct Hooked {
    pub(super) hooks: &'static Hooks,
    ready: [Option<&'static Extent>; READY],
    want: Option<Want>,
}

/// A free run in nobody's list, and where it was.
pub(crate) struct Taken {
    pub(crate) run: &'static Extent,
    state: ExtentState,
}

/// Whether any arena lacks a run.
#[inline]
pub(crate) fn is_wanting() -> bool {
    WANTS.load(Relaxed) != 0
}

/// Whether a run has no memory until it is committed.
fn is_committed(run: &Extent) -> bool {
    run.mapping() != DECOMMITTED
}

/// Whether two neighbours can be one once both have memory.
fn is_alike(run: &Extent, right: &Extent) -> bool {
    right.mapping() == run.mapping() || (run.mapping() == 0 && !is_committed(right))
}

impl PageAllocator {
    /// Takes pages by hooks from now on.
    pub(crate) fn hook(&mut self, hooks: &'static Hooks) {
        if self.hooked.is_none() {
            self.file_rest();
            self.hooked = Some(Hooked { hooks, ready: [None; READY], want: None });
            self.provider = hooks;
        }
    }

    /// Forgets the hooks: the arena is empty.
    pub(super) fn unhook(&mut self) {
        self.take_want();
        if self.hooked.take().is_some() {
            self.provider = super::page_provider::system();
        }
    }

    /// Whether its pages come by hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.is_some()
    }

    /// A run that needs no hook to be called. `None`: there is none; if `noted`, that is noted.
    pub(super) fn take_ready(
        &mut self,
        pages: usize,
        align: usize,
        noted: bool,
    ) -> Option<&'static Extent> {
        let fits = |run: &Extent| run.pages() == pages && run.base().is_multiple_of(align);
        for state in [ExtentState::Dirty, ExtentState::Muzzy] {
            if let Some(run) =
                self.cache(state).fit(pages, align, usize::MAX).filter(|run| fits(run))
            {
                self.cache(state).remove(run);
                return Some(run);
            }
        }
        let hooked = self.hooked.as_mut()?;
        let found = hooked.ready.iter_mut().find(|slot| slot.is_some_and(&fits));
        if let Some(run) = found.and_then(Option::take) {
            self.counts.purging -= run.pages();
            return Some(run);
        }
        if !noted || !self.admits(pages) {
            return None;
        }
        let hooked = self.hooked.as_mut()?;
        if hooked.want.replace(Want { pages, align }).is_none() {
            WANTS.fetch_add(1, Relaxed);
        }
        None
    }

    /// What was noted last, once.
    pub(crate) fn take_want(&mut self) -> Option<Want> {
        let want = self.hooked.as_mut()?.want.take()?;
        WANTS.fetch_sub(1, Relaxed);
        Some(want)
    }

    /// Files the runs that wait to be used: nobody came for them.
    pub(crate) fn file_ready(&mut self) {
        for slot in 0..READY {
            let ready = self.hooked.as_mut().and_then(|hooked| hooked.ready.get_mut(slot)?.take());
            if let Some(run) = ready {
                self.counts.purging -= run.pages();
                self.file(run, ExtentState::Dirty);
            }
        }
    }

    /// Takes a free run that a want fits in out of its list; with `exact`, only one of its length.
    pub(crate) fn take_for(&mut self, want: Want, exact: bool) -> Option<Taken> {
        self.keep_spares()?;
        let states = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];
        let (run, state) = states.into_iter().find_map(|state| {
            let run = self.cache(state).fit(want.pages, want.align, usize::MAX)?;
            let fits = run.pages() == want.pages && run.base().is_multiple_of(want.align);
            (fits || !exact).then_some((run, state))
        })?;
        Some(self.take_out(run, state))
    }

    fn take_out(&mut self, run: &'static Extent, state: ExtentState) -> Taken {
        self.cache(state).remove(run);
        run.state.set(ExtentState::Purging);
        self.counts.purging += run.pages();
        Taken { run, state }
    }

    /// Puts a run back as it is.
    pub(crate) fn put_back(&mut self, taken: Taken) {
        self.counts.purging -= taken.run.pages();
        self.cache(taken.state).insert(taken.run);
    }

    /// A record for the second part of a run, should hooks let it be cut.
    pub(crate) fn record_for_cut(&mut self) -> Option<&'static Extent> {
        self.keep_spares()?;
        self.spare_record()
    }

    /// Cuts a run after `pages` pages, as hooks have; `rest` becomes the record of the second part.
    pub(crate) fn cut_taken(
        &mut self,
        taken: Taken,
        pages: usize,
        rest: &'static Extent,
    ) -> (Taken, Taken) {
        split(taken.run, pages, rest);
        let state = taken.state;
        (taken, Taken { run: rest, state })
    }

    /// Takes back what [`PageAllocator::record_for_cut`] answered: hooks refused.
    pub(crate) fn keep_record(&mut self, rest: &'static Extent) {
        self.recycle(rest);
    }

    /// Makes a run ready.
    pub(crate) fn make_ready(&mut self, taken: Taken) {
        let Some(hooked) = self.hooked.as_mut() else { return };
        match hooked.ready.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(taken.run),
            None => {
                self.file_ready();
                self.put_back(taken);
            }
        }
    }

    /// Files new memory as a free run that is in nobody's list. `None`: no memory for records.
    pub(crate) fn take_in(&mut self, got: &Reserved, pages: usize) -> Option<Taken> {
        self.keep_spares()?;
        let base = got.base.as_ptr().expose_provenance();
        if !page_map::cover(base, pages << LG_PAGE) {
            return None;
        }
        let run = self.spare_record()?;
        run.set_range(base, pages);
        run.state.set(ExtentState::Purging);
        run.zeroed.set(got.zeroed);
        run.head.set(true);
        page_map::clear_graves(run);
        page_map::set_ends(run);
        self.counts.mapped += pages;
        self.counts.purging += pages;
        Some(Taken { run, state: ExtentState::Retained })
    }

    /// Takes the oldest run without memory out of its list.
    pub(crate) fn take_retained(&mut self) -> Option<Taken> {
        let run = self.cache(ExtentState::Retained).oldest()?;
        Some(self.take_out(run, ExtentState::Retained))
    }

    /// Takes a certain run out of the list of free ones, if it is there as it was.
    pub(crate) fn take_run(&mut self, run: &'static Extent, whole: Want) -> Option<Taken> {
        let is_there = run.state.get() == ExtentState::Retained && run.pages() == whole.pages;
        is_there.then(|| self.take_out(run, ExtentState::Retained))
    }

    /// How many pages to ask for at a time where `pages` are wanted.
    pub(crate) fn next_chunk(&self, pages: usize) -> usize {
        let chunk = self.next_chunk.min(self.grow_limit);
        chunk.max(page_class_pages(page_class_ceil(pages)))
    }

    /// Notes that so many were given: the next time it will be more.
    pub(crate) fn note_chunk(&mut self) {
        let grown = page_class_pages(page_class_ceil(self.next_chunk + 1));
        self.next_chunk = grown.min(LAST_CHUNK).min(self.grow_limit.max(1));
    }

    /// Strikes a run off the books that a hook has taken back.
    pub(crate) fn strike_off_taken(&mut self, taken: &Taken) {
        self.strike_off(taken.run);
    }

    /// Two free neighbours in one state, in nobody's list any more.
    pub(crate) fn take_neighbours(&mut self) -> Option<(Taken, Taken)> {
        for state in [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained] {
            let by_age =
                core::iter::successors(self.cache(state).oldest(), |run| run.younger.get());
            let pair = by_age.take(LOOKED_AT).find_map(|run| {
                let right = right_neighbour(run, state)?;
                Some((run, right))
            });
            if let Some((left, right)) = pair {
                return Some((self.take_out(left, state), self.take_out(right, state)));
            }
        }
        None
    }

    /// Files two neighbours, made one if `merged`.
    pub(crate) fn put_neighbours(&mut self, left: Taken, right: Taken, merged: bool) {
        if merged {
            let pages = right.run.pages();
            merge(left.run, right.run);
            self.recycle(right.run);
            self.counts.purging -= pages;
            self.counts.purging -= left.run.pages() - pages;
            self.cache(left.state).insert(left.run);
        } else {
            self.put_back(left);
            self.put_back(right);
        }
    }

    /// Takes the free run behind an active one out of its list, if it is `more` pages long.
    pub(crate) fn take_behind(&mut self, run: &'static Extent, more: usize) -> Option<Taken> {
        self.keep_spares()?;
        let states = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];
        let right = states
            .into_iter()
            .find_map(|state| {
                let right = page_map::lookup(run.end()).extent()?;
                let free = right.arena() == run.arena() && right.state.get() == state;
                let ours = free && !right.head.get() && right.base() == run.end();
                let alike = is_alike(run, right);
                (ours && alike).then_some((right, state))
            })
            .filter(|(right, _)| right.pages() >= more);
        right.map(|(right, state)| self.take_out(right, state))
    }

    /// Makes a run part of the active one before it. Answers whether it reads zero.
    pub(crate) fn append(&mut self, run: &'static Extent, taken: &Taken) -> bool {
        let right = taken.run;
        self.counts.purging -= right.pages();
        self.counts.active += right.pages();
        let (zeroed, was_zeroed) = (right.zeroed.get(), run.zeroed.get());
        merge(run, right);
        run.zeroed.set(was_zeroed);
        self.recycle(right);
        zeroed
    }
}

/// Gives a run memory that has none. Under no lock. `false`: refused.
pub(crate) fn commit(hooks: &Hooks, run: &'static Extent) -> bool {
    if is_committed(run) {
        return true;
    }
    let committed = hooks.commit(run.base_ptr(), run.bytes());
    if committed {
        moves::mark(run, 0);
        run.zeroed.set(true);
    }
    committed
}

/// Asks whether a run may be cut after `pages` pages. Under no lock. `false`: refused.
pub(crate) fn may_cut(hooks: &Hooks, run: &Extent, pages: usize) -> bool {
    hooks.split(run.base_ptr(), run.bytes(), pages << LG_PAGE, is_committed(run))
}

/// Asks whether two neighbours may be one. Under no lock. `false`: refused.
pub(crate) fn may_merge(hooks: &Hooks, left: &Extent, right: &Extent) -> bool {
    is_committed(left) == is_committed(right)
        && hooks.merge(left.base_ptr(), left.bytes(), right.bytes(), is_committed(left))
}

/// Asks whether a block may be lengthened by `more` pages behind it. Under no lock. `false`:
/// refused.
pub(crate) fn may_append(hooks: &Hooks, run: &Extent, more: usize) -> bool {
    hooks.merge(run.base_ptr(), run.bytes(), more << LG_PAGE, true)
}

/// Gives a free run back, as far as hooks let it: addresses, then memory for good, then memory,
/// then memory when the system likes. Under no lock. Answers what it is now, and whether it reads
/// zero.
pub(super) fn give_back(
    hooks: &Hooks,
    run: &'static Extent,
    from: ExtentState,
    lazily: bool,
) -> (ExtentState, bool) {
    let (base, size) = (run.base_ptr(), run.bytes());
    if lazily && hooks.purge_lazy(base, size) {
        return (ExtentState::Muzzy, false);
    }
    // It leaves the page map first: somebody else may be given the addresses at once.
    page_map::clear_ends(run);
    if hooks.dalloc(base, size, is_committed(run)) {
        return (ExtentState::Gone, false);
    }
    page_map::set_ends(run);
    if hooks.decommit(base, size) {
        moves::mark(run, DECOMMITTED);
        return (ExtentState::Retained, true);
    }
    if hooks.purge_forced(base, size) {
        return (ExtentState::Retained, true);
    }
    if from != ExtentState::Muzzy {
        hooks.purge_lazy(base, size);
    }
    (ExtentState::Retained, false)
}

/// Gives the addresses of a run back, whose arena is no more. Under no lock.
pub(crate) fn destroy(hooks: &Hooks, run: &'static Extent) {
    hooks.destroy(run.base_ptr(), run.bytes(), is_committed(run));
}

/// Gives a run that nobody wants back. Under no lock. `false`: refused.
pub(crate) fn dalloc(hooks: &Hooks, run: &'static Extent) -> bool {
    page_map::clear_ends(run);
    let gone = hooks.dalloc(run.base_ptr(), run.bytes(), is_committed(run));
    if !gone {
        page_map::set_ends(run);
    }
    gone
}

/// Asks for memory. Under no lock.
pub(crate) fn reserve(hooks: &Hooks, pages: usize, align: usize) -> Option<Reserved> {
    hooks.alloc(pages << LG_PAGE, align)
}

/// Gives memory back for which there is no record. Under no lock.
pub(crate) fn give_up(hooks: &Hooks, got: &Reserved, pages: usize) {
    hooks.dalloc(got.base.as_ptr(), pages << LG_PAGE, true);
}
