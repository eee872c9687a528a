//! All thread caches and all threads' records. They are made on demand, recycled, and never
//! unmapped.

use super::real_cache::{RealCache, Thread};
use super::thread::Moves;
use crate::back::metadata::{self, Pool};
use crate::front::bins::tls;
use crate::front::modes::watch;
use crate::ground::counters::SharedCount;
use crate::ground::sync::lock::{Guard, RankedMutex};
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::arenas::arena::Arena;
use crate::middle::owners::owner;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Caches and records for the next threads.
pub(crate) struct Dead {
    caches: Pool<RealCache>,
    threads: Pool<Thread>,
}

// SAFETY: the pools are reached under the registry's lock only.
unsafe impl Send for Dead {}

/// The registry, locked.
pub(crate) type Locked<'a> = Guard<'a, Dead>;

/// The lock of the lists of caches and of threads.
pub(crate) static REGISTRY: RankedMutex<Dead> =
    RankedMutex::new(LockRank::Registry, Dead { caches: Pool::new(), threads: Pool::new() });

static FIRST_CACHE: AtomicPtr<RealCache> = AtomicPtr::new(core::ptr::null_mut());
static FIRST_THREAD: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());
/// Where [`take_lost_of_few`] looks next. Null: at the newest record.
static NEXT_LOOK: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());

/// The number of caches in use.
pub(crate) static CACHES: SharedCount = SharedCount::new();

/// The number of threads that have a record.
pub(crate) static THREADS: SharedCount = SharedCount::new();

// --- caches ------------------------------------------------------------------------------------

/// Returns a cache for a thread, or for none: a recycled one or a new one. It takes pages from
/// `home`, and from no other arena if it is `bound`. Returns `None` if there is no memory.
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
    cache.begin(thread, bound);
    // The thread before may have armed countdowns at another rate.
    cache.follow_rate();
    if (watched || (thread.is_some() && watch::is_on())) && !cache.prepare_facade() {
        cache.end();
        dead.caches.put(cache);
        return None;
    }
    CACHES.add(1);
    Some(cache)
}

/// Takes back a cache that no longer holds blocks.
pub(crate) fn put(cache: &'static RealCache) {
    let mut dead = REGISTRY.lock();
    // Its thread may have been roused when it had left the cache.
    cache.emptied.forget();
    cache.end();
    CACHES.sub(1);
    dead.caches.put(cache);
}

/// Returns all caches that were ever made. The list only grows.
pub(crate) fn all() -> impl Iterator<Item = &'static RealCache> {
    // Acquire: pairs with the Release in `make`.
    let mut next = FIRST_CACHE.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: caches live for ever.
        let cache: &'static RealCache = unsafe { next.as_ref() }?;
        next = cache.next();
        Some(cache)
    })
}

fn make(home: &'static Arena) -> Option<&'static RealCache> {
    // The id is taken first, so that a failed allocation loses no more than an id.
    let id = owner::next_id()?;
    let memory = metadata::allocate(size_of::<RealCache>(), 64)?.cast::<RealCache>();
    let next = FIRST_CACHE.load(Ordering::Relaxed);
    // SAFETY: fresh memory of the right size and alignment.
    let cache = unsafe { RealCache::make_in(memory, next) };
    cache.owner.begin(id, home);
    owner::register(&cache.owner);
    // Release: pairs with the Acquire in `all`. Under the registry's lock.
    FIRST_CACHE.store(memory.as_ptr(), Ordering::Release);
    Some(cache)
}

// --- threads -----------------------------------------------------------------------------------

/// Returns a record for the calling thread, or `None` if there is no memory.
pub(crate) fn take_thread() -> Option<&'static Thread> {
    let mut dead = REGISTRY.lock();
    let thread = match dead.threads.take() {
        Some(thread) => thread,
        None => make_thread()?,
    };
    thread.begin(tls::address());
    THREADS.add(1);
    Some(thread)
}

/// Returns the record of the calling thread, also while a callback of the program runs in it.
/// Called under the registry's lock.
pub(crate) fn of_caller() -> Option<&'static Thread> {
    let is_mine = |thread: &&Thread| {
        thread.word().address() == Some(tls::address()) && !thread.word().is_lost()
    };
    threads().find(is_mine)
}

/// Gives a record back after its caches are gone.
pub(crate) fn put_thread(thread: &'static Thread) {
    let mut dead = REGISTRY.lock();
    thread.end();
    THREADS.sub(1);
    dead.threads.put(thread);
}

/// Takes back the records of all threads but one, in the child of a fork, where they do not exist.
pub(crate) fn abandon_threads_but(mine: *const Thread) {
    let gone =
        |thread: &&Thread| thread.word().address().is_some() && !core::ptr::eq(*thread, mine);
    threads().filter(gone).for_each(put_thread);
}

