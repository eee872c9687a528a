//! The pages of an arena with extent hooks. Everything that calls a hook happens under no lock.
//!
//! ```text
//!   allocate   under the lock: a run that is ready, or one that fits exactly; else the request is
//!              noted, and the allocation fails
//!   serve      under no lock, when the caller holds none: take a free run, commit it, cut
//!              it, or ask for memory; file the parts and the run that is ready; then try again
//! ```
//! Freed runs are filed as they are, and merged with their neighbours only when nothing fits. A run
//! that hooks work on is in no list, and no other thread looks at it.
//!
//! The threads that may touch a run, and ask hooks about it ([`super::hook_calls`]):
//!
//! ```text
//!   a run is     state       page map   without the lock          under the lock
//!   in use       Active      ends, or   its block's owner may     no thread
//!                            all pages  ask to cut it, or to
//!                                       add the taken one behind
//!   in a list    Dirty,      ends       no thread                 the thread that takes it out, as
//!                Muzzy,                                           an `InHand` or in a purge batch
//!                Retained
//!   taken        InHand      ends       its one holder may ask    its holder puts it back, cuts,
//!                                       anything                  merges, hands over, strikes off
//!   given back   InHand      nowhere    its one holder. When the  its holder strikes it off, or
//!                                       hook returns, others may  files it if it was refused
//!                                       have the addresses
//!   ready        InHand      ends       no thread                 an allocation of its length, or
//!                                                                 a thread that files ready runs
//!   asked for    (no record) nowhere    the thread that asked     no thread
//! ```
//! So two hooks never run for one run at a time, and what hooks note agrees with the allocator's
//! records when no hook is running. A cut or a merger that hooks granted is always carried out by
//! the holder that asked, which takes the records for it before. A run in hand is no free
//! neighbour: see [`crate::back::runs::in_hand`]. `FreeRuns::away` counts the pages that are taken,
//! being given back or ready. `serving` counts the threads that may ask for memory. An arena ends
//! when both are 0.

use super::hook_requests::{HookRequest, HookRequests};
use super::hooks::Hooks;
use crate::back::aging::limit::Bounds;
use crate::back::map::extent::{Extent, ExtentState};
use crate::back::map::page_map;
use crate::back::placement::memory::{Memory, Request};
use crate::back::runs::access;
use crate::back::runs::free_runs::FreeRuns;
use crate::back::runs::in_hand::InHand;
use crate::back::runs::in_use::InUse;
use crate::back::runs::neighbours::right_neighbour;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::Reserved;

/// How many runs of each state are looked at for neighbours.
const LOOKED_AT: usize = 1024;
/// Runs that may be ready at a time.
const READY: usize = 8;

/// The ready runs and the requests of an arena with hooks. Guarded by the lock of its pages.
pub(in crate::back) struct Hooked {
    hooks: &'static Hooks,
    ready: [Option<&'static Extent>; READY],
    requests: HookRequests,
    /// Whether more memory is asked for than is wanted. Not once hooks have refused to cut it.
    asks_ahead: bool,
    /// The number of threads that make runs ready now.
    serving: usize,
}

impl Hooked {
    /// Creates a record without ready runs and requests.
    pub(in crate::back) fn new(hooks: &'static Hooks) -> Hooked {
        Hooked {
            hooks,
            ready: [None; READY],
            requests: HookRequests::new(),
            asks_ahead: true,
            serving: 0,
        }
    }

    /// The hooks, which are functions of the program.
    pub(in crate::back) fn hooks(&self) -> &'static Hooks {
        self.hooks
    }
}

/// The pages of an arena, as its hooks see them. Without hooks there are neither ready runs nor
/// requests.
pub(crate) struct HookedPages<'a> {
    pub(in crate::back) hooked: Option<&'a mut Hooked>,
    pub(in crate::back) runs: &'a mut FreeRuns,
    pub(in crate::back) bounds: &'a mut Bounds,
    pub(in crate::back) in_use: &'a mut InUse,
    /// The pages that have memory at low addresses.
    pub(in crate::back) low: usize,
}

/// Whether two neighbours can be merged once both have memory.
fn is_alike(run: &Extent, right: &Extent) -> bool {
    right.mapping() == run.mapping()
        || (run.mapping() == Mapping::Ordinary && !right.is_committed())
}

