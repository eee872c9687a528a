//! All thread caches: made on demand, recycled, never unmapped.

use super::cache_bin::CacheBin;
use super::facade::Facade;
use super::thread_cache::{BINS, ThreadCache};
use crate::back::metadata::{self, Pool, Recycled};
use crate::ground::checked::at;
use crate::ground::counters::{OwnedCount, SharedCount};
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::RankedMutex;
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
    /// The façade that stands before it when a mode wants one; made once, as for any thread.
    pub(crate) facade: AtomicPtr<Facade>,
    /// A thread has it.
    alive: AtomicBool,
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
    /// Refills so far, as far as they matter: the first few come from shared slabs.
    pub(crate) refills: Cell<u8>,
    /// Blocks that it sent home came back: see [`crate::middle::depot`].
    pub(crate) bulk: Cell<bool>,
    /// It missed or overflowed since collection last came by.
    pub(crate) missed: Cell<bool>,
    /// Requests when collection, and when an overflow, last came by.
    pub(crate) seen_requests: Cell<u64>,
    pub(crate) overflow_requests: Cell<u64>,
    /// Sum of all countdowns set so far.
    pub(crate) armed: OwnedCount,
}

// SAFETY: the cells are touched by the cache's thread only, or by the holder of the registry's lock
// once that thread is gone; the rest is atomic or locked.
unsafe impl Sync for RealCache {}

impl ColdBin {
    const fn new() -> ColdBin {
        ColdBin {
            lg_array: Cell::new(0),
            want: Cell::new(0),
            refills: Cell::new(0),
            bulk: Cell::new(false),
            missed: Cell::new(false),
            seen_requests: Cell::new(0),
            overflow_requests: Cell::new(0),
            armed: OwnedCount::new(),
        }
    }
}

/// Dead caches that wait for their next thread.
pub(crate) struct Dead(Pool<RealCache>);

// SAFETY: the pool is reached under the registry's lock only.
unsafe impl Send for Dead {}

/// The lock of the list of caches.
pub(crate) static REGISTRY: RankedMutex<Dead> =
    RankedMutex::new(LockRank::Registry, Dead(Pool::new()));
static FIRST: AtomicPtr<RealCache> = AtomicPtr::new(core::ptr::null_mut());

/// Caches that a thread has now.
pub(crate) static ALIVE: SharedCount = SharedCount::new();

/// A cache for the calling thread: one whose thread is gone, or a new one. `None`: no memory.
pub(crate) fn take(home: &'static Arena) -> Option<&'static RealCache> {
    let mut dead = REGISTRY.lock();
    let cache = match dead.0.take() {
        Some(cache) => {
            cache.owner.home.set(home);
            cache
        }
        None => make(home)?,
    };
    cache.alive.store(true, Ordering::Relaxed);
    ALIVE.add(1);
    Some(cache)
}

/// Takes back a cache that holds no blocks any more.
pub(crate) fn put(cache: &'static RealCache) {
    let mut dead = REGISTRY.lock();
    cache.alive.store(false, Ordering::Relaxed);
    ALIVE.sub(1);
    dead.0.put(cache);
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

fn make(home: &'static Arena) -> Option<&'static RealCache> {
    // First what may be kept if the second fails.
    let id = owner::next_id()?;
    let memory = metadata::allocate(size_of::<RealCache>(), 64)?.cast::<RealCache>();
    let cache = RealCache {
        front: ThreadCache::real(),
        owner: Owner::new(id, home),
        cold: [const { ColdBin::new() }; CLASSES],
        budget_used: Cell::new(0),
        next_visit: Cell::new(0),
        facade: AtomicPtr::new(core::ptr::null_mut()),
        alive: AtomicBool::new(false),
        next_free: Cell::new(None),
        next: AtomicPtr::new(FIRST.load(Ordering::Relaxed)),
    };
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(cache) };
    // SAFETY: just written, and never unmapped.
    let cache: &'static RealCache = unsafe { memory.as_ref() };
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

    /// Blocks of a class that are free and lie in this cache, or wait behind its façade.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        self.bin(class).level() + self.owner.in_depot(class) + self.waiting(class)
    }

    /// Whether a thread has it.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Relaxed)
    }
}

impl Recycled for RealCache {
    fn next_free(&self) -> &Cell<Option<&'static RealCache>> {
        &self.next_free
    }
}

const _: () = assert!(BINS * 32 < u16::MAX as usize);
