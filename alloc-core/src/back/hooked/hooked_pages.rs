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
//! neighbour: see [`crate::back::runs::in_hand`]. `FreeRuns::away` are the pages that are taken,
//! being given back or ready; `serving` are those who may ask for memory. An arena ends when both
//! are 0.

use super::hooks::Hooks;
use super::wants::{Want, Wants};
use crate::back::aging::limit::Bounds;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::InHand;
use crate::back::runs::in_use::InUse;
use crate::back::runs::neighbours::right_neighbour;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::Reserved;

/// Of so many runs of each state neighbours are looked for.
const LOOKED_AT: usize = 1024;
/// Runs that may be ready at a time.
const READY: usize = 8;

/// What an arena with hooks has ready, and what it lacks. Under the lock of its pages.
pub(in crate::back) struct Hooked {
    hooks: &'static Hooks,
    ready: [Option<&'static Extent>; READY],
    wants: Wants,
    /// Threads that make runs ready now.
    serving: usize,
}

impl Hooked {
    /// Nothing is ready, and nothing is lacked.
    pub(in crate::back) fn new(hooks: &'static Hooks) -> Hooked {
        Hooked { hooks, ready: [None; READY], wants: Wants::new(), serving: 0 }
    }

    /// The functions of the program.
    pub(in crate::back) fn hooks(&self) -> &'static Hooks {
        self.hooks
    }
}

/// The pages of an arena, as its hooks see them. Without hooks nothing is ready or lacked.
pub(crate) struct HookedPages<'a> {
    pub(in crate::back) hooked: Option<&'a mut Hooked>,
    pub(in crate::back) runs: &'a mut FreeRuns,
    pub(in crate::back) bounds: &'a mut Bounds,
    pub(in crate::back) in_use: &'a mut InUse,
}

/// Whether two neighbours can be one once both have memory.
fn is_alike(run: &Extent, right: &Extent) -> bool {
    right.mapping() == run.mapping()
        || (run.mapping() == Mapping::Ordinary && !right.is_committed())
}

