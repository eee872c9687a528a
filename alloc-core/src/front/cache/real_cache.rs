//! A thread cache with bins that hold blocks: what the fast paths touch, the owner of its slabs,
//! and what the slow paths remember of each bin.

use super::caches_of_thread::OfThread;
use super::cold_bin::ColdBin;
use super::drawn_at::{DrawnAt, run_out};
use super::emptied::Emptied;
use super::facade::Facade;
use super::thread;
use super::volume::Volume;
#[cfg(feature = "checks")]
use crate::back::map::page_map;
use crate::back::metadata::Recycled;
use crate::back::record_table::Numbered;
use crate::front::bins::cache_bin::{CacheBin, Slot};
use crate::front::bins::thread_cache::{BINS, Kind, ThreadCache};
use crate::front::modes::block_size::usable;
use crate::front::modes::until_sample::{Due, UntilSample};
use crate::front::modes::{guarded, watch};
use crate::ground::checked::at;
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
use crate::ground::options;
use crate::ground::size_class::{BIN_BYTES, CLASSES, SizeClass};
use crate::ground::sync::lock;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::profile::sampler;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A thread whose caches are [`RealCache`]s.
pub(crate) type Thread = thread::Thread<RealCache>;

/// A cache with bins that hold blocks.
#[repr(C)]
pub(crate) struct RealCache {
    /// The part that the fast paths touch. The first field, so that the TLS word points to it.
    pub(crate) front: ThreadCache,
    /// The slow side, with the lock.
    pub(crate) owner: Owner,
    cold: [ColdBin; CLASSES],
    /// Bytes for which all bins together have room.
    pub(crate) budget_used: Cell<usize>,
    /// The class that collection looks at next.
    pub(crate) next_visit: Cell<usize>,
    /// What the present request gets in place of an ordinary block.
    pub(crate) due: Cell<Due>,
    /// Bytes past the bins until the next sample of the heap profiler.
    pub(crate) until_byte: UntilSample,
    /// The rate at which its samples were drawn.
    pub(super) drawn_at: DrawnAt,
    /// The façade before this cache, made once, when a mode needs it.
    facade: AtomicPtr<Facade>,
    /// The thread that has this cache. `None` for an explicit cache, or if no thread has it.
    thread: Cell<Option<&'static Thread>>,
    next_of_thread: Cell<Option<&'static RealCache>>,
    /// The cache's volume when the thread took it.
    volume_before: Cell<Volume>,
    /// Whether its thread wants each operation seen.
    watched: AtomicBool,
    /// Which blocks of the bins another thread has taken out.
    pub(crate) emptied: Emptied,
    /// The largest blocks that it holds, in bytes. 0 if it is off.
    pub(crate) largest: Cell<usize>,
    /// Whether a thread or the program has it. Changed under the registry's lock.
    in_use: Cell<bool>,
    next_free: Cell<Option<&'static RealCache>>,
    next: AtomicPtr<RealCache>,
}

// SAFETY: only the cache's thread touches the cells, or the holder of the registry's lock once that
// thread has ended. The owner's lock guards the ledger's table. The rest is atomic or locked.
unsafe impl Sync for RealCache {}

/// The initial state of every cache. It is copied, because a record of 9 KB built on the stack
/// would cost each thread stack pages for good.
// In pages that are read-only after the loader's relocations.
#[unsafe(link_section = ".data.rel.ro.lumalloc")]
static NEW: RealCache = RealCache {
    front: ThreadCache::real(),
    owner: Owner::new(),
    cold: [const { ColdBin::new() }; CLASSES],
    budget_used: Cell::new(0),
    next_visit: Cell::new(0),
    due: Cell::new(Due::Nothing),
    until_byte: UntilSample::new(),
    drawn_at: DrawnAt::nothing(),
    facade: AtomicPtr::new(core::ptr::null_mut()),
    thread: Cell::new(None),
    next_of_thread: Cell::new(None),
    volume_before: Cell::new(Volume { allocated: 0, freed: 0 }),
    watched: AtomicBool::new(false),
    emptied: Emptied::nothing(),
    largest: Cell::new(0),
    in_use: Cell::new(false),
    next_free: Cell::new(None),
    next: AtomicPtr::new(core::ptr::null_mut()),
};

