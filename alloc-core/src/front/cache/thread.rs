//! The allocator's record of a thread: its caches, its counts, and the address of its word.
//!
//! ```text
//!   TLS word ──▶ cache (or its façade) ──▶ Thread ──▶ all caches of the thread, one per arena
//! ```
//! The bytes that a thread allocated and freed are computed from the counts of its caches. Only
//! bytes past the caches (large blocks, and small ones uncached) are counted here, at each call. A
//! thread knows its caches through [`OfThread`] only.

use super::caches_of_thread::{CachesOfThread, OfThread};
use super::volume::Volume;
use super::word_of_thread::WordOfThread;
use crate::back::metadata::Recycled;
use crate::front::bins::thread_cache::Cells;
use crate::ground::counters::OwnedCount;
use crate::ground::options;
use crate::middle::arenas::arena::Arena;
use crate::profile::event_buffer::Buffer;
use crate::profile::names::NameIndex;
use crate::profile::{recorder, sampler};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// When a thread moves the cells that the program may read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moves {
    /// The program has not asked for the cells.
    Never,
    /// When the counts are read, and on slow paths.
    Slowly,
    /// With every operation, by façades.
    Always,
}

/// The record of a thread whose caches are of type `C`.
pub(crate) struct Thread<C: 'static> {
    word: WordOfThread,
    caches: CachesOfThread<C>,
    /// The arena that it is bound to for good.
    bound: Cell<Option<&'static Arena>>,
    /// Bytes past its caches.
    past: [OwnedCount; 2],
    /// What the program reads through `thread.allocatedp` and `thread.deallocatedp`.
    cells: Cells,
    moves: Cell<Moves>,
    /// Whether its caches are on, and the largest size that they hold.
    enabled: Cell<bool>,
    max: Cell<usize>,
    /// A number that no other thread ever has. 0: no thread has this record.
    number: Cell<u64>,
    /// Whether the heap profiler samples its allocations.
    profiled: Cell<bool>,
    /// Its name in profiles.
    name: Cell<NameIndex>,
    /// Where its events wait to be written.
    events: Cell<Option<&'static Buffer>>,
    /// How often its exit call was made.
    exit_calls: Cell<u32>,
    /// Balances: of its caches at the last look, of all at the last reset, and the highest since.
    cached_balance: Cell<i64>,
    peak_base: Cell<i64>,
    peak: Cell<i64>,
    next_free: Cell<Option<&'static Thread<C>>>,
    next: AtomicPtr<Thread<C>>,
}

// SAFETY: only the record's thread touches the cells, or another that has the record alone when
// that thread is gone (`registry::take_lost`; a fork's child has one thread only). The word's is
// read and written under the registry's lock, or in a child. The rest is atomic.
unsafe impl<C> Sync for Thread<C> {}

const ALLOCATED: usize = 0;
const FREED: usize = 1;

impl<C: OfThread> Thread<C> {
    /// Makes a record that no thread has, before `next` in the list.
    pub(super) fn new(next: *mut Thread<C>) -> Thread<C> {
        Thread {
            word: WordOfThread::new(),
            caches: CachesOfThread::new(),
            bound: Cell::new(None),
            past: [const { OwnedCount::new() }; 2],
            cells: [const { AtomicU64::new(0) }; 2],
            moves: Cell::new(Moves::Never),
            enabled: Cell::new(false),
            max: Cell::new(0),
            number: Cell::new(0),
            profiled: Cell::new(false),
            name: Cell::new(NameIndex::default()),
            events: Cell::new(None),
            exit_calls: Cell::new(0),
            cached_balance: Cell::new(0),
            peak_base: Cell::new(0),
            peak: Cell::new(0),
            next_free: Cell::new(None),
            next: AtomicPtr::new(next),
        }
    }

    /// Returns the next record in the list.
    pub(super) fn next(&self) -> *mut Thread<C> {
        self.next.load(Relaxed)
    }

