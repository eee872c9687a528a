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
//!
//! Who may touch a run, and ask hooks about it ([`super::hook_calls`]):
//!
//! ```text
//!   a run is     state       page map   without the lock          under the lock
//!   in use       Active      ends, or   its block's owner may     nobody
//!                            all pages  ask to cut it, or to
//!                                       add the taken one behind
//!   in a list    Dirty,      ends       nobody                    who takes it out: into a `Taken`
//!                Muzzy,                                           or a purge batch
//!                Retained
//!   taken        InHand      ends       its one holder may ask    its holder: puts it back, cuts,
//!                                       anything                  merges, hands over, strikes off
//!   given back   InHand      nowhere    its one holder: when the  its holder: strikes it off, or
//!                                       hook returns, others may  files it where it was refused
//!                                       have the addresses
//!   ready        InHand      ends       nobody                    an allocation of its length, or
//!                                                                 who files the ready ones
//!   asked for    (no record) nowhere    who asked                 nobody
//! ```
//! So two hooks never run for one run at a time, and the books that hooks keep say what ours do
//! when none is under way: a cut or a merger that they granted is done, without fail, by the same
//! holder (records for it are taken before they are asked). A run in hand passes for no free
//! neighbour: see [`super::in_hand`]. `counts.purging` are the pages that are taken, being given
//! back or ready; `serving` are those who may ask for memory. An arena ends when both are 0.

use super::extent::{Extent, ExtentState};
use super::hooks::Hooks;
use super::in_hand::{InHand, merge};
use super::mapping::Mapping;
use super::neighbours::right_neighbour;
use super::page_allocator::{LAST_CHUNK, PageAllocator};
use super::page_map;
use super::page_provider::Reserved;
use super::provider::system::system;
use super::wants::{Want, Wants};
use crate::ground::size_class::{page_class_ceil, page_class_pages};
use crate::ground::units::LG_PAGE;

/// Of so many runs of each state neighbours are looked for.
const LOOKED_AT: usize = 1024;
/// Runs that may be ready at a time.
const READY: usize = 8;

/// What an arena with hooks has ready, and what it lacks. Under the lock of its pages.
pub(crate) struct Hooked {
    pub(super) hooks: &'static Hooks,
    ready: [Option<&'static Extent>; READY],
    pub(super) wants: Wants,
    /// Threads that make runs ready now.
    pub(super) serving: usize,
}

/// Whether two neighbours can be one once both have memory.
fn is_alike(run: &Extent, right: &Extent) -> bool {
    right.mapping() == run.mapping()
        || (run.mapping() == Mapping::Ordinary && !right.is_committed())
}

impl PageAllocator {
    /// Takes pages by hooks from now on.
    pub(crate) fn hook(&mut self, hooks: &'static Hooks) {
        if self.hooked.is_none() {
            self.file_rest();
            let ready = [None; READY];
            self.hooked = Some(Hooked { hooks, ready, wants: Wants::new(), serving: 0 });
            self.provider = hooks;
        }
    }

    /// Forgets the hooks: the arena is empty.
    pub(super) fn unhook(&mut self) {
        self.forget_wants();
        if self.hooked.take().is_some() {
            self.provider = system();
        }
    }

    /// Whether its pages come by hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.is_some()
    }

    /// A run that needs no hook to be called. `None`: there is none; if `noted`, that is noted.
    pub(super) fn take_ready(&mut self, pages: usize, align: usize, noted: bool) -> Option<InHand> {
        let fits = |run: &Extent| run.pages() == pages && run.base().is_multiple_of(align);
        for state in [ExtentState::Dirty, ExtentState::Muzzy] {
            if let Some(run) =
                self.cache(state).fit(pages, align, usize::MAX).filter(|run| fits(run))
            {
                return Some(self.cache(state).remove(run));
            }
        }
        let hooked = self.hooked.as_mut()?;
        let found = hooked.ready.iter_mut().find(|slot| slot.is_some_and(&fits));
        if let Some(run) = found.and_then(Option::take) {
            self.counts.purging -= run.pages();
            return Some(InHand::hold(run, ExtentState::Dirty));
        }
        if !noted || !self.admits(pages) {
            return None;
        }
        self.hooked.as_mut()?.wants.note(Want { pages, align });
        None
    }

    /// Files the runs that wait to be used: nobody came for them.
    pub(crate) fn file_ready(&mut self) {
        for slot in 0..READY {
            let ready = self.hooked.as_mut().and_then(|hooked| hooked.ready.get_mut(slot)?.take());
            if let Some(run) = ready {
                self.counts.purging -= run.pages();
                self.file(InHand::hold(run, ExtentState::Dirty), ExtentState::Dirty);
            }
        }
    }

    /// In a forked child: what other threads had taken is never filed; its addresses are lost.
    pub(crate) fn abandon_taken(&mut self) {
        self.forget_wants();
        let Some(hooked) = self.hooked.as_mut() else { return };
        hooked.serving = 0;
        let ready: usize = hooked.ready.iter().flatten().map(|run| run.pages()).sum();
        let lost = core::mem::replace(&mut self.counts.purging, ready) - ready;
        self.counts.mapped -= lost;
        self.counts.abandoned += lost;
    }

