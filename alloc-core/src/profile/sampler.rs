//! Takes samples of allocations, and notes when they are freed. Source: jemalloc(3), `opt.prof`.
//!
//! The bins' countdowns decide which requests are sampled, so the fast paths need no test: see
//! `front/supply/countdown.rs`. Sampled small blocks lie at low addresses: see
//! [`crate::ground::low`]. Where each allocation is a sample from the start on, façades see each
//! operation, and samples are ordinary blocks.

use super::backtrace::{self, MOST_OWN};
use super::history::{self, Moment, Ticket};
use super::hooks::{self, DEEPEST};
use super::live::{self, Known};
use super::names::NameIndex;
use super::{rate, sites, stack_depth};
use crate::back::system::page_provider::PageProvider;
use crate::back::system::provider::low_pages::LOW_PAGES;
use crate::ground::callback;
use crate::ground::counters::SharedCount;
use crate::ground::intervals;
use crate::ground::low;
use crate::ground::os;
use crate::ground::probes;
use crate::ground::sync::lock_rank::witness;
use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether façades see each operation, because each allocation was to be a sample from the start.
static SEES_ALL: AtomicBool = AtomicBool::new(false);
static ACTIVE: AtomicBool = AtomicBool::new(false);
static NEW_THREADS: AtomicBool = AtomicBool::new(true);
/// Whether each allocation since the start had its chance to be a sample.
static SINCE_START: AtomicBool = AtomicBool::new(false);

/// Requests that were to be sampled and were not, because there was no memory for a sample.
pub(crate) static MISSED: SharedCount = SharedCount::new();

/// How often it was begun to forget all samples, and how often that was done.
pub(crate) static RESETS: SharedCount = SharedCount::new();

/// Whether threads may have gone on at a former rate for some time, after all samples were
/// forgotten.
static IS_BEHIND: AtomicBool = AtomicBool::new(false);

/// How samples are taken from the start on.
pub(crate) struct Settings {
    /// log2 of the bytes between two samples on average.
    pub(crate) lg_sample: u32,
    /// Whether sampling starts active.
    pub(crate) active: bool,
    /// Whether new threads are sampled.
    pub(crate) new_threads: bool,
    /// The first state of the random numbers. 0: any.
    pub(crate) seed: u64,
}

/// Makes the process one that may take samples. Called once, at start, before the first block.
pub(crate) fn prepare(settings: &Settings) {
    rate::set(settings.lg_sample);
    rate::seed(if settings.seed == 0 { os::random() } else { settings.seed });
    ACTIVE.store(settings.active, Relaxed);
    NEW_THREADS.store(settings.new_threads, Relaxed);
    SINCE_START.store(settings.active && settings.new_threads, Relaxed);
    find_low_addresses();
    if settings.lg_sample == 0 {
        SEES_ALL.store(true, Relaxed);
    }
    IS_ON.store(true, Relaxed);
}

/// Finds low addresses that the system has. Without any, only large blocks are sampled.
fn find_low_addresses() {
    for zone in low::ZONES {
        low::set_end(zone.end);
        if let Some(got) = LOW_PAGES.reserve(PAGE, PAGE) {
            // SAFETY: just reserved. If refused, it stays unused.
            unsafe { LOW_PAGES.release(got.base, PAGE) };
            return;
        }
    }
    low::set_end(1);
    note_left_out();
}

/// Returns whether each allocation since the start of the process had its chance to be a sample,
/// and was counted if it was one.
pub(crate) fn is_since_start() -> bool {
    SINCE_START.load(Relaxed) && MISSED.get() == 0
}

/// Notes that some allocations, or some samples, are left out from now on.
pub(crate) fn note_left_out() {
    SINCE_START.store(false, Relaxed);
}

/// Returns whether some of the first allocations after a reset had no chance to be a sample, or
/// that of the rate before.
pub(crate) fn is_behind() -> bool {
    IS_BEHIND.load(Relaxed)
}

/// Notes that threads may go on at a former rate for some time.
pub(crate) fn note_behind() {
    IS_BEHIND.store(true, Relaxed);
}

/// Returns whether the process may take samples.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Returns whether façades see each operation, so that any small block may be a sample. Otherwise
/// small samples are blocks of slabs of their own.
#[inline]
pub(crate) fn sees_all() -> bool {
    SEES_ALL.load(Relaxed)
}

/// Returns whether each small allocation is a sample where the façades see it.
#[inline]
pub(crate) fn is_exact() -> bool {
    sees_all() && rate::lg() == 0
}