    /// Gives the record to the thread with this word. Called under the registry's lock.
    pub(super) fn begin(&self, word: NonNull<AtomicPtr<u8>>) {
        self.enabled.set(options::current().tcache);
        self.max.set(options::current().tcache_max);
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        self.number.set(NUMBERS.fetch_add(1, Relaxed) + 1);
        self.profiled.set(sampler::samples_new_threads());
        self.name.set(NameIndex::default());
        self.word.begin(word);
    }

    /// Takes the record from its thread. Called under the registry's lock.
    pub(super) fn end(&self) {
        self.word.forget();
        self.reset();
    }

    /// Returns where the thread's word is.
    pub(super) fn word(&self) -> &WordOfThread {
        &self.word
    }

    /// Notes that this is the record of the calling thread in a forked child.
    pub(crate) fn note_child(&self) {
        self.word.note_thread();
    }

    fn reset(&self) {
        self.caches.clear();
        self.past.iter().for_each(|past| past.add(past.get().wrapping_neg()));
        self.cells.iter().for_each(|cell| cell.store(0, Relaxed));
        self.moves.set(Moves::Never);
        self.events.set(None);
        self.exit_calls.set(0);
        self.bind(None);
        self.cached_balance.set(0);
        self.peak_base.set(0);
        self.peak.set(0);
    }

    /// Adds a cache. Called by the record's thread.
    pub(crate) fn add_cache(&self, cache: &'static C) {
        self.caches.add(cache);
    }

    /// Notes that one of its caches was bound to its arena. Called by the record's thread.
    pub(crate) fn note_bound(&self, cache: &'static C) {
        self.caches.note_bound(cache);
    }