impl RealCache {
    /// Makes fresh memory a cache that no thread has, before `next` in the list.
    ///
    /// # Safety
    /// `memory` must be writable, of a cache's size and alignment, unknown to others, and never
    /// unmapped.
    pub(super) unsafe fn make_in(
        memory: NonNull<RealCache>,
        next: *mut RealCache,
    ) -> &'static RealCache {
        // SAFETY: the caller's promise; no thread uses the original.
        unsafe { memory.as_ptr().copy_from_nonoverlapping(&raw const NEW, 1) };
        // SAFETY: just written, and never unmapped.
        let cache: &'static RealCache = unsafe { memory.as_ref() };
        cache.next.store(next, Ordering::Relaxed);
        cache
    }

    /// Returns the next cache in the list of all caches.
    pub(super) fn next(&self) -> *mut RealCache {
        self.next.load(Ordering::Relaxed)
    }

    /// Hands this cache to a thread, or for `None` to the program as an explicit cache, with the
    /// limits of the options. With `bound` it takes pages from its arena only.
    pub(super) fn begin(&self, thread: Option<&'static Thread>, bound: bool) {
        self.front.begin();
        self.in_use.set(true);
        self.owner.home.bind(bound);
        self.thread.set(thread);
        self.volume_before.set(self.volume());
        let options = options::current();
        self.largest.set(if options.tcache { options.tcache_max } else { 0 });
        let limits = &options.tcache_ncached_max;
        SizeClass::all().for_each(|class| self.cold(class).most.set(limits.of(class)));
    }

    /// Notes that no thread has this cache any more.
    pub(super) fn end(&self) {
        self.in_use.set(false);
        self.thread.set(None);
        self.next_of_thread.set(None);
        // The next thread has other cells.
        self.facade().into_iter().for_each(|facade| facade.front().set_cells(None));
    }

    /// Returns whether a thread or the program has the cache. The registry is locked. If not, it
    /// holds nothing, and threads that lock its owner only read there, unless they make a pass.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use.get()
    }

    /// Returns the real cache whose front `cache` is, or that stands behind the façade `cache`.
    #[inline]
    pub(crate) fn of(cache: &'static ThreadCache) -> Option<&'static RealCache> {
        match cache.kind() {
            // SAFETY: of kind Real.
            Kind::Real => Some(unsafe { RealCache::of_real(cache) }),
            Kind::Mode => Facade::of(cache).map(RealCache::behind),
            Kind::Empty | Kind::Reentrant | Kind::Uncached => None,
        }
    }

    /// Returns the real cache whose front `cache` is, if no mode is in force for its operations.
    /// Now and then one of its requests may get a sample of the heap profiler.
    #[inline(always)]
    pub(crate) fn plain(cache: &'static ThreadCache) -> Option<&'static RealCache> {
        let is_watched = watch::is_on() || guarded::is_on() || sampler::sees_all();
        // SAFETY: of kind Real.
        (cache.kind() == Kind::Real && !is_watched).then(|| unsafe { RealCache::of_real(cache) })
    }

    /// Returns the real cache behind a façade.
    #[inline(always)]
    pub(crate) fn behind(facade: &'static Facade) -> &'static RealCache {
        // SAFETY: façades are made before fronts of real caches only (`prepare_facade`).
        unsafe { RealCache::of_real(facade.behind()) }
    }

    /// # Safety
    /// `cache` must be of kind [`Kind::Real`].
    #[inline(always)]
    unsafe fn of_real(cache: &'static ThreadCache) -> &'static RealCache {
        // SAFETY: a front of kind Real is the first field of a real cache, which lives for ever.
        unsafe { &*core::ptr::from_ref(cache).cast::<RealCache>() }
    }

    /// Returns the bin of a class.
    #[inline]
    pub(crate) fn bin(&self, class: SizeClass) -> &CacheBin {
        self.front.bin(class.bin())
    }

    /// Returns what the slow paths remember of the bin of a class.
    #[inline]
    pub(crate) fn cold(&self, class: SizeClass) -> &ColdBin {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at(&self.cold, class.index()) }
    }

    /// Returns the exact number of requests of a class that it has served.
    pub(crate) fn requests(&self, class: SizeClass) -> u64 {
        let left = i64::from(self.bin(class).countdown_seen());
        self.cold(class).armed.get().wrapping_sub(left as u64)
    }

    /// Returns the façade of this cache, if it has one.
    #[inline]
    pub(crate) fn facade(&self) -> Option<&'static Facade> {
        // Acquire: pairs with the Release in `prepare_facade`.
        // SAFETY: façades live for ever.
        unsafe { self.facade.load(Ordering::Acquire).as_ref() }
    }

    /// Makes the façade if there is none, and tunes it to the modes in force and to whether another
    /// thread takes blocks. Called under the registry's lock. Returns `false` without memory.
    pub(crate) fn prepare_facade(&'static self) -> bool {
        let facade = self.facade().or_else(|| {
            let made = Facade::make(&self.front)?;
            // Release: pairs with the Acquire in `facade`.
            self.facade.store(core::ptr::from_ref(made).cast_mut(), Ordering::Release);
            Some(made)
        });
        let cells = self.thread().filter(|_| self.is_watched()).map(Thread::live_cells);
        facade.map(|facade| facade.tune(cells, self.emptied.is_set())).is_some()
    }

    /// Returns how many free blocks of a class wait in quarantine.
    pub(crate) fn waiting(&self, class: SizeClass) -> usize {
        self.facade().map_or(0, |facade| facade.waiting(class))
    }

    /// Returns how many free blocks of a class its bin and overflow stack hold.
    pub(crate) fn held(&self, class: SizeClass) -> usize {
        self.in_bin(class) + self.owner.in_overflow(class)
    }

    /// Returns how many free blocks of a class its bin holds.
    pub(crate) fn in_bin(&self, class: SizeClass) -> usize {
        self.bin(class).level().saturating_sub(self.emptied.gone(class))
    }

    /// Writes the blocks that the bin of a class holds to `room`, as far as they fit, and returns
    /// them. Called under the owner's lock. What its thread does meanwhile may be seen or not.
    pub(crate) fn see_bin<'a>(&self, class: SizeClass, room: &'a mut [Slot]) -> &'a mut [Slot] {
        let count = self.in_bin(class).min(room.len());
        let blocks = room.get_mut(..count).unwrap_or_default();
        self.bin(class).see(self.emptied.gone(class), blocks);
        blocks
    }

    /// Takes the owner's lock, and makes the bins whole if another thread has taken blocks out of
    /// them. Called by the cache's thread, or where that has ended.
    #[inline]
    pub(crate) fn lock_own(&self) -> lock::Guard<'_, OwnerState> {
        self.made_whole(self.owner.state.lock())
    }

    /// As [`RealCache::lock_own`], if the lock is free.
    pub(crate) fn try_lock_own(&self) -> Option<lock::Guard<'_, OwnerState>> {
        Some(self.made_whole(self.owner.state.try_lock()?))
    }

    #[inline]
    fn made_whole<'a>(&self, state: lock::Guard<'a, OwnerState>) -> lock::Guard<'a, OwnerState> {
        if self.emptied.is_set() {
            self.emptied.settle(|class| self.bin(class));
            self.follow_rate();
        }
        state
    }

    /// Makes the bins whole, as [`RealCache::lock_own`]. The cache's thread calls this before each
    /// pop, on slow paths. The caller holds no cache's lock.
    #[inline]
    pub(crate) fn ready(&self) {
        self.owner.state.check_order();
        if self.emptied.is_set() {
            drop(self.lock_own());
        }
    }

    /// As [`RealCache::held`], with those in quarantine.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        self.held(class) + self.waiting(class)
    }

    /// Calls `see` with each free block that the cache holds, of the classes of which `wanted` has
    /// a bit, and with those in quarantine. What its thread does meanwhile may be seen or not.
    pub(crate) fn for_each_free(&self, wanted: u64, mut see: impl FnMut(*mut u8)) {
        let state = self.owner.state.lock();
        for class in SizeClass::all().filter(|class| wanted >> class.index() & 1 != 0) {
            self.bin(class).for_each_seen(self.emptied.gone(class), &mut see);
            state.overflow.for_each(class, &mut see);
        }
        self.facade().into_iter().for_each(|facade| facade.for_each_waiting(&mut see));
    }

    /// Returns the cache's thread. `None` for an explicit cache.
    #[inline]
    pub(crate) fn thread(&self) -> Option<&'static Thread> {
        self.thread.get()
    }

    /// Returns whether the cache's thread wants each operation seen.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Sets whether the cache's thread wants each operation seen. Called under the registry's lock,
    /// before the façade is made, which is tuned to it.
    pub(crate) fn watch(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
    }

    /// Charges requests of a class from now on to the present arena. Called by the cache's thread
    /// under the owner's lock.
    #[inline]
    pub(crate) fn settle_account(&self, class: SizeClass) {
        let Owner { ledger, home, .. } = &self.owner;
        ledger.settle(class.index(), home.get().id(), || self.requests(class));
    }

    /// Forgets what was drawn and armed at another rate of the profiler. By the cache's thread.
    pub(crate) fn follow_rate(&self) {
        if self.drawn_at.follow() {
            self.until_byte.forget();
            SizeClass::all().for_each(|class| run_out(self.bin(class), self.cold(class)));
        }
    }

    /// Returns whether this cache holds blocks of a class.
    #[inline]
    pub(crate) fn holds(&self, class: SizeClass) -> bool {
        class.size() <= self.largest.get()
    }

    /// Checks that the blocks in the bins are of the bins' classes. Called by the cache's thread.
    #[cfg(feature = "checks")]
    pub(crate) fn check(&self) {
        for class in SizeClass::all() {
            let bin = self.bin(class);
            holds(bin.level() <= bin.capacity());
            // SAFETY: the caller is the bin's thread.
            let blocks = unsafe { bin.blocks() };
            let bin_of = |block: &*mut u8| page_map::lookup(block.expose_provenance()).bin_offset();
            holds(blocks.iter().all(|block| bin_of(block) == class.bin() * BIN_BYTES));
        }
    }

    /// Returns exactly the bytes that the program ever got from this cache and gave back to it.
    /// Called by its thread, or after that has ended, as [`RealCache::ready`].
    pub(crate) fn volume(&self) -> Volume {
        self.ready();
        let mut sum = Volume::default();
        for class in self.owner.ledger.used_classes() {
            let (counts, popped) = (self.owner.counts(class), self.requests(class));
            let held = counts.filled.wrapping_sub(popped);
            let came_back = counts.flushed.wrapping_add(self.held(class) as u64);
            let size = usable(class) as u64;
            sum.allocated = sum.allocated.wrapping_add(popped.wrapping_mul(size));
            sum.freed = sum.freed.wrapping_add(came_back.wrapping_sub(held).wrapping_mul(size));
        }
        sum.freed = sum.freed.wrapping_add(self.facade().map_or(0, Facade::waiting_bytes));
        sum
    }
}

