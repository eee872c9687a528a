//! A thread as the allocator knows it: its caches, its counts, and where its word is.
//!
//! ```text
//!   TLS word ──▶ cache (or its façade) ──▶ Thread ──▶ all caches of the thread, one per arena
//! ```
//! Records are made on demand, recycled, never unmapped. What a thread allocated and freed is not
//! counted at each call, but found in the counts of its caches; only what goes past them (large
//! blocks, and small ones uncached) is counted here, where it happens.

use super::facade::Facade;
use super::modes;
use super::registry::{self, REGISTRY, RealCache};
use super::thread_cache;
use super::tls;
use crate::back::metadata::{self, Recycled};
use crate::ground::counters::{OwnedCount, SharedCount};
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::middle::arena::Arena;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering, Ordering::Relaxed};

/// Arenas whose caches a thread finds at one look.
const NEAR: usize = 8;

/// Bytes allocated and freed, ever, by usable size.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) allocated: u64,
    pub(crate) freed: u64,
}

impl Volume {
    /// What was added since `before`.
    fn since(self, before: Volume) -> Volume {
        Volume {
            allocated: self.allocated.wrapping_sub(before.allocated),
            freed: self.freed.wrapping_sub(before.freed),
        }
    }

    fn add(&mut self, more: Volume) {
        self.allocated = self.allocated.wrapping_add(more.allocated);
        self.freed = self.freed.wrapping_add(more.freed);
    }

    /// Bytes allocated and not freed; negative where a thread frees what others allocated.
    fn balance(self) -> i64 {
        self.allocated.wrapping_sub(self.freed) as i64
    }
}

/// When the cells of a thread move that the program may look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moves {
    /// Nobody has asked for them.
    Never,
    /// When somebody reads the counts, and on slow paths.
    Slowly,
    /// With every operation: the thread has façades.
    Always,
}

/// A thread.
pub(crate) struct Thread {
    /// Its word; null: no thread has this record. Changed under the registry's lock.
    word: AtomicPtr<AtomicPtr<u8>>,
    /// Its caches, linked; the newest first.
    first: Cell<Option<&'static RealCache>>,
    /// Caches by the last bits of their arena's index.
    near: [Cell<Option<&'static RealCache>>; NEAR],
    /// The arena that it is bound to for good.
    bound: Cell<Option<&'static Arena>>,
    /// What went past its caches.
    past: [OwnedCount; 2],
    /// What the program reads through `thread.allocatedp` and `thread.deallocatedp`.
    cells: [AtomicU64; 2],
    moves: Cell<Moves>,
    /// Its caches are on, and hold blocks up to a size.
    pub(crate) enabled: Cell<bool>,
    pub(crate) max: Cell<usize>,
    /// The balance of its caches when last looked at, all there was before the last reset, and the
    /// highest since then.
    cached_balance: Cell<i64>,
    peak_base: Cell<i64>,
    peak: Cell<i64>,
    next_free: Cell<Option<&'static Thread>>,
    next: AtomicPtr<Thread>,
}

// SAFETY: the cells are touched by the record's thread only, or under the registry's lock when that
// is gone (a fork's child has but one thread); the rest is atomic.
unsafe impl Sync for Thread {}

static FIRST: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());

/// Threads that have a record now.
pub(crate) static THREADS: SharedCount = SharedCount::new();

const ALLOCATED: usize = 0;
const FREED: usize = 1;

/// The calling thread's record. `None`: it has made no call yet, or its last.
#[inline]
pub(crate) fn current() -> Option<&'static Thread> {
    thread_cache::current().as_real()?.thread()
}

/// A record for the calling thread. `None`: no memory.
pub(crate) fn take() -> Option<&'static Thread> {
    let mut dead = REGISTRY.lock();
    let thread = match dead.threads.take() {
        Some(thread) => thread,
        None => make()?,
    };
    thread.enabled.set(options::current().tcache);
    thread.max.set(options::current().tcache_max);
    thread.word.store(tls::address().as_ptr(), Relaxed);
    THREADS.add(1);
    Some(thread)
}

/// Gives a record back, once its caches are gone.
pub(crate) fn put(thread: &'static Thread) {
    let mut dead = REGISTRY.lock();
    thread.word.store(core::ptr::null_mut(), Relaxed);
    thread.reset();
    THREADS.sub(1);
    dead.threads.put(thread);
}

