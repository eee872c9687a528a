//! Purging: which runs go, and the system's part of it, outside all locks. Runs on their way are in
//! nobody's list.

use super::aging::page_aging::Unused;
use super::aging::page_counts::PurgeCounts;
use super::hooked::hook_calls;
use super::hooked::hooks::Hooks;
use super::map::extent::{Extent, ExtentState};
use super::map::page_map;
use super::runs::chunk_notes;
use super::runs::free_runs::FreeRuns;
use super::runs::growth::FIRST_CHUNK;
use super::runs::in_hand::InHand;
use super::system::mapping::Mapping;
use super::system::page_provider::{PageProvider, Purged};
use super::system::thp::{self, HUGE};
use crate::ground::options;
use crate::ground::units::{LG_PAGE, PAGE, SLAB_BYTES, round_down, round_up};
use core::ptr::NonNull;

/// Runs purged at a time.
const BATCH: usize = 32;
/// Of so many runs the one to be purged next is chosen.
const LOOKED_AT: usize = 32;
/// No part smaller than this is cut off a run to be purged.
const PURGE_UNIT: usize = SLAB_BYTES / PAGE;

/// Runs on their way back to the system, chained by their `younger` links.
pub(crate) struct Batch {
    first: Option<&'static Extent>,
    /// What the runs were.
    from: ExtentState,
    /// The system may take its time.
    lazily: bool,
    /// The addresses stay ours.
    retain: bool,
    provider: &'static dyn PageProvider,
    hooks: Option<&'static Hooks>,
}

impl Batch {
    /// The system calls. Runs outside all locks; the runs belong to the batch alone.
    pub(crate) fn purge(&self) {
        let mut next = self.first;
        while let Some(extent) = next {
            next = extent.younger.get();
            let Some(base) = NonNull::new(extent.base_ptr()) else { continue };
            let (state, zeroed) = self.purge_one(extent, base);
            extent.zeroed.set(zeroed);
            extent.after_purge.set(state);
        }
    }

    fn purge_one(&self, extent: &'static Extent, base: NonNull<u8>) -> (ExtentState, bool) {
        if let Some(hooks) = self.hooks {
            return hook_calls::give_back(hooks, extent, self.from, self.lazily);
        }
        let size = extent.bytes();
        if !self.retain && !self.lazily && self.release(extent, base) {
            return (ExtentState::Gone, false);
        }
        if self.from == ExtentState::Retained {
            return (ExtentState::Retained, extent.zeroed.get());
        }
        let renew = match extent.mapping() {
            Mapping::Ordinary => false,
            Mapping::Chunks => chunk_notes::is_whole_chunks(extent),
            _ => true,
        };
        // SAFETY: the run is free; nobody needs its contents.
        if renew && unsafe { self.provider.renew(base, size) } {
            chunk_notes::forget_chunks(extent);
            thp::advise_new(self.provider, base, size);
            return (ExtentState::Retained, true);
        }
        if extent.mapping() == Mapping::Chunks {
            chunk_notes::break_up(self.provider, extent.base(), size);
        }
        // SAFETY: the run lies in one reservation and is free; nobody needs its contents.
        if self.lazily && unsafe { self.provider.purge_lazily(base, size) } {
            return (ExtentState::Muzzy, false);
        }
        // SAFETY: as above.
        match unsafe { self.provider.purge(base, size) } {
            Purged::Zeroed => (ExtentState::Retained, true),
            Purged::Undefined => (ExtentState::Retained, false),
            Purged::Refused => (ExtentState::Dirty, false),
        }
    }

    /// Gives a run's addresses back too. It leaves the page map first: somebody else may be given
    /// the addresses at once.
    fn release(&self, extent: &'static Extent, base: NonNull<u8>) -> bool {
        page_map::clear_ends(extent);
        // SAFETY: the run is free, and nobody looks at it.
        let released = unsafe { self.provider.release(base, extent.bytes()) };
        if !released {
            page_map::set_ends(extent);
        }
        released
    }
}

impl Batch {
    /// The oldest free runs beyond as many pages as may stay, a batch at a time; `None` when all is
    /// done. The system may take its time with dirty pages if `lazily`.
    pub(super) fn take(
        runs: &mut FreeRuns,
        hooks: Option<&'static Hooks>,
        keep: Unused,
        lazily: bool,
    ) -> Option<Batch> {
        let retained =
            if options::current().retain || hooks.is_some() { usize::MAX } else { FIRST_CHUNK };
        let lists = [
            (ExtentState::Dirty, keep.dirty, lazily),
            (ExtentState::Muzzy, keep.muzzy, false),
            (ExtentState::Retained, retained, false),
        ];
        lists.into_iter().find_map(|(from, keep, lazily)| {
            let first = chain(runs, from, keep, hooks.is_some())?;
            Some(Batch::new(runs, Some(first), from, lazily, hooks))
        })
    }