impl Numbered for RealCache {
    fn number(&self) -> u32 {
        self.owner.home.get().id()
    }
}

impl OfThread for RealCache {
    fn next_of_thread(&self) -> &Cell<Option<&'static RealCache>> {
        &self.next_of_thread
    }

    fn is_bound(&self) -> bool {
        self.owner.home.is_bound()
    }

    fn volume_of_thread(&self) -> Volume {
        self.volume().since(self.volume_before.get())
    }
}

impl Recycled for RealCache {
    fn next_free(&self) -> &Cell<Option<&'static RealCache>> {
        &self.next_free
    }
}

// The page map has 16 bits for the offset of a bin. The TLS word of a thread points to the front.
const _: () = assert!(BINS * BIN_BYTES < u16::MAX as usize);
const _: () = assert!(core::mem::offset_of!(RealCache, front) == 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::bins::thread_cache::{CALLBACK, EMPTY, HOOK, REENTRANT, UNCACHED};
    use crate::front::cache::registry::tests::{end, new_cache};

    #[test]
    fn a_front_leads_to_the_cache_and_the_facade_behind_it() {
        let cache = new_cache();
        let is_cache = |found: Option<&RealCache>| found.is_some_and(|it| core::ptr::eq(it, cache));
        assert!(is_cache(RealCache::of(&cache.front)) && is_cache(RealCache::plain(&cache.front)));
        assert!(Facade::of(&cache.front).is_none());

        assert!(cache.prepare_facade());
        let facade = cache.facade().unwrap();
        let front = facade.front();
        assert!(is_cache(RealCache::of(front)) && RealCache::plain(front).is_none());
        assert!(Facade::of(front).is_some_and(|it| core::ptr::eq(it, facade)));
        end(cache);
    }

    #[test]
    fn the_shared_facades_lead_nowhere() {
        for front in [&EMPTY, &REENTRANT, &UNCACHED, &CALLBACK, &HOOK] {
            assert!(RealCache::of(front).is_none() && RealCache::plain(front).is_none());
            assert!(Facade::of(front).is_none());
        }
    }
}