    /// Checks how its caches are found. Called by the record's thread.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check_caches(&self) {
        self.caches.check();
    }

    /// Notes the arena that the thread is bound to, where it is counted already.
    pub(crate) fn bind(&self, arena: Option<&'static Arena>) {
        self.bound.replace(arena).into_iter().for_each(|bound| bound.life().unbind());
    }

    /// Returns the cache of the arena that the thread is bound to.
    pub(crate) fn bound_cache(&self) -> Option<&'static C> {
        self.cache_for(self.bound.get()?.id())
    }

    /// Returns the thread's caches, first the one that it began with.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &'static C> + use<C> {
        self.caches.all()
    }

    /// Returns the thread's cache that is bound to an arena.
    #[inline]
    pub(crate) fn cache_for(&self, arena: u32) -> Option<&'static C> {
        self.caches.of(arena)
    }

    /// Returns the thread's number, which no other thread ever has.
    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Counts a call at the thread's exit. Returns how many there were so far.
    pub(crate) fn count_exit_call(&self) -> u32 {
        self.exit_calls.set(self.exit_calls.get() + 1);
        self.exit_calls.get()
    }

    /// Returns whether the heap profiler samples the thread's allocations.
    pub(crate) fn is_profiled(&self) -> bool {
        self.profiled.get()
    }

    /// Sets whether the heap profiler samples the thread's allocations.
    pub(crate) fn set_profiled(&self, profiled: bool) {
        self.profiled.set(profiled);
    }

    /// Returns the thread's name in profiles.
    pub(crate) fn name(&self) -> NameIndex {
        self.name.get()
    }

    /// Sets the thread's name in profiles.
    pub(crate) fn set_name(&self, name: NameIndex) {
        self.name.set(name);
    }

    /// Returns the buffer of the thread's events, or takes one now. `None`: there is no memory.
    pub(crate) fn events(&self) -> Option<&'static Buffer> {
        self.events.set(self.events.get().or_else(recorder::take_buffer));
        self.events.get()
    }

    /// Gives the buffer of the thread's events back, which are written.
    pub(crate) fn end_events(&self) {
        self.events.take().into_iter().for_each(recorder::put_buffer);
    }

    /// Returns the buffer of the thread's events, if it has one.
    pub(crate) fn events_so_far(&self) -> Option<&'static Buffer> {
        self.events.get()
    }

    /// Returns whether the thread's caches are on.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.get()
    }

    /// Notes whether the thread's caches are on. The caches must be told too.
    pub(crate) fn set_enabled(&self, on: bool) {
        self.enabled.set(on);
    }

    /// Returns the largest size that the thread's caches hold while they are on, in bytes.
    pub(crate) fn max(&self) -> usize {
        self.max.get()
    }

    /// Sets the largest size that the thread's caches hold. The caches must be told too.
    pub(crate) fn set_max(&self, size: usize) {
        self.max.set(size);
    }

    /// Returns the largest size that the thread's caches hold, in bytes. 0 if they are off.
    pub(crate) fn largest(&self) -> usize {
        if self.enabled.get() { self.max.get() } else { 0 }
    }

    /// Counts bytes that the thread got past its caches.
    #[inline]
    pub(crate) fn got_past(&self, bytes: usize) {
        self.count_past(ALLOCATED, bytes);
    }

    /// Counts bytes that the thread freed past its caches.
    #[inline]
    pub(crate) fn freed_past(&self, bytes: usize) {
        self.count_past(FREED, bytes);
    }

    fn count_past(&self, which: usize, bytes: usize) {
        self.past.get(which).into_iter().for_each(|past| past.add(bytes as u64));
        self.move_cell(which, bytes);
        if which == ALLOCATED {
            self.raise_peak();
        }
    }

    /// Notes bytes allocated that the caches count themselves. Called on slow paths, and on all
    /// paths of a watched thread.
    #[inline]
    pub(crate) fn got_cached(&self, bytes: usize) {
        self.move_cell(ALLOCATED, bytes);
    }

    /// As [`Thread::got_cached`], for bytes freed.
    #[inline]
    pub(crate) fn freed_cached(&self, bytes: usize) {
        self.move_cell(FREED, bytes);
    }

    #[inline]
    fn move_cell(&self, which: usize, bytes: usize) {
        match self.moves.get() {
            Moves::Never => {}
            Moves::Slowly => self.refresh(),
            Moves::Always => {
                self.cells.get(which).into_iter().for_each(|cell| move_by(cell, bytes));
            }
        }
    }

    fn past(&self) -> Volume {
        let [allocated, freed] = &self.past;
        Volume { allocated: allocated.get(), freed: freed.get() }
    }

    fn cached(&self) -> Volume {
        let mut sum = Volume::default();
        self.caches().for_each(|cache| sum.add(cache.volume_of_thread()));
        sum
    }

    /// Returns what the thread allocated and freed. Called by the thread.
    pub(crate) fn volume(&self) -> Volume {
        let cached = self.cached();
        self.cached_balance.set(cached.balance());
        self.raise_peak();
        let mut sum = self.past();
        sum.add(cached);
        sum
    }

    /// Returns the cells from which the program may read what the thread allocated and freed, for
    /// the thread's life.
    pub(crate) fn cells(&self) -> (NonNull<u64>, NonNull<u64>) {
        let [allocated, freed] = &self.cells;
        (NonNull::from(allocated).cast(), NonNull::from(freed).cast())
    }

    /// Returns the cells for the thread's façades, which move them with every operation.
    pub(super) fn live_cells(&'static self) -> &'static Cells {
        &self.cells
    }

    /// Returns when the thread's cells move.
    pub(crate) fn moves(&self) -> Moves {
        self.moves.get()
    }

    /// Sets when the thread's cells move. [`Moves::Always`] needs façades.
    pub(crate) fn set_moves(&self, moves: Moves) {
        self.moves.set(moves);
    }

    /// Updates the cells and the peak. Called by the thread, on some of its slow paths.
    pub(crate) fn refresh(&self) {
        let volume = self.volume();
        let [allocated, freed] = &self.cells;
        allocated.store(volume.allocated, Relaxed);
        freed.store(volume.freed, Relaxed);
    }

    /// Raises the peak if the balance is higher. Operations under way may be counted or not.
    pub(crate) fn note_peak(&self) {
        self.volume();
    }

    fn raise_peak(&self) {
        let balance = self.past().balance().wrapping_add(self.cached_balance.get());
        self.peak.set(self.peak.get().max(balance));
    }

    /// Returns the highest balance since the last reset, minus the balance at that reset.
    pub(crate) fn peak(&self) -> u64 {
        self.refresh();
        let beyond = self.peak.get().wrapping_sub(self.peak_base.get());
        u64::try_from(beyond).unwrap_or(0)
    }

    /// Resets the peak to the present balance.
    pub(crate) fn reset_peak(&self) {
        let balance = self.volume().balance();
        self.peak_base.set(balance);
        self.peak.set(balance);
    }
}