impl HookedPages<'_> {
    /// The pages of the arena that have memory.
    fn held(&self) -> usize {
        self.runs.held() + self.low - self.in_use.moving()
    }

    fn report(&mut self) {
        self.bounds.report(self.held());
    }

    // --- what threads lack ---

    /// Takes the request of the calling thread, which then makes such a run ready. The arena does
    /// not end before [`HookedPages::end_serving`] is called.
    pub(crate) fn begin_serving(&mut self) -> Option<HookRequest> {
        let hooked = self.hooked.as_mut()?;
        let request = hooked.requests.take()?;
        hooked.serving += 1;
        Some(request)
    }

    /// Ends what [`HookedPages::begin_serving`] began.
    pub(crate) fn end_serving(&mut self) {
        if let Some(hooked) = self.hooked.as_mut() {
            hooked.serving = hooked.serving.saturating_sub(1);
        }
    }

    /// Forgets the requests of all threads.
    pub(crate) fn forget_requests(&mut self) {
        if let Some(hooked) = self.hooked.as_mut() {
            hooked.requests.forget();
        }
    }

    /// Whether no thread has a run of this arena in hand, or is about to.
    pub(crate) fn is_at_rest(&self) -> bool {
        let serving = self.hooked.as_ref().map_or(0, |hooked| hooked.serving);
        self.runs.away() == 0 && serving == 0
    }

    /// In a forked child, gives up what other threads had taken. Its addresses are lost.
    pub(crate) fn abandon_taken(&mut self) {
        self.forget_requests();
        let Some(hooked) = self.hooked.as_mut() else { return };
        hooked.serving = 0;
        let ready = hooked.ready.iter().flatten().map(|run| run.pages()).sum();
        self.runs.abandon_away(ready);
        self.report();
    }

    // --- runs that are ready ---

    /// Takes a run that needs no hook. Without one, returns `None`, and notes the request unless
    /// it is for memory that is there.
    pub(in crate::back) fn take_ready(&mut self, request: Request) -> Option<InHand> {
        let Request { pages, align, memory } = request;
        let fits = |run: &Extent| run.pages() == pages && run.base().is_multiple_of(align);
        for state in [ExtentState::Dirty, ExtentState::Muzzy] {
            if let Some(run) = self.runs.fit(state, pages, align).filter(|run| fits(run)) {
                return Some(self.runs.remove(run));
            }
        }
        let held = self.held();
        let hooked = self.hooked.as_mut()?;
        let found = hooked.ready.iter_mut().find(|slot| slot.is_some_and(&fits));
        if let Some(run) = found.and_then(Option::take) {
            self.runs.note_back(run);
            self.report();
            return Some(InHand::hold(run, ExtentState::Dirty));
        }
        if memory != Memory::Resident && self.bounds.admits(held, pages) {
            hooked.requests.note(HookRequest { pages, align });
        }
        None
    }

    /// Files the ready runs, which no thread took.
    pub(crate) fn file_ready(&mut self) {
        for slot in 0..READY {
            let ready = self.hooked.as_mut().and_then(|hooked| hooked.ready.get_mut(slot)?.take());
            if let Some(run) = ready {
                self.runs.note_back(run);
                self.runs.file(InHand::hold(run, ExtentState::Dirty), ExtentState::Dirty);
            }
        }
        self.report();
    }

    /// Makes a run ready.
    pub(crate) fn make_ready(&mut self, taken: InHand) {
        let is_full = |hooked: &&mut Hooked| hooked.ready.iter().all(Option::is_some);
        if self.hooked.as_ref().is_some_and(is_full) {
            // As dirty runs they are found too, by requests for just their length.
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

    /// Opens all free runs that are closed, because hooks may read or write what they are told to
    /// purge. Those that the system refuses to open stay closed.
    pub(in crate::back) fn open_all(&self) {
        for state in ExtentState::FREE {
            let runs = core::iter::successors(self.runs.oldest(state), |run| run.younger.get());
            runs.for_each(|run| _ = access::open_if_closed(run));
        }
    }

    /// Takes a free run that a request fits in out of its list. With `exact`, only one of its
    /// length.
    pub(crate) fn take_for(&mut self, request: HookRequest, exact: bool) -> Option<InHand> {
        self.runs.keep_records()?;
        let run = ExtentState::FREE.into_iter().find_map(|state| {
            let run = self.runs.fit(state, request.pages, request.align)?;
            let fits = run.pages() == request.pages && run.base().is_multiple_of(request.align);
            (fits || !exact).then_some(run)
        })?;
        Some(self.take_out(run))
    }

    fn take_out(&mut self, run: &'static Extent) -> InHand {
        let taken = self.runs.remove(run);
        self.runs.send_away(taken)
    }

    /// Puts a run back into its list as it is.
    pub(crate) fn put_back(&mut self, taken: InHand) {
        self.runs.note_back(&taken);
        self.runs.list_again(taken);
        self.report();
    }

    /// Takes the oldest run without memory out of its list.
    pub(crate) fn take_retained(&mut self) -> Option<InHand> {
        let run = self.runs.oldest(ExtentState::Retained)?;
        Some(self.take_out(run))
    }

    /// Takes a certain run of `pages` pages out of the list of free ones, if it is there. It may
    /// have been away meanwhile, or its record may stand for another run of that length. Either way
    /// the run in the list is free.
    pub(crate) fn take_run(&mut self, run: &'static Extent, pages: usize) -> Option<InHand> {
        let is_there = run.state.get() == ExtentState::Retained && run.pages() == pages;
        is_there.then(|| self.take_out(run))
    }

    /// Takes two free neighbours in one state out of their list.
    pub(crate) fn take_neighbours(&mut self) -> Option<(InHand, InHand)> {
        let (left, right) = ExtentState::FREE.into_iter().find_map(|state| {
            let by_age = core::iter::successors(self.runs.oldest(state), |run| run.younger.get());
            by_age.take(LOOKED_AT).find_map(|run| Some((run, right_neighbour(run, state)?)))
        })?;
        Some((self.take_out(left), self.take_out(right)))
    }

    /// Files two neighbours, merged into one if `merged`.
    pub(crate) fn put_neighbours(&mut self, left: InHand, right: InHand, merged: bool) {
        if merged {
            self.runs.append(&left, right);
            self.put_back(left);
        } else {
            self.put_back(left);
            self.put_back(right);
        }
    }

    /// Takes the free run behind an active one out of its list, if it has at least `more` pages.
    pub(crate) fn take_behind(&mut self, run: &'static Extent, more: usize) -> Option<InHand> {
        self.runs.keep_records()?;
        let right = page_map::lookup(run.end()).extent()?;
        let state = right.state.get();
        let free = right.arena() == run.arena() && ExtentState::FREE.contains(&state);
        // A run that is not free belongs to another thread, and may change at this moment.
        let ours = free && !right.marks.is_head() && right.base() == run.end();
        if !ours || !is_alike(run, right) || right.pages() < more {
            return None;
        }
        let new = state == ExtentState::Retained;
        if new && !self.bounds.admits(self.held(), more) {
            return None;
        }
        Some(self.take_out(right))
    }

    /// Makes a run part of the active run before it. Returns whether the added part reads zero.
    pub(crate) fn append(&mut self, run: &'static Extent, taken: InHand) -> bool {
        self.runs.note_back(&taken);
        self.in_use.pages += taken.pages();
        let is_zero = self.runs.append_to_active(run, taken);
        self.report();
        is_zero
    }

    // --- cutting ---

    /// Takes a record for the second part of a run that hooks may let be cut.
    pub(crate) fn record_for_cut(&mut self) -> Option<&'static Extent> {
        self.runs.take_record()
    }

    /// Cuts a run after `pages` pages, as hooks allowed. `rest` becomes the second part's record.
    pub(crate) fn cut_taken(
        &mut self,
        taken: InHand,
        pages: usize,
        rest: &'static Extent,
    ) -> (InHand, InHand) {
        let rest = taken.split_off(pages, rest);
        (taken, rest)
    }

    /// Takes back the record of [`HookedPages::record_for_cut`], because hooks refused.
    pub(crate) fn keep_record(&mut self, rest: &'static Extent) {
        self.runs.put_record(rest);
    }

    // --- new memory ---

    /// How many pages to ask for at a time if `pages` are wanted.
    pub(crate) fn next_chunk(&mut self, pages: usize) -> usize {
        match self.hooked.as_ref().is_some_and(|hooked| hooked.asks_ahead) {
            true => self.runs.source().growth().chunk(pages, false),
            false => pages,
        }
    }

    /// Notes that hooks refused to cut a chunk. From now on no more is asked for than is wanted.
    pub(crate) fn note_uncut_chunk(&mut self) {
        if let Some(hooked) = self.hooked.as_mut() {
            hooked.asks_ahead = false;
        }
    }

    /// Notes that a chunk was given, so that the next one is longer.
    pub(crate) fn note_chunk(&mut self) {
        self.runs.source().growth().note(true);
    }

    /// Takes in new memory as a free run in no list. Returns `None` without memory for records.
    pub(crate) fn take_in(&mut self, got: &Reserved, pages: usize) -> Option<InHand> {
        let run = self.runs.take_in(got, pages)?;
        self.report();
        Some(self.runs.send_away(run))
    }

    /// Uncounts a run whose addresses have been given back.
    pub(crate) fn strike_off(&mut self, run: InHand) {
        self.runs.note_back(&run);
        self.runs.forget(run);
        self.report();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::page_provider::PageProvider;
    use crate::back::system::provider::fixed::keep;
    use crate::back::system::provider::mmap::Mmap;
    use crate::ground::units::PAGE;

    const RUN: usize = 4;

    fn hooked() -> PageAllocator {
        let mut pages = PageAllocator::for_test(&Mmap);
        pages.hook(keep(Box::new(Hooks::new(0))));
        pages
    }

    /// New memory of the system, as a hook would give it.
    fn new_run(pages: &mut PageAllocator, length: usize) -> InHand {
        let got = Mmap.reserve(length * PAGE, PAGE).unwrap();
        pages.hooks().take_in(&got, length).unwrap()
    }

    fn allocate(pages: &mut PageAllocator) -> Option<&'static Extent> {
        pages.allocate(RUN, PAGE, Memory::Any)
    }

    #[test]
    fn what_a_thread_lacks_is_noted_and_served_once() {
        let mut pages = hooked();
        assert!(pages.allocate(RUN, PAGE, Memory::Resident).is_none());
        assert_eq!(pages.hooks().begin_serving(), None, "only new memory is asked for");
        assert!(allocate(&mut pages).is_none());
        let wanted = HookRequest { pages: RUN, align: PAGE };
        assert_eq!(pages.hooks().begin_serving(), Some(wanted));
        assert_eq!(pages.hooks().begin_serving(), None);
        assert!(!pages.hooks().is_at_rest(), "a thread serves");
        let run = new_run(&mut pages, RUN);
        pages.hooks().make_ready(run);
        pages.hooks().end_serving();
        assert!(!pages.hooks().is_at_rest(), "a run is ready");
        let block = allocate(&mut pages).unwrap();
        assert!(pages.hooks().is_at_rest() && allocate(&mut pages).is_none());
        pages.check();
        // A freed run of just the length needs no hook.
        pages.free(block);
        assert!(allocate(&mut pages).is_some_and(|again| again.is(block)));
        pages.hooks().forget_requests();
    }

    #[test]
    fn pages_at_low_addresses_count_for_the_bounds_of_an_arena_with_hooks() {
        let _zone = crate::ground::low::tests::open();
        let mut pages = PageAllocator::for_test(&Mmap);
        let sample = pages.allocate(RUN, PAGE, Memory::Low).unwrap();
        pages.hook(keep(Box::new(Hooks::new(0))));
        let run = new_run(&mut pages, RUN);
        pages.hooks().make_ready(run);
        assert!(allocate(&mut pages).is_some());
        assert_eq!(pages.held(), 2 * RUN);
        pages.check();
        pages.free(sample);
    }

    #[test]
    fn ready_runs_that_are_too_many_are_filed_and_found() {
        let mut pages = hooked();
        for _ in 0..=READY {
            let run = new_run(&mut pages, RUN);
            pages.hooks().make_ready(run);
        }
        assert_eq!((pages.counts().dirty, pages.counts().purging), (READY * RUN, RUN));
        assert!((0..=READY).all(|_| allocate(&mut pages).is_some()));
        pages.check();
    }

    #[test]
    fn a_run_is_cut_merged_and_taken_behind_a_block() {
        let mut pages = hooked();
        let whole = new_run(&mut pages, 3 * RUN);
        let record = pages.hooks().record_for_cut().unwrap();
        let (front, back) = pages.hooks().cut_taken(whole, RUN, record);
        let rest = back.run();
        pages.hooks().make_ready(front);
        pages.hooks().put_back(back);
        let block = allocate(&mut pages).unwrap();
        assert!(block.end() == rest.base() && pages.hooks().take_behind(block, 3 * RUN).is_none());
        let behind = pages.hooks().take_behind(block, RUN).unwrap();
        assert!(behind.pages() == 2 * RUN && !pages.hooks().is_at_rest());
        pages.hooks().append(block, behind);
        assert_eq!((block.pages(), pages.counts().active), (3 * RUN, 3 * RUN));
        pages.check();
        let record = pages.hooks().record_for_cut().unwrap();
        pages.shrink_into(block, RUN, record);
        pages.free(block);
        // Freed runs are not merged before something lacks.
        assert!(
            pages.hooks().take_for(HookRequest { pages: 3 * RUN, align: PAGE }, false).is_none()
        );
        let (left, right) = pages.hooks().take_neighbours().unwrap();
        pages.hooks().put_neighbours(left, right, true);
        let all = pages.hooks().take_for(HookRequest { pages: RUN, align: PAGE }, false).unwrap();
        assert_eq!(all.pages(), 3 * RUN);
        pages.hooks().strike_off(all);
        assert_eq!(pages.counts().mapped, 0);
    }

    #[test]
    fn a_forked_child_gives_up_what_others_had_in_hand() {
        let mut pages = hooked();
        assert!(allocate(&mut pages).is_none());
        pages.hooks().begin_serving().unwrap();
        let (ready, lost) = (new_run(&mut pages, RUN), new_run(&mut pages, RUN));
        pages.hooks().make_ready(ready);
        lost.set_aside();
        pages.hooks().abandon_taken();
        assert_eq!(pages.counts().abandoned, RUN);
        assert!(allocate(&mut pages).is_some() && pages.hooks().is_at_rest());
    }
}