    /// Takes a free run that a want fits in out of its list; with `exact`, only one of its length.
    pub(crate) fn take_for(&mut self, want: Want, exact: bool) -> Option<InHand> {
        self.spares.keep()?;
        let states = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];
        let (run, state) = states.into_iter().find_map(|state| {
            let run = self.cache(state).fit(want.pages, want.align, usize::MAX)?;
            let fits = run.pages() == want.pages && run.base().is_multiple_of(want.align);
            (fits || !exact).then_some((run, state))
        })?;
        Some(self.take_out(run, state))
    }

    fn take_out(&mut self, run: &'static Extent, state: ExtentState) -> InHand {
        let taken = self.cache(state).remove(run);
        self.counts.purging += taken.pages();
        taken
    }

    /// Puts a run back as it is.
    pub(crate) fn put_back(&mut self, taken: InHand) {
        self.counts.purging -= taken.pages();
        self.list_again(taken);
    }

    /// A record for the second part of a run, should hooks let it be cut.
    pub(crate) fn record_for_cut(&mut self) -> Option<&'static Extent> {
        self.spares.keep()?;
        self.spares.take()
    }

    /// Cuts a run after `pages` pages, as hooks have; `rest` becomes the record of the second part.
    pub(crate) fn cut_taken(
        &mut self,
        taken: InHand,
        pages: usize,
        rest: &'static Extent,
    ) -> (InHand, InHand) {
        let rest = taken.split_off(pages, rest);
        (taken, rest)
    }

    /// Takes back what [`PageAllocator::record_for_cut`] answered: hooks refused.
    pub(crate) fn keep_record(&mut self, rest: &'static Extent) {
        self.spares.put(rest);
    }

    /// Makes a run ready.
    pub(crate) fn make_ready(&mut self, taken: InHand) {
        let is_full = |hooked: &Hooked| hooked.ready.iter().all(Option::is_some);
        if self.hooked.as_ref().is_some_and(is_full) {
            // Filed as dirty they are found as well, by who wants just that length.
            self.file_ready();
        }
        let ready = self.hooked.as_mut().map(|hooked| hooked.ready.iter_mut());
        match ready.and_then(|mut slots| slots.find(|slot| slot.is_none())) {
            Some(slot) => *slot = Some(taken.set_aside()),
            // The hooks are gone.
            None => self.put_back(taken),
        }
    }

    /// Files new memory as a free run that is in nobody's list. `None`: no memory for records.
    pub(crate) fn take_in(&mut self, got: &Reserved, pages: usize) -> Option<InHand> {
        self.spares.keep()?;
        let base = got.base.as_ptr().expose_provenance();
        if !page_map::cover(base, pages << LG_PAGE) {
            return None;
        }
        let record = self.spares.take()?;
        record.set_range(base, pages);
        page_map::clear_graves(record);
        self.counts.purging += pages;
        Some(self.hold_new(record, got.zeroed))
    }

    /// Takes the oldest run without memory out of its list.
    pub(crate) fn take_retained(&mut self) -> Option<InHand> {
        let run = self.cache(ExtentState::Retained).oldest()?;
        Some(self.take_out(run, ExtentState::Retained))
    }

    /// Takes a certain run of `pages` pages out of the list of free ones, if it is there. It may
    /// have been away meanwhile, or its record may stand for another run of that length: what is in
    /// the list is free, whichever it is.
    pub(crate) fn take_run(&mut self, run: &'static Extent, pages: usize) -> Option<InHand> {
        let is_there = run.state.get() == ExtentState::Retained && run.pages() == pages;
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

    /// Two free neighbours in one state, in nobody's list any more.
    pub(crate) fn take_neighbours(&mut self) -> Option<(InHand, InHand)> {
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
    pub(crate) fn put_neighbours(&mut self, left: InHand, right: InHand, merged: bool) {
        if merged {
            let record = left.append(right);
            self.spares.put(record);
            self.put_back(left);
        } else {
            self.put_back(left);
            self.put_back(right);
        }
    }

    /// Takes the free run behind an active one out of its list, if it is `more` pages long.
    pub(crate) fn take_behind(&mut self, run: &'static Extent, more: usize) -> Option<InHand> {
        self.spares.keep()?;
        let states = [ExtentState::Dirty, ExtentState::Muzzy, ExtentState::Retained];
        let right = states
            .into_iter()
            .find_map(|state| {
                let right = page_map::lookup(run.end()).extent()?;
                let free = right.arena() == run.arena() && right.state.get() == state;
                // What is not free is another's, and may change at this moment.
                let ours = free && !right.head.get() && right.base() == run.end();
                (ours && is_alike(run, right)).then_some((right, state))
            })
            .filter(|(right, _)| right.pages() >= more);
        let new = right.is_some_and(|(_, state)| state == ExtentState::Retained);
        if new && !self.admits(more) {
            return None;
        }
        right.map(|(right, state)| self.take_out(right, state))
    }

    /// Makes a run part of the active one before it. Answers whether it reads zero.
    pub(crate) fn append(&mut self, run: &'static Extent, taken: InHand) -> bool {
        self.counts.purging -= taken.pages();
        self.counts.active += taken.pages();
        let (zeroed, was_zeroed) = (taken.zeroed.get(), run.zeroed.get());
        let record = merge(run, taken);
        run.zeroed.set(was_zeroed);
        self.spares.put(record);
        zeroed
    }
}
