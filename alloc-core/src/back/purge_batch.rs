//! Purging: which runs go, and the system's part of it, outside all locks. Runs on their way are in
//! nobody's list.

use super::chunk_notes;
use super::extent::{Extent, ExtentState};
use super::hook_calls;
use super::hooks::Hooks;
use super::in_hand::InHand;
use super::mapping::Mapping;
use super::page_allocator::{FIRST_CHUNK, PageAllocator};
use super::page_counts::Purges;
use super::page_map;
use super::page_provider::{PageProvider, Purged};
use super::thp::{self, HUGE};
use crate::ground::options;
use crate::ground::units::{LG_PAGE, PAGE, SLAB_BYTES, round_down};
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
    /// The first run.
    pub(crate) fn first(&self) -> Option<&'static Extent> {
        self.first
    }

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

impl PageAllocator {
    /// The oldest runs beyond what may stay, a batch at a time; `None` when all is done.
    pub(crate) fn take_batch(&mut self, dirty: usize, muzzy: usize) -> Option<Batch> {
        if dirty < self.rest.pages() {
            self.file_rest();
        }
        let dirty = dirty.saturating_sub(self.rest.pages());
        // Muzzy pages exist only while their decay time is not 0; without one they go at once.
        let lazily = self.muzzy_decay.millis() != 0 && muzzy > 0;
        let retain = options::current().retain;
        let provider = self.provider;
        let hooks = self.hooked.as_ref().map(|hooked| hooked.hooks);
        let batch = |from, lazily| {
            move |first| Batch { first: Some(first), from, lazily, retain, provider, hooks }
        };
        let keep = if retain || hooks.is_some() { usize::MAX } else { FIRST_CHUNK };
        self.chain(ExtentState::Dirty, dirty)
            .map(batch(ExtentState::Dirty, lazily))
            .or_else(|| self.chain(ExtentState::Muzzy, muzzy).map(batch(ExtentState::Muzzy, false)))
            .or_else(|| {
                self.chain(ExtentState::Retained, keep).map(batch(ExtentState::Retained, false))
            })
    }

    /// Takes a run back that is to be purged now, and not to wait among the unused ones.
    pub(crate) fn free_into_batch(&mut self, extent: &'static Extent) -> Batch {
        let run = self.take_back(extent);
        self.counts.purging += run.pages();
        Batch {
            first: Some(chained(run, None)),
            from: ExtentState::Dirty,
            lazily: false,
            retain: options::current().retain,
            provider: self.provider,
            hooks: self.hooked.as_ref().map(|hooked| hooked.hooks),
        }
    }

    /// Where purging of pages in a state is counted.
    fn purges_of(&mut self, from: ExtentState) -> &mut Purges {
        match from {
            ExtentState::Muzzy => &mut self.counts.muzzy_purges,
            _ => &mut self.counts.dirty_purges,
        }
    }

    /// Files what came of a batch. `false`: the system refused some of it; stop asking for now.
    pub(crate) fn file_batch(&mut self, batch: Batch) -> bool {
        let mut all = true;
        let mut next = batch.first();
        self.purges_of(batch.from).passes += 1;
        while let Some(extent) = next {
            next = extent.younger.take();
            let run = InHand::hold(extent, batch.from);
            self.counts.purging -= run.pages();
            let state = run.after_purge.get();
            // What was refused would be refused again.
            let refused = state == ExtentState::Dirty || state == batch.from;
            all &= !refused;
            if !refused {
                let purges = self.purges_of(batch.from);
                purges.calls += 1;
                purges.pages += run.pages() as u64;
            }
            if state == ExtentState::Gone {
                self.forget(run);
            } else {
                self.file(run, state);
            }
        }
        self.report();
        all
    }

    fn chain(&mut self, from: ExtentState, keep: usize) -> Option<&'static Extent> {
        let mut first: Option<&'static Extent> = None;
        for _ in 0..BATCH {
            let excess = self.cache(from).pages().saturating_sub(keep);
            if excess == 0 {
                break;
            }
            let Some(extent) = self.next_to_purge(from) else { break };
            let run = self.cache(from).remove(extent);
            let run = self.whole_chunks(run);
            let run = self.cut_excess(run, excess);
            self.counts.purging += run.pages();
            first = Some(chained(run, first));
        }
        first
    }

    /// The oldest run; but one that is worth its huge page waits, if a younger one near it is not.
    fn next_to_purge(&mut self, from: ExtentState) -> Option<&'static Extent> {
        let oldest = self.cache(from).oldest()?;
        let by_age = core::iter::successors(Some(oldest), |extent| extent.younger.get());
        let worth_less = by_age.take(LOOKED_AT).find(|extent| !chunk_notes::is_better_kept(extent));
        Some(worth_less.unwrap_or(oldest))
    }

    /// Cuts off the end of a run that is much longer than what has to go; the rest stays.
    fn cut_excess(&mut self, run: InHand, excess: usize) -> InHand {
        if self.is_hooked() {
            return run;
        }
        let mut part = excess.next_multiple_of(PURGE_UNIT);
        if run.mapping() != Mapping::Ordinary {
            // No huge page is cut in two.
            let cut = round_down(run.end().saturating_sub(part << LG_PAGE), HUGE);
            part = run.end().saturating_sub(cut.max(run.base())) >> LG_PAGE;
        }
        if part + PURGE_UNIT > run.pages() || self.spares.keep().is_none() {
            return run;
        }
        let Some(record) = self.spares.take() else { return run };
        let tail = run.split_off(run.pages() - part, record);
        self.list_again(run);
        tail
    }
}

/// Puts a run at the front of a batch.
fn chained(run: InHand, next: Option<&'static Extent>) -> &'static Extent {
    let extent = run.set_aside();
    extent.younger.set(next);
    extent
}
