//! Caches that belong to no thread: the program makes them, names them by a number in each call,
//! and empties them. Source: jemalloc(3), `tcache.*`, `MALLOCX_TCACHE`.
//!
//! Each is a real cache behind a lock of its own, which threads that take turns find free; should
//! two come at once, one waits. So nothing breaks where a program forgets to synchronise, and a
//! fork finds no cache in the middle of a change: the child keeps them all.

use super::fork_lock::ForkLock;
use super::thread_end;
use crate::back::metadata;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry::{self, REGISTRY};
use crate::front::supply::{flush, refill};
use crate::ground::checked::at;
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::lock::{Guard, RankedMutex};
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Numbers there are: those that `MALLOCX_TCACHE` has bits for.
const MOST: usize = 4094;

/// The place of a cache. Made on demand, used again, never unmapped.
struct Place(RankedMutex<Option<Cache>>);

/// A cache that only the holder of its place's lock uses.
#[derive(Clone, Copy)]
struct Cache(&'static RealCache);

// SAFETY: no thread's; it is reached under the place's lock only.
unsafe impl Send for Cache {}

static PLACES: [AtomicPtr<Place>; MOST] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST];
static COUNT: AtomicU32 = AtomicU32::new(0);

fn place(id: u32) -> Option<&'static Place> {
    let place = PLACES.get(id as usize)?;
    // Acquire: pairs with the Release in `make_place`.
    // SAFETY: places live for ever.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

fn places() -> impl Iterator<Item = (u32, &'static Place)> {
    let count = COUNT.load(Ordering::Relaxed);
    (0..count).filter_map(|id| Some((id, place(id)?)))
}

/// Calls `see` with each place's lock, for fork. Under the registry's lock.
pub(crate) fn for_each_lock(see: &mut dyn FnMut(&dyn ForkLock)) {
    places().for_each(|(_, place)| see(&place.0));
}

/// A new cache that takes pages where another does. `None`: no memory or number is left.
pub(crate) fn create(like: &RealCache) -> Option<u32> {
    let home = &like.owner.home;
    let cache = registry::take(home.get(), home.is_bound(), None)?;
    cache.largest.set(options::current().tcache_max);
    let id = file(Cache(cache));
    if id.is_none() {
        registry::put(cache);
    }
    id
}

fn file(cache: Cache) -> Option<u32> {
    let _registry = REGISTRY.lock();
    for (id, place) in places() {
        let mut held = place.0.lock();
        if held.is_none() {
            *held = Some(cache);
            return Some(id);
        }
    }
    make_place(cache)
}

/// Under the registry's lock.
fn make_place(cache: Cache) -> Option<u32> {
    let id = COUNT.load(Ordering::Relaxed);
    if id as usize >= MOST {
        return None;
    }
    let memory = metadata::allocate(size_of::<Place>(), 64)?.cast::<Place>();
    let place = Place(RankedMutex::new(LockRank::Explicit, Some(cache)));
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(place) };
    // SAFETY: just compared with the length.
    let slot = unsafe { at(&PLACES, id as usize) };
    // Release: pairs with the Acquire in `place`.
    slot.store(memory.as_ptr(), Ordering::Release);
    COUNT.store(id + 1, Ordering::Relaxed);
    Some(id)
}

/// The cache with a number, and the right to use it.
struct Held {
    cache: &'static RealCache,
    _lock: Guard<'static, Option<Cache>>,
}

fn hold(id: u32) -> Option<Held> {
    let lock = place(id)?.0.lock();
    let cache = (*lock)?.0;
    Some(Held { cache, _lock: lock })
}

/// Whether there is a cache with this number.
pub(crate) fn exists(id: u32) -> bool {
    hold(id).is_some()
}

/// A block of a class. Null: it does not hold the class, or no memory. `None`: no such cache.
pub(crate) fn allocate(id: u32, class: SizeClass) -> Option<*mut u8> {
    let held = hold(id)?;
    if !held.cache.holds(class) {
        return Some(core::ptr::null_mut());
    }
    let block = held.cache.bin(class).pop();
    Some(if block.is_null() { refill::request(held.cache, class) } else { block })
}

/// Takes a block of a class back. `false`: no such cache, or it does not hold the class; nothing
/// was done.
pub(crate) fn free(id: u32, class: SizeClass, block: *mut u8) -> bool {
    let Some(held) = hold(id).filter(|held| held.cache.holds(class)) else { return false };
    if !held.cache.bin(class).put(block) {
        refill::overflow(held.cache, class, block);
    }
    true
}

/// Sends home what a cache holds. `false`: there is none with this number.
pub(crate) fn flush(id: u32) -> bool {
    let Some(held) = hold(id) else { return false };
    let mut state = held.cache.owner.state.lock();
    held.cache.owner.activity.add(1);
    flush::all(held.cache, &mut state);
    true
}

/// As [`flush()`], and gives the number back.
pub(crate) fn destroy(id: u32) -> bool {
    let taken = place(id).and_then(|place| place.0.lock().take());
    let Some(Cache(cache)) = taken else { return false };
    thread_end::empty(cache);
    registry::put(cache);
    true
}