/// Takes the records of all threads but one, in the child of a fork, where they are no more.
pub(crate) fn abandon_all_but(mine: *const Thread) {
    let gone =
        |thread: &&Thread| !thread.word.load(Relaxed).is_null() && !core::ptr::eq(*thread, mine);
    all().filter(gone).for_each(put);
}

fn make() -> Option<&'static Thread> {
    let memory = metadata::allocate(size_of::<Thread>(), 64)?.cast::<Thread>();
    let thread = Thread {
        word: AtomicPtr::new(core::ptr::null_mut()),
        first: Cell::new(None),
        near: [const { Cell::new(None) }; NEAR],
        bound: Cell::new(None),
        past: [const { OwnedCount::new() }; 2],
        cells: [const { AtomicU64::new(0) }; 2],
        moves: Cell::new(Moves::Never),
        enabled: Cell::new(false),
        max: Cell::new(0),
        cached_balance: Cell::new(0),
        peak_base: Cell::new(0),
        peak: Cell::new(0),
        next_free: Cell::new(None),
        next: AtomicPtr::new(FIRST.load(Relaxed)),
    };
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(thread) };
    // Release: pairs with the Acquire in `all`. Under the registry's lock.
    FIRST.store(memory.as_ptr(), Ordering::Release);
    // SAFETY: just written, and never unmapped.
    Some(unsafe { memory.as_ref() })
}

/// All records ever made. The list only grows.
fn all() -> impl Iterator<Item = &'static Thread> {
    // Acquire: pairs with the Release in `make`.
    let mut next = FIRST.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: records live for ever.
        let thread: &'static Thread = unsafe { next.as_ref() }?;
        next = thread.next.load(Relaxed);
        Some(thread)
    })
}

/// Calls `see` with the word of each thread, which cannot end meanwhile.
pub(crate) fn for_each_word(_registry: &registry::Locked<'_>, mut see: impl FnMut(&AtomicPtr<u8>)) {
    for thread in all() {
        // SAFETY: a thread ends after it has taken its word off, under the lock that is held.
        if let Some(word) = unsafe { thread.word.load(Relaxed).as_ref() } {
            see(word);
        }
    }
}

/// Calls `see` with the index of each thread's arena: the one it allocates from just now.
pub(crate) fn for_each_arena(mut see: impl FnMut(u32)) {
    let registry = REGISTRY.lock();
    for_each_word(&registry, |word| {
        if let Some(cache) = thread_cache::named_by(word.load(Relaxed)).as_real() {
            see(cache.owner.home.get().id());
        }
    });
}

/// Threads that allocate from an arena just now.
pub(crate) fn count_in(arena: u32) -> u32 {
    let mut count = 0;
    for_each_arena(|id| count += u32::from(id == arena));
    count
}

impl Thread {
    fn reset(&self) {
        self.first.set(None);
        self.near.iter().for_each(|near| near.set(None));
        self.past.iter().for_each(|past| past.add(past.get().wrapping_neg()));
        self.cells.iter().for_each(|cell| cell.store(0, Relaxed));
        self.moves.set(Moves::Never);
        self.bind(None);
        self.cached_balance.set(0);
        self.peak_base.set(0);
        self.peak.set(0);
    }

    /// Adds a cache. By the thread.
    pub(crate) fn add_cache(&self, cache: &'static RealCache) {
        cache.next_of_thread.set(self.first.replace(Some(cache)));
    }

    /// Notes the arena that it is bound to, and counts as bound there already.
    pub(crate) fn bind(&self, arena: Option<&'static Arena>) {
        self.bound.replace(arena).into_iter().for_each(Arena::unbind);
    }

