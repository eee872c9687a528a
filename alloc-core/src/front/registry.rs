//! All thread caches: made on demand, recycled, never unmapped.

use super::cache_bin::CacheBin;
use super::facade::{self, Facade};
use super::switch;
use super::thread::{Moves, Thread, Volume};
use super::thread_cache::{BINS, ThreadCache};
use crate::back::metadata::{self, Pool, Recycled};
use crate::ground::checked::at;
use crate::ground::counters::{OwnedCount, SharedCount};
use crate::ground::options;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::{Guard, RankedMutex};
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::arena::Arena;
use crate::middle::owner::{self, Owner};
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A cache with bins that hold blocks.
#[repr(C)]
pub(crate) struct RealCache {
    /// The part that the fast paths touch. First, so that the TLS word names it.
    pub(crate) front: ThreadCache,
    /// The slow side, with the lock.
    pub(crate) owner: Owner,
    cold: [ColdBin; CLASSES],
    /// Bytes that the bins may hold, all together.
    pub(crate) budget_used: Cell<usize>,
    /// The class that collection visits next.
    pub(crate) next_visit: Cell<usize>,
    /// The request that is being served is to get a guarded sample.
    pub(crate) sample_due: Cell<bool>,
    /// The façade that stands before it when a mode wants one; made once, as for any thread.
    pub(crate) facade: AtomicPtr<Facade>,
    /// Whose it is. `None`: nobody's, or an explicit one, which is no thread's.
    thread: Cell<Option<&'static Thread>>,
    pub(crate) next_of_thread: Cell<Option<&'static RealCache>>,
    /// What its counts said when the thread took it.
    pub(crate) volume_before: Cell<Volume>,
    /// Its thread wants each of its operations seen.
    watched: AtomicBool,
    /// The largest blocks that it holds, in bytes; 0: it is off.
    pub(crate) largest: Cell<usize>,
    next_free: Cell<Option<&'static RealCache>>,
    next: AtomicPtr<RealCache>,
}

/// What the slow paths remember of a bin. Its thread's, or under the owner's lock when that is
/// gone.
pub(crate) struct ColdBin {
    /// log2 of the array's slots; 0: no array.
    pub(crate) lg_array: Cell<u8>,
    /// How many blocks the next refill asks for.
    pub(crate) want: Cell<u16>,
    /// log2 of the blocks of a first refill, by what the threads before needed.
    pub(crate) lg_habit: Cell<u8>,
    /// Refills so far, as far as they matter: the first few come from shared slabs.
    pub(crate) refills: Cell<u8>,
    /// Blocks that it sent home came back: see [`crate::middle::depot`].
    pub(crate) bulk: Cell<bool>,
    /// The most blocks that the bin may hold, or
    /// [`BY_CLASS`](crate::ground::cache_limits::BY_CLASS).
    pub(crate) most: Cell<u16>,
    /// It missed or overflowed since collection last came by.
    pub(crate) missed: Cell<bool>,
    /// Visits of collection in a row that found no miss, and the fewest blocks they found.
    pub(crate) calm: Cell<u8>,
    pub(crate) fewest: Cell<u16>,
    /// Requests when collection, and when an overflow, last came by.
    pub(crate) seen_requests: Cell<u64>,
    pub(crate) overflow_requests: Cell<u64>,
    /// Sum of all countdowns set so far.
    pub(crate) armed: OwnedCount,
    /// Requests until the next guarded sample, once the countdown has run out; 0: none is drawn.
    pub(crate) until_sample: Cell<usize>,
}

/// Visits without a miss after which a bin is thought to hold more than it needs.
const CALM: u8 = 4;

// SAFETY: the cells are touched by the cache's thread only, or by the holder of the registry's lock
// once that thread is gone; the rest is atomic or locked.
unsafe impl Sync for RealCache {}

impl ColdBin {
    const fn new() -> ColdBin {
        ColdBin {
            lg_array: Cell::new(0),
            want: Cell::new(0),
            lg_habit: Cell::new(0),
            most: Cell::new(0),
            refills: Cell::new(0),
            bulk: Cell::new(false),
            missed: Cell::new(false),
            calm: Cell::new(0),
            fewest: Cell::new(u16::MAX),
            seen_requests: Cell::new(0),
            overflow_requests: Cell::new(0),
            armed: OwnedCount::new(),
            until_sample: Cell::new(0),
        }
    }