fn make_thread() -> Option<&'static Thread> {
    let memory = metadata::allocate(size_of::<Thread>(), 64)?.cast::<Thread>();
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(Thread::new(FIRST_THREAD.load(Ordering::Relaxed))) };
    // Release: pairs with the Acquire in `threads`. Under the registry's lock.
    FIRST_THREAD.store(memory.as_ptr(), Ordering::Release);
    // SAFETY: just written, and never unmapped.
    Some(unsafe { memory.as_ref() })
}

/// Returns all records that were ever made. The list only grows.
pub(crate) fn threads() -> impl Iterator<Item = &'static Thread> {
    from(newest_thread())
}

fn newest_thread() -> *mut Thread {
    // Acquire: pairs with the Release in `make_thread`.
    FIRST_THREAD.load(Ordering::Acquire)
}

/// Returns this record and those that are older.
fn from(mut next: *mut Thread) -> impl Iterator<Item = &'static Thread> {
    core::iter::from_fn(move || {
        // SAFETY: records live for ever.
        let thread: &'static Thread = unsafe { next.as_ref() }?;
        next = thread.next();
        Some(thread)
    })
}

/// Calls `see` with the word of each thread. No thread that makes its exit call can end meanwhile.
pub(crate) fn for_each_word(registry: &Locked<'_>, see: impl FnMut(&AtomicPtr<u8>)) {
    threads().filter_map(|thread| word_of(registry, thread)).for_each(see);
}

/// Returns the word of a record's thread. `None` if no thread has the record, or if the thread has
/// ended without its exit call: its word is gone with it.
pub(super) fn word_of<'a>(_registry: &'a Locked<'_>, thread: &Thread) -> Option<&'a AtomicPtr<u8>> {
    let word = thread.word().address().filter(|_| !thread.word().is_lost())?;
    // SAFETY: a thread ends only after it has removed its word under the lock, which is held here.
    // One that makes no exit call is asked for. It may end right after the answer, which is a
    // danger only if its stack is unmapped before the word is used, some instructions later.
    Some(unsafe { word.as_ref() })
}

/// Returns the next of these records whose thread has ended without its exit call. The caller has
/// it alone then: it takes the caches back, and gives the record to [`put_thread`].
pub(crate) fn take_lost(
    records: &mut impl Iterator<Item = &'static Thread>,
) -> Option<&'static Thread> {
    let _registry = REGISTRY.lock();
    let lost = records.find(|thread| thread.word().is_lost())?;
    lost.word().forget();
    Some(lost)
}

/// As [`take_lost`], of a few records, others each time, and only if the next thread needs a new
/// record. So lost records stay about as few as those of living threads.
pub(crate) fn take_lost_of_few() -> Option<&'static Thread> {
    let mut records = {
        let dead = REGISTRY.lock();
        if !dead.threads.is_empty() {
            return None;
        }
        // Relaxed: under the registry's lock.
        let first = NEXT_LOOK.load(Ordering::Relaxed);
        let mut few = from(if first.is_null() { newest_thread() } else { first });
        let records = [few.next(), few.next()];
        let next = few.next().map_or(core::ptr::null(), core::ptr::from_ref);
        NEXT_LOOK.store(next.cast_mut(), Ordering::Relaxed);
        records.into_iter().flatten()
    };
    take_lost(&mut records)
}

/// Calls `see` with the index of each thread's present arena.
pub(crate) fn for_each_arena(mut see: impl FnMut(u32)) {
    let registry = REGISTRY.lock();
    for_each_word(&registry, |word| {
        if let Some(cache) = RealCache::of(tls::named_by(word.load(Ordering::Relaxed))) {
            see(cache.owner.home.get().id());
        }
    });
}

/// Returns how many threads allocate from an arena at present.
pub(crate) fn count_in(arena: u32) -> u32 {
    let mut count = 0;
    for_each_arena(|id| count += u32::from(id == arena));
    count
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::front::life::give_back;
    use crate::middle::arenas::choose_arena;

    /// Returns a cache that belongs to no thread, of an arena that no other cache takes pages from.
    pub(crate) fn new_cache() -> &'static RealCache {
        let home = choose_arena::create().expect("an arena");
        take(home, true, None).expect("a cache")
    }

    /// Ends a cache of [`new_cache`].
    pub(crate) fn end(cache: &'static RealCache) {
        give_back::empty(cache);
        put(cache);
    }

    #[test]
    fn a_cache_stays_known_and_counts_for_no_arena_without_a_thread() {
        let cache = new_cache();
        let home = cache.owner.home.get().id();
        let is_known = || all().any(|known| core::ptr::eq(known, cache));
        assert!(is_known());
        assert_eq!(count_in(home), 0);
        end(cache);
        assert!(is_known());
    }
}