    /// Its caches.
    pub(crate) fn caches(&self) -> impl Iterator<Item = &'static RealCache> + use<> {
        core::iter::successors(self.first.get(), |cache| cache.next_of_thread.get())
    }

    /// Its cache that is bound to an arena.
    #[inline]
    pub(crate) fn cache_for(&self, arena: u32) -> Option<&'static RealCache> {
        let near = self.near.get(arena as usize % NEAR)?;
        if let Some(cache) = near.get().filter(|cache| cache.is_for(arena)) {
            return Some(cache);
        }
        let found = self.caches().find(|cache| cache.is_for(arena))?;
        near.set(Some(found));
        Some(found)
    }

    /// The largest blocks that its caches hold, in bytes; 0: they are off.
    pub(crate) fn largest(&self) -> usize {
        if self.enabled.get() { self.max.get() } else { 0 }
    }

    /// Counts what it got past its caches.
    #[inline]
    pub(crate) fn got_past(&self, bytes: usize) {
        self.count_past(ALLOCATED, bytes);
    }

    /// Counts what it freed past its caches.
    #[inline]
    pub(crate) fn freed_past(&self, bytes: usize) {
        self.count_past(FREED, bytes);
    }

    fn count_past(&self, which: usize, bytes: usize) {
        if let Some(past) = self.past.get(which) {
            past.add(bytes as u64);
        }
        self.move_cell(which, bytes);
        if which == ALLOCATED {
            self.raise_peak();
        }
    }

    /// Notes what its caches count themselves. On slow paths, and on all of a watched thread.
    #[inline]
    pub(crate) fn got_cached(&self, bytes: usize) {
        self.move_cell(ALLOCATED, bytes);
    }

    /// As [`Thread::got_cached`].
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
                if let Some(cell) = self.cells.get(which) {
                    cell.store(cell.load(Relaxed).wrapping_add(bytes as u64), Relaxed);
                }
            }
        }
    }

    fn past(&self) -> Volume {
        let [allocated, freed] = &self.past;
        Volume { allocated: allocated.get(), freed: freed.get() }
    }

    fn cached(&self) -> Volume {
        let mut sum = Volume::default();
        self.caches().for_each(|cache| sum.add(cache.volume().since(cache.volume_before.get())));
        sum
    }

    /// What it allocated and freed. By the thread.
    pub(crate) fn volume(&self) -> Volume {
        let cached = self.cached();
        self.cached_balance.set(cached.balance());
        self.raise_peak();
        let mut sum = self.past();
        sum.add(cached);
        sum
    }

    /// Where the program may read what it allocated and freed, for the thread's life.
    pub(crate) fn cells(&self) -> (NonNull<u64>, NonNull<u64>) {
        let [allocated, freed] = &self.cells;
        (NonNull::from(allocated).cast(), NonNull::from(freed).cast())
    }

    /// When its cells move.
    pub(crate) fn moves(&self) -> Moves {
        self.moves.get()
    }

    /// Says when its cells are to move; those that always do must have façades.
    pub(crate) fn set_moves(&self, moves: Moves) {
        self.moves.set(moves);
    }

    /// Brings the cells and the peak up to date. By the thread, on some of its slow paths.
    pub(crate) fn refresh(&self) {
        let volume = self.volume();
        let [allocated, freed] = &self.cells;
        allocated.store(volume.allocated, Relaxed);
        freed.store(volume.freed, Relaxed);
    }

    /// Looks whether the balance is higher than ever. In the middle of an operation, which may be
    /// counted by then or not.
    pub(crate) fn note_peak(&self) {
        self.volume();
    }

    fn raise_peak(&self) {
        let balance = self.past().balance().wrapping_add(self.cached_balance.get());
        self.peak.set(self.peak.get().max(balance));
    }

    /// The most that it had allocated and not freed since the last reset, beyond what it had then.
    pub(crate) fn peak(&self) -> u64 {
        self.refresh();
        let beyond = self.peak.get().wrapping_sub(self.peak_base.get());
        u64::try_from(beyond).unwrap_or(0)
    }

    /// Begins anew with the peak.
    pub(crate) fn reset_peak(&self) {
        let balance = self.volume().balance();
        self.peak_base.set(balance);
        self.peak.set(balance);
    }
}

impl Recycled for Thread {
    fn next_free(&self) -> &Cell<Option<&'static Thread>> {
        &self.next_free
    }
}

impl RealCache {
    /// Bytes that the program ever got from this cache, and gave to it, exactly. By its thread, or
    /// when that is gone.
    pub(crate) fn volume(&self) -> Volume {
        let mut sum = Volume::default();
        let used = self.owner.ledger.used();
        for class in SizeClass::all().filter(|class| used >> class.index() & 1 != 0) {
            let (counts, popped) = (self.owner.counts(class), self.requests(class));
            let held = counts.filled.wrapping_sub(popped);
            let came_back = counts.flushed.wrapping_add(self.held(class) as u64);
            let size = modes::usable(class) as u64;
            sum.allocated = sum.allocated.wrapping_add(popped.wrapping_mul(size));
            sum.freed = sum.freed.wrapping_add(came_back.wrapping_sub(held).wrapping_mul(size));
        }
        let waiting = self.facade().map_or(0, Facade::waiting_bytes);
        sum.freed = sum.freed.wrapping_add(waiting);
        sum
    }
}