    /// One visit of collection, which finds `level` blocks: how many of them were not needed. Half
    /// of the fewest that some visits found, if there was no miss between these.
    pub(crate) fn idle(&self, level: usize, missed: bool) -> usize {
        let fewest = self.fewest.get().min(u16::try_from(level).unwrap_or(u16::MAX));
        let calm = if missed { 0 } else { self.calm.get() + 1 };
        let done = missed || calm == CALM;
        self.calm.set(if done { 0 } else { calm });
        self.fewest.set(if done { u16::MAX } else { fewest });
        if calm == CALM { usize::from(fewest / 2) } else { 0 }
    }
}

/// What waits for the next thread.
pub(crate) struct Dead {
    caches: Pool<RealCache>,
    pub(crate) threads: Pool<Thread>,
}

// SAFETY: the pools are reached under the registry's lock only.
unsafe impl Send for Dead {}

/// The registry, locked.
pub(crate) type Locked<'a> = Guard<'a, Dead>;

/// The lock of the lists of caches and of threads.
pub(crate) static REGISTRY: RankedMutex<Dead> =
    RankedMutex::new(LockRank::Registry, Dead { caches: Pool::new(), threads: Pool::new() });
static FIRST: AtomicPtr<RealCache> = AtomicPtr::new(core::ptr::null_mut());

/// Caches that somebody has now.
pub(crate) static ALIVE: SharedCount = SharedCount::new();

/// A cache for a thread, or for nobody: one that was given back, or a new one. It takes pages from
/// `home`, and from no other arena if it is `bound`. `None`: no memory.
pub(crate) fn take(
    home: &'static Arena,
    bound: bool,
    thread: Option<&'static Thread>,
) -> Option<&'static RealCache> {
    let mut dead = REGISTRY.lock();
    let watched = thread.is_some_and(|thread| thread.moves() == Moves::Always);
    let cache = match dead.caches.take() {
        Some(cache) => {
            cache.owner.home.set(home);
            cache
        }
        None => make(home)?,
    };
    cache.watch(watched);
    if (watched || (thread.is_some() && switch::is_watching())) && !facade::prepare(cache) {
        dead.caches.put(cache);
        return None;
    }
    cache.owner.home.bind(bound);
    cache.thread.set(thread);
    cache.volume_before.set(cache.volume());
    let options = options::current();
    cache.largest.set(if options.tcache { options.tcache_max } else { 0 });
    let limits = &options.tcache_ncached_max;
    SizeClass::all().for_each(|class| cache.cold(class).most.set(limits.of(class)));
    ALIVE.add(1);
    Some(cache)
}

/// Takes back a cache that holds no blocks any more.
pub(crate) fn put(cache: &'static RealCache) {
    let mut dead = REGISTRY.lock();
    cache.thread.set(None);
    cache.next_of_thread.set(None);
    ALIVE.sub(1);
    dead.caches.put(cache);
}

/// All caches ever made. The list only grows.
pub(crate) fn all() -> impl Iterator<Item = &'static RealCache> {
    // Acquire: pairs with the Release in `make`.
    let mut next = FIRST.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: caches live for ever.
        let cache: &'static RealCache = unsafe { next.as_ref() }?;
        next = cache.next.load(Ordering::Relaxed);
        Some(cache)
    })
}

/// What every cache begins as. It is copied from here: a record of 9 KB that is made on the stack
/// first costs each thread pages of its stack for good.
// In pages that are read-only once the loader has relocated them.
#[unsafe(link_section = ".data.rel.ro.lumalloc")]
static NEW: RealCache = RealCache {
    front: ThreadCache::real(),
    owner: Owner::new(),
    cold: [const { ColdBin::new() }; CLASSES],
    budget_used: Cell::new(0),
    next_visit: Cell::new(0),
    sample_due: Cell::new(false),
    facade: AtomicPtr::new(core::ptr::null_mut()),
    thread: Cell::new(None),
    next_of_thread: Cell::new(None),
    volume_before: Cell::new(Volume { allocated: 0, freed: 0 }),
    watched: AtomicBool::new(false),
    largest: Cell::new(0),
    next_free: Cell::new(None),
    next: AtomicPtr::new(core::ptr::null_mut()),
};