    /// A batch of one run that is to be purged now, and not to wait among the unused ones.
    pub(super) fn of(runs: &mut FreeRuns, hooks: Option<&'static Hooks>, run: InHand) -> Batch {
        let run = runs.send_away(run);
        Batch::new(runs, Some(chained(run, None)), ExtentState::Dirty, false, hooks)
    }

    fn new(
        runs: &FreeRuns,
        first: Option<&'static Extent>,
        from: ExtentState,
        lazily: bool,
        hooks: Option<&'static Hooks>,
    ) -> Batch {
        let (retain, provider) = (options::current().retain, runs.provider());
        Batch { first, from, lazily, retain, provider, hooks }
    }

    /// Files what came of the batch. `false`: the system refused some of it; stop asking for now.
    pub(super) fn file(self, runs: &mut FreeRuns, counts: &mut PurgeCounts) -> bool {
        let mut all = true;
        let mut next = self.first;
        let purges = counts.of(self.from);
        purges.passes += 1;
        while let Some(extent) = next {
            next = extent.younger.take();
            let run = InHand::hold(extent, self.from);
            runs.note_back(&run);
            let state = run.after_purge.get();
            // What was refused would be refused again.
            let refused = state == ExtentState::Dirty || state == self.from;
            all &= !refused;
            if !refused {
                purges.calls += 1;
                purges.pages += run.pages() as u64;
            }
            if state == ExtentState::Gone {
                runs.forget(run);
            } else {
                runs.file(run, state);
            }
        }
        all
    }
}

fn chain(
    runs: &mut FreeRuns,
    from: ExtentState,
    keep: usize,
    is_hooked: bool,
) -> Option<&'static Extent> {
    let mut first: Option<&'static Extent> = None;
    for _ in 0..BATCH {
        let excess = runs.pages(from).saturating_sub(keep);
        if excess == 0 {
            break;
        }
        let Some(extent) = next_to_purge(runs, from) else { break };
        let run = runs.remove(extent);
        let run = whole_chunks(runs, run);
        let run = if is_hooked { run } else { cut_excess(runs, run, excess) };
        let run = runs.send_away(run);
        first = Some(chained(run, first));
    }
    first
}

/// The oldest run; but one that is worth its huge page waits, if a younger one near it is not.
fn next_to_purge(runs: &FreeRuns, from: ExtentState) -> Option<&'static Extent> {
    let oldest = runs.oldest(from)?;
    let by_age = core::iter::successors(Some(oldest), |extent| extent.younger.get());
    let worth_less = by_age.take(LOOKED_AT).find(|extent| !chunk_notes::is_better_kept(extent));
    Some(worth_less.unwrap_or(oldest))
}

/// Of a run in chunks that is to be purged the whole chunks, if there are any; the rest stays.
fn whole_chunks(runs: &mut FreeRuns, run: InHand) -> InHand {
    let (begin, end) = (round_up(run.base(), HUGE), round_down(run.end(), HUGE));
    if run.mapping() != Mapping::Chunks || begin >= end || runs.keep_records().is_none() {
        return run;
    }
    if let Some(tail) = runs.cut_off(&run, (end - run.base()) >> LG_PAGE) {
        runs.list_again(tail);
    }
    if begin > run.base()
        && let Some(inner) = runs.cut_off(&run, (begin - run.base()) >> LG_PAGE)
    {
        runs.list_again(run);
        return inner;
    }
    run
}

/// Cuts off the end of a run that is much longer than what has to go; the rest stays.
fn cut_excess(runs: &mut FreeRuns, run: InHand, excess: usize) -> InHand {
    let mut part = excess.next_multiple_of(PURGE_UNIT);
    if run.mapping() != Mapping::Ordinary {
        // No huge page is cut in two.
        let cut = round_down(run.end().saturating_sub(part << LG_PAGE), HUGE);
        part = run.end().saturating_sub(cut.max(run.base())) >> LG_PAGE;
    }
    if part + PURGE_UNIT > run.pages() || runs.keep_records().is_none() {
        return run;
    }
    let Some(tail) = runs.cut_off(&run, run.pages() - part) else { return run };
    runs.list_again(run);
    tail
}

/// Puts a run at the front of a batch.
fn chained(run: InHand, next: Option<&'static Extent>) -> &'static Extent {
    let extent = run.set_aside();
    extent.younger.set(next);
    extent
}
