//! Explicit caches, which belong to no thread. The program makes them, names them by a number in
//! each call, and empties them. Source: jemalloc(3), `tcache.*`, `MALLOCX_TCACHE`.
//!
//! Each is a real cache behind its own lock, which threads that take turns find free; if two come
//! at once, one waits. So nothing breaks if a program forgets to synchronise. A fork finds no
//! explicit cache in the middle of a change, so the child keeps them all.

use super::fork_lock::ForkLock;
use super::{background, give_back};
use crate::back::metadata;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry::{self, REGISTRY};
use crate::front::supply::{flush, refill};
use crate::ground::checked::at;
use crate::ground::options;
use crate::ground::size_class::{BIN_BYTES, SizeClass};
use crate::ground::sync::lock::{Guard, RankedMutex};
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::arenas::arena::Arena;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The number of explicit caches that `MALLOCX_TCACHE` has bits for.
const MOST: usize = 4094;

/// The place of a cache. Places are made on demand, reused, and never unmapped.
struct Place(RankedMutex<Option<Cache>>);

/// A cache that only the holder of its place's lock uses.
#[derive(Clone, Copy)]
struct Cache(&'static RealCache);

// SAFETY: the cache belongs to no thread, and is reached under the place's lock only.
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

/// Calls `see` with each place's lock, for fork. Called under the registry's lock.
pub(crate) fn for_each_lock(see: &mut dyn FnMut(&'static dyn ForkLock)) {
    places().for_each(|(_, place)| see(&place.0));
}

/// Creates a cache that takes pages from the arena of another cache. Returns `None` if no memory or
/// number is left. A created arena stays as long as there is such a cache.
pub(crate) fn create(like: &RealCache) -> Option<u32> {
    let home = &like.owner.home;
    let arena = home.get();
    if home.is_bound() && !arena.life().bind_cache() {
        return None;
    }
    let cache = registry::take(arena, home.is_bound(), None);
    if let Some(cache) = cache {
        cache.largest.set(options::current().tcache_max);
        if let Some(id) = file(Cache(cache)) {
            return Some(id);
        }
        put(cache);
    } else if home.is_bound() {
        arena.life().unbind_cache();
    }
    None
}

/// Gives a cache back that no place holds.
fn put(cache: &'static RealCache) {
    let home = &cache.owner.home;
    if home.is_bound() {
        home.get().life().unbind_cache();
    }
    registry::put(cache);
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

/// Makes a new place for a cache. Called under the registry's lock.
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

/// The cache with a number, and its lock.
struct Held {
    cache: &'static RealCache,
    _lock: Guard<'static, Option<Cache>>,
}

fn hold(id: u32) -> Option<Held> {
    let lock = place(id)?.0.lock();
    let cache = (*lock)?.0;
    Some(Held { cache, _lock: lock })
}

/// Returns whether there is a cache with this number.
pub(crate) fn exists(id: u32) -> bool {
    hold(id).is_some()
}

/// Returns the arena of the cache with this number, or `None` if there is no such cache.
pub(crate) fn home(id: u32) -> Option<&'static Arena> {
    hold(id).map(|held| held.cache.owner.home.get())
}

/// Returns the arena of the cache with this number if that is a created one.
pub(crate) fn created_home(id: u32) -> Option<&'static Arena> {
    home(id).filter(|arena| arena.is_created())
}

/// Returns a block of a class. Null if the cache does not hold the class, or if there is no memory.
/// `None` if there is no such cache.
pub(crate) fn allocate(id: u32, class: SizeClass) -> Option<*mut u8> {
    let held = hold(id)?;
    if !held.cache.holds(class) {
        return Some(core::ptr::null_mut());
    }
    let block = held.cache.front.pop(class.bin() * BIN_BYTES);
    Some(if block.is_null() { refill::request(held.cache, class) } else { block })
}

/// Frees a block of a class. Returns `false`, and does nothing, if there is no such cache or it
/// does not hold the class.
pub(crate) fn free(id: u32, class: SizeClass, block: *mut u8) -> bool {
    let Some(held) = hold(id).filter(|held| held.cache.holds(class)) else { return false };
    if !held.cache.bin(class).put(block) {
        refill::overflow(held.cache, class, block);
    }
    true
}

/// Gives the blocks of a cache back to their slabs. Returns `false` if there is no cache with this
/// number.
pub(crate) fn flush(id: u32) -> bool {
    {
        let Some(held) = hold(id) else { return false };
        let mut state = held.cache.owner.state.lock();
        held.cache.owner.activity.add(1);
        flush::all(held.cache, &mut state);
    }
    background::tick_outside();
    true
}

/// As [`flush()`], but also gives the number back.
pub(crate) fn destroy(id: u32) -> bool {
    let Some(place) = place(id) else { return false };
    // A fork waits for the place, so that no child has a cache with blocks that is in no place.
    let mut place = place.0.lock();
    let Some(Cache(cache)) = &*place else { return false };
    let cache = *cache;
    give_back::empty(cache);
    *place = None;
    drop(place);
    put(cache);
    background::tick_outside();
    true
}