fn make(home: &'static Arena) -> Option<&'static RealCache> {
    // First what may be kept if the second fails.
    let id = owner::next_id()?;
    let memory = metadata::allocate(size_of::<RealCache>(), 64)?.cast::<RealCache>();
    // SAFETY: fresh memory of the right size and alignment; nobody uses the original.
    unsafe { memory.as_ptr().copy_from_nonoverlapping(&raw const NEW, 1) };
    // SAFETY: just written, and never unmapped.
    let cache: &'static RealCache = unsafe { memory.as_ref() };
    cache.next.store(FIRST.load(Ordering::Relaxed), Ordering::Relaxed);
    cache.owner.begin(id, home);
    owner::register(&cache.owner);
    // Release: pairs with the Acquire in `all`. Under the registry's lock.
    FIRST.store(core::ptr::from_ref(cache).cast_mut(), Ordering::Release);
    Some(cache)
}

impl RealCache {
    /// The bin of a class.
    #[inline]
    pub(crate) fn bin(&self, class: SizeClass) -> &CacheBin {
        self.front.bin(class.bin())
    }

    /// What is remembered of the bin of a class.
    #[inline]
    pub(crate) fn cold(&self, class: SizeClass) -> &ColdBin {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at(&self.cold, class.index()) }
    }

    /// Requests of a class that this cache has served, exactly.
    pub(crate) fn requests(&self, class: SizeClass) -> u64 {
        let left = i64::from(self.bin(class).countdown_seen());
        self.cold(class).armed.get().wrapping_sub(left as u64)
    }

    /// The façade that was made for it, if one was.
    #[inline]
    pub(crate) fn facade(&self) -> Option<&'static Facade> {
        // Acquire: pairs with the Release in `facade::make`.
        // SAFETY: façades live for ever.
        unsafe { self.facade.load(Ordering::Acquire).as_ref() }
    }

    /// Blocks of a class that are free and wait behind its façade.
    pub(crate) fn waiting(&self, class: SizeClass) -> usize {
        self.facade().map_or(0, |facade| facade.waiting(class))
    }

    /// Blocks of a class that are free and lie in this cache.
    pub(crate) fn held(&self, class: SizeClass) -> usize {
        self.bin(class).level() + self.owner.in_depot(class)
    }

    /// As [`RealCache::held`], with those that wait behind its façade.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        self.held(class) + self.waiting(class)
    }

    /// The thread that has it. `None`: it is explicit.
    #[inline]
    pub(crate) fn thread(&self) -> Option<&'static Thread> {
        self.thread.get()
    }

    /// Whether its thread wants each of its operations seen.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Says whether. Under the registry's lock, with a façade made.
    pub(crate) fn watch(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Whether it is bound to an arena.
    #[inline]
    pub(crate) fn is_for(&self, arena: u32) -> bool {
        self.owner.home.is_bound() && self.owner.home.get().id() == arena
    }

    /// Whether it holds blocks of a class.
    #[inline]
    pub(crate) fn holds(&self, class: SizeClass) -> bool {
        class.size() <= self.largest.get()
    }
}

impl Recycled for RealCache {
    fn next_free(&self) -> &Cell<Option<&'static RealCache>> {
        &self.next_free
    }
}

const _: () = assert!(BINS * 32 < u16::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_no_visit_found_needed_is_idle() {
        let cold = ColdBin::new();
        let visits = [90, 40, 100, 60].map(|level| cold.idle(level, false));
        assert_eq!(visits, [0, 0, 0, 20]);
        let visits = [90, 90, 90].map(|level| cold.idle(level, false));
        assert_eq!(visits, [0; 3]);
        assert_eq!(cold.idle(90, true), 0, "a miss");
        let visits = [90, 90, 90, 90].map(|level| cold.idle(level, false));
        assert_eq!(visits, [0, 0, 0, 45], "and four visits more");
    }
}