/// Moves a cell of the calling thread, which alone writes it.
#[inline(always)]
pub(crate) fn move_by(cell: &AtomicU64, bytes: usize) {
    cell.store(cell.load(Relaxed).wrapping_add(bytes as u64), Relaxed);
}

impl<C> Recycled for Thread<C> {
    fn next_free(&self) -> &Cell<Option<&'static Thread<C>>> {
        &self.next_free
    }
}

#[cfg(test)]
mod tests {
    use super::super::caches_of_thread::tests::{Fake, fake};
    use super::*;

    fn thread_with(caches: &[&'static Fake]) -> Thread<Fake> {
        let thread = Thread::new(core::ptr::null_mut());
        caches.iter().for_each(|cache| thread.add_cache(*cache));
        thread
    }

    fn cells(thread: &Thread<Fake>) -> [u64; 2] {
        thread.cells.each_ref().map(|cell| cell.load(Relaxed))
    }

    #[test]
    fn a_volume_is_the_sum_of_the_caches_and_of_what_went_past_them() {
        let (one, other) = (fake(0), fake(1));
        let thread = thread_with(&[one, other]);
        one.volume.set(Volume { allocated: 100, freed: 40 });
        other.volume.set(Volume { allocated: 7, freed: 0 });
        thread.got_past(1000);
        thread.freed_past(500);
        assert_eq!(thread.volume(), Volume { allocated: 1107, freed: 540 });
    }

    #[test]
    fn the_peak_is_the_highest_balance_since_the_last_reset() {
        let cache = fake(0);
        let thread = thread_with(&[cache]);
        cache.volume.set(Volume { allocated: 300, freed: 0 });
        thread.note_peak();
        cache.volume.set(Volume { allocated: 300, freed: 250 });
        assert_eq!(thread.peak(), 300);
        thread.reset_peak();
        assert_eq!(thread.peak(), 0);
        thread.got_past(1000);
        thread.freed_past(1000);
        assert_eq!(thread.peak(), 1000, "what went past the caches counts at once");
    }

    #[test]
    fn the_cells_move_as_often_as_was_asked_for() {
        let cache = fake(0);
        let thread = thread_with(&[cache]);
        cache.volume.set(Volume { allocated: 64, freed: 32 });
        thread.got_cached(64);
        assert_eq!(cells(&thread), [0, 0]);
        thread.set_moves(Moves::Slowly);
        thread.got_cached(64);
        assert_eq!(cells(&thread), [64, 32]);
        thread.set_moves(Moves::Always);
        thread.got_cached(16);
        thread.freed_cached(8);
        assert_eq!(cells(&thread), [80, 40]);
    }

    #[test]
    fn a_record_that_is_given_back_forgets_its_thread() {
        let cache = fake(0);
        let thread = thread_with(&[cache]);
        let word = AtomicPtr::new(core::ptr::null_mut());
        thread.begin(NonNull::from(&word));
        assert!(thread.word().address() == Some(NonNull::from(&word)) && thread.is_enabled());
        thread.set_moves(Moves::Always);
        thread.got_past(10);
        thread.end();
        assert!(thread.word().address().is_none() && thread.caches().next().is_none());
        assert_eq!((thread.volume(), cells(&thread)), (Volume::default(), [0, 0]));
        assert_eq!((thread.moves(), thread.peak()), (Moves::Never, 0));
    }
}