/// Returns whether the process takes samples now.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Relaxed)
}

/// Sets whether the process takes samples, and returns whether it did.
pub(crate) fn set_active(active: bool) -> bool {
    if !active {
        note_left_out();
    }
    ACTIVE.swap(active, Relaxed)
}

/// Returns whether new threads are sampled.
pub(crate) fn samples_new_threads() -> bool {
    NEW_THREADS.load(Relaxed)
}

/// Sets whether new threads are sampled, and returns whether they were.
pub(crate) fn set_samples_new_threads(sampled: bool) -> bool {
    if !sampled {
        note_left_out();
    }
    NEW_THREADS.swap(sampled, Relaxed)
}

/// What of a block a sample needs.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) address: usize,
    /// Bytes that were requested, and bytes that the block has.
    pub(crate) requested: usize,
    pub(crate) usable: usize,
    pub(crate) arena: u32,
    pub(crate) thread: u64,
    /// The name of the thread.
    pub(crate) name: NameIndex,
}

/// Notes a block that is handed out as a sample, with the stack of the calling thread. No lock may
/// be held.
#[inline(never)]
pub(crate) fn note_allocated(block: Block) {
    tell_freed();
    live::prefetch(block.address);
    let mut room = backtrace::room::<{ DEEPEST + MOST_OWN }>();
    let stack = hooks::take_backtrace(&mut room, stack_depth::most());
    let Block { address, requested, usable, arena, thread, name } = block;
    let counts = sites::counts(stack, requested, usable);
    let is_noted = counts.is_some_and(|counts| {
        // Counted first, so that no sample is freed before it is counted.
        counts.note_allocated();
        let time = history::time();
        let allocated = Moment { time, thread, name, site: counts.site() };
        let ticket = history::note_allocated(requested, usable, allocated);
        let is_added = live::add(Known { address, counts, arena, thread, name, time, ticket });
        if !is_added {
            counts.note_freed();
        }
        is_added
    });
    if is_noted {
        probes::sampled(address, requested, usable);
        hooks::tell_sample(address, requested, stack, usable);
    } else {
        MISSED.add(1);
    }
    sites::tell_shared();
    intervals::count_sample();
}

/// Notes that the calling thread frees a block, which may be a sample. The caller may hold locks.
pub(crate) fn note_freed(address: usize) {
    note_end(address, history::note_freed);
}

/// Notes that a block, which may be a sample, was freed some time ago, by whom is not known. The
/// caller may hold locks.
pub(crate) fn note_freed_before(address: usize) {
    note_end(address, history::note_freed_before);
}

fn note_end(address: usize, note: fn(usize, usize, Moment, Option<Ticket>)) {
    live::remove(address, |known| {
        known.counts.note_freed();
        let (time, thread, name) = (known.time, known.thread, known.name);
        let allocated = Moment { time, thread, name, site: known.counts.site() };
        let (requested, usable) = (known.counts.requested(), known.counts.usable());
        note(requested, usable, allocated, known.ticket);
        hooks::SAMPLE_FREE.is_set()
    });
}

/// As [`note_freed`], and tells the program at once. The caller holds no lock, and frees the block
/// afterwards.
pub(crate) fn note_and_tell_freed(address: usize) {
    note_freed(address);
    sites::tell_shared();
    tell_freed();
}

/// Notes that a block, which may be a sample, has other sizes from now on. It is the allocation
/// that it was: stack, thread and time stay.
pub(crate) fn note_resized(address: usize, requested: usize, usable: usize) {
    let Some(known) = live::at(address) else { return };
    if (known.counts.requested(), known.counts.usable()) != (requested, usable)
        && let Some(counts) = known.counts.site().counts(requested, usable)
    {
        live::recount(address, counts);
    }
}

/// The bits of a sample's address of which some are set while the memory of its block is moved
/// elsewhere. No block has an address with one of them. From then on another block may have the
/// address, and be moved too.
const MOVING: usize = 7;

/// Returns the address of a sample's block.
pub(crate) fn address_of(known: &live::Known) -> usize {
    known.address & !MOVING
}

/// Notes that the memory of a large block is about to be moved. If it is a sample, returns the
/// address that this has meanwhile, for [`end_move`].
pub(crate) fn begin_move(address: usize) -> Option<usize> {
    live::hide(address, MOVING)
}