impl HookedPages<'_> {
    // --- what threads lack ---

    /// What the calling thread lacked here, once. It makes that ready; until
    /// [`HookedPages::end_serving`] the arena does not end.
    pub(crate) fn begin_serving(&mut self) -> Option<Want> {
        let hooked = self.hooked.as_mut()?;
        let want = hooked.wants.take()?;
        hooked.serving += 1;
        Some(want)
    }

    /// Ends what [`HookedPages::begin_serving`] began.
    pub(crate) fn end_serving(&mut self) {
        if let Some(hooked) = self.hooked.as_mut() {
            hooked.serving = hooked.serving.saturating_sub(1);
        }
    }

    /// Nobody waits for anything any more.
    pub(crate) fn forget_wants(&mut self) {
        if let Some(hooked) = self.hooked.as_mut() {
            hooked.wants.forget();
        }
    }

    /// Whether nobody has a run of this arena in hand, or is about to.
    pub(crate) fn is_at_rest(&self) -> bool {
        let serving = self.hooked.as_ref().map_or(0, |hooked| hooked.serving);
        self.runs.away() == 0 && serving == 0
    }

    /// In a forked child: what other threads had taken is never filed; its addresses are lost.
    pub(crate) fn abandon_taken(&mut self) {
        self.forget_wants();
        let Some(hooked) = self.hooked.as_mut() else { return };
        hooked.serving = 0;
        let ready = hooked.ready.iter().flatten().map(|run| run.pages()).sum();
        self.runs.abandon_away(ready);
    }

    // --- runs that are ready ---

    /// A run that needs no hook to be called. `None`: there is none; if `noted`, that is noted.
    pub(in crate::back) fn take_ready(
        &mut self,
        pages: usize,
        align: usize,
        noted: bool,
    ) -> Option<InHand> {
        let fits = |run: &Extent| run.pages() == pages && run.base().is_multiple_of(align);
        for state in [ExtentState::Dirty, ExtentState::Muzzy] {
            if let Some(run) = self.runs.fit(state, pages, align).filter(|run| fits(run)) {
                return Some(self.runs.remove(run));
            }
        }
        let hooked = self.hooked.as_mut()?;
        let found = hooked.ready.iter_mut().find(|slot| slot.is_some_and(&fits));
        if let Some(run) = found.and_then(Option::take) {
            self.runs.note_back(run);
            return Some(InHand::hold(run, ExtentState::Dirty));
        }
        if noted && self.bounds.admits(self.runs.held(), pages) {
            hooked.wants.note(Want { pages, align });
        }
        None
    }

    /// Files the runs that wait to be used: nobody came for them.
    pub(crate) fn file_ready(&mut self) {
        for slot in 0..READY {
            let ready = self.hooked.as_mut().and_then(|hooked| hooked.ready.get_mut(slot)?.take());
            if let Some(run) = ready {
                self.runs.note_back(run);
                self.runs.file(InHand::hold(run, ExtentState::Dirty), ExtentState::Dirty);
            }
        }
    }

    /// Makes a run ready.
    pub(crate) fn make_ready(&mut self, taken: InHand) {
        let is_full = |hooked: &&mut Hooked| hooked.ready.iter().all(Option::is_some);
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

    // --- free runs ---

    /// Takes a free run that a want fits in out of its list; with `exact`, only one of its length.
    pub(crate) fn take_for(&mut self, want: Want, exact: bool) -> Option<InHand> {
        self.runs.keep_records()?;
        let run = ExtentState::FREE.into_iter().find_map(|state| {
            let run = self.runs.fit(state, want.pages, want.align)?;
            let fits = run.pages() == want.pages && run.base().is_multiple_of(want.align);
            (fits || !exact).then_some(run)
        })?;
        Some(self.take_out(run))
    }

    fn take_out(&mut self, run: &'static Extent) -> InHand {
        let taken = self.runs.remove(run);
        self.runs.send_away(taken)
    }

    /// Puts a run back as it is.
    pub(crate) fn put_back(&mut self, taken: InHand) {
        self.runs.note_back(&taken);
        self.runs.list_again(taken);
    }

    /// Takes the oldest run without memory out of its list.
    pub(crate) fn take_retained(&mut self) -> Option<InHand> {
        let run = self.runs.oldest(ExtentState::Retained)?;
        Some(self.take_out(run))
    }

    /// Takes a certain run of `pages` pages out of the list of free ones, if it is there. It may
    /// have been away meanwhile, or its record may stand for another run of that length: what is in
    /// the list is free, whichever it is.
    pub(crate) fn take_run(&mut self, run: &'static Extent, pages: usize) -> Option<InHand> {
        let is_there = run.state.get() == ExtentState::Retained && run.pages() == pages;
        is_there.then(|| self.take_out(run))
    }

    /// Two free neighbours in one state, in nobody's list any more.
    pub(crate) fn take_neighbours(&mut self) -> Option<(InHand, InHand)> {
        let (left, right) = ExtentState::FREE.into_iter().find_map(|state| {
            let by_age = core::iter::successors(self.runs.oldest(state), |run| run.younger.get());
            by_age.take(LOOKED_AT).find_map(|run| Some((run, right_neighbour(run, state)?)))
        })?;
        Some((self.take_out(left), self.take_out(right)))
    }

    /// Files two neighbours, made one if `merged`.
    pub(crate) fn put_neighbours(&mut self, left: InHand, right: InHand, merged: bool) {
        if merged {
            self.runs.append(&left, right);
            self.put_back(left);
        } else {
            self.put_back(left);
            self.put_back(right);
        }
    }

    /// Takes the free run behind an active one out of its list, if it is `more` pages long.
    pub(crate) fn take_behind(&mut self, run: &'static Extent, more: usize) -> Option<InHand> {
        self.runs.keep_records()?;
        let right = page_map::lookup(run.end()).extent()?;
        let state = right.state.get();
        let free = right.arena() == run.arena() && ExtentState::FREE.contains(&state);
        // What is not free is another's, and may change at this moment.
        let ours = free && !right.head.get() && right.base() == run.end();
        if !ours || !is_alike(run, right) || right.pages() < more {
            return None;
        }
        let new = state == ExtentState::Retained;
        if new && !self.bounds.admits(self.runs.held(), more) {
            return None;
        }
        Some(self.take_out(right))
    }

    /// Makes a run part of the active one before it. Returns whether it reads zero.
    pub(crate) fn append(&mut self, run: &'static Extent, taken: InHand) -> bool {
        self.runs.note_back(&taken);
        self.in_use.pages += taken.pages();
        self.runs.append_to_active(run, taken)
    }

    // --- cutting ---

    /// A record for the second part of a run, should hooks let it be cut.
    pub(crate) fn record_for_cut(&mut self) -> Option<&'static Extent> {
        self.runs.keep_records()?;
        self.runs.take_record()
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

    /// Takes back what [`HookedPages::record_for_cut`] returned: hooks refused.
    pub(crate) fn keep_record(&mut self, rest: &'static Extent) {
        self.runs.put_record(rest);
    }

    // --- new memory ---

    /// How many pages to ask for at a time where `pages` are wanted.
    pub(crate) fn next_chunk(&mut self, pages: usize) -> usize {
        self.runs.source().growth().chunk(pages, false)
    }

    /// Notes that so many were given: the next time it will be more.
    pub(crate) fn note_chunk(&mut self) {
        self.runs.source().growth().note(true);
    }

    /// Takes new memory in as a free run that is in no list. `None`: no memory for records.
    pub(crate) fn take_in(&mut self, got: &Reserved, pages: usize) -> Option<InHand> {
        let run = self.runs.take_in(got, pages)?;
        Some(self.runs.send_away(run))
    }

    /// Takes a run whose addresses have gone back out of the books.
    pub(crate) fn strike_off(&mut self, run: InHand) {
        self.runs.note_back(&run);
        self.runs.forget(run);
        self.bounds.report(self.runs.held());
    }
}