/// Notes the end of what [`begin_move`] began. If the memory `is_moved`, the sample is freed, of
/// which the program is told at once. The caller holds no lock.
pub(crate) fn end_move(hidden: usize, is_moved: bool) {
    if is_moved {
        note_and_tell_freed(hidden);
    } else {
        live::rename(hidden, hidden & !MOVING);
    }
}

/// Tells the program of the samples that were freed. The caller holds no lock.
#[inline]
pub(crate) fn tell_freed() {
    if live::has_untold() {
        tell_untold();
    }
}

#[cold]
#[inline(never)]
fn tell_untold() {
    // What a callback frees is told after it.
    if callback::is_outside() {
        witness::none_held();
        live::take_untold(|known| hooks::tell_free(address_of(&known), known.counts.usable()));
    }
}

/// Forgets all samples, and sets how many bytes there are between two samples on average, as log2.
pub(crate) fn reset(lg_sample: u32) {
    note_left_out();
    // Before and after, so that no profile with a part of the samples has the count of another one.
    RESETS.add(1);
    // First, because the present rate says how much each sample stands for: of the samples that
    // other threads take meanwhile, none of the old rate may stay.
    rate::set(lg_sample);
    live::clear();
    sites::newest_first().flat_map(sites::Site::sizes).for_each(sites::SizeCount::forget_freed);
    RESETS.add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_counted_by_its_stack_until_it_is_freed() {
        let address = 0x6670_0000_0000;
        let name = NameIndex::default();
        let block = Block { address, requested: 77, usable: 80, arena: 0, thread: 9, name };
        note_allocated(block);
        let mut seen = None;
        live::for_each(|known| {
            if known.address == address {
                seen = Some(known.counts);
            }
        });
        let counts = seen.expect("the sample");
        assert_eq!((counts.requested(), counts.usable()), (77, 80));
        let function = a_sample_is_counted_by_its_stack_until_it_is_freed as *const () as usize;
        // Within the allocator nothing is left out, so other functions may come first.
        let frames = counts.site().frames();
        let is_there = |frame: &usize| frame.wrapping_sub(function) < 8192;
        assert!(frames.iter().take(8).any(is_there), "{frames:x?} {function:x}");
        assert_eq!(counts.get().allocated - counts.get().freed, 1);
        note_freed(address);
        note_freed(address);
        assert_eq!(counts.get().allocated, counts.get().freed);
    }

    #[test]
    fn samples_that_are_taken_while_all_are_forgotten_are_counted_right() {
        let stack = [0x6672_0001, 0x6672_0002];
        let counts = sites::counts(&stack, 90, 96).expect("memory");
        let count = || (counts.get().allocated, counts.get().freed);
        let known = |address| {
            let name = NameIndex::default();
            let (arena, thread, time, ticket) = (0, 9, 0, None);
            live::Known { address, counts, arena, thread, name, time, ticket }
        };
        counts.note_allocated();
        assert!(live::add(known(0x6672_0000_0000)));
        counts.note_allocated();
        // As `reset`, which would forget the samples of other tests.
        counts.forget();
        counts.forget_freed();
        assert!(live::add(known(0x6672_0000_1000)));
        assert_eq!(count(), (1, 0), "the second sample was being taken");
        note_freed(0x6672_0000_1000);
        assert_eq!(count(), (1, 1));
        counts.forget_freed();
        assert_eq!(count(), (0, 0));
    }

    #[test]
    fn a_sample_whose_memory_moves_is_not_that_of_the_next_block_at_its_address() {
        let address = 0x6671_0000_0000;
        let name = NameIndex::default();
        let sample = |requested| {
            let usable = 1 << 20;
            note_allocated(Block { address, requested, usable, arena: 0, thread: 9, name });
        };
        let requested = || live::at(address).map(|known| known.counts.requested());
        sample(1_000_001);
        let begin = || begin_move(address).expect("a sample");
        let first = begin();
        assert_eq!((requested(), begin_move(address)), (None, None));
        end_move(first, false);
        assert_eq!(requested(), Some(1_000_001), "the system refused");
        let first = begin();
        // Another thread is given the address before the move has ended, and moves its block too.
        sample(1_000_002);
        let second = begin();
        end_move(first, true);
        end_move(second, false);
        assert_eq!(requested(), Some(1_000_002));
        note_freed(address);
        assert_eq!(requested(), None);
        let is_left = |known: live::Known| address_of(&known) == address;
        live::for_each(|known| assert!(!is_left(known)));
    }
}
