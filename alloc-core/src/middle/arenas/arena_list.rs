//! All arenas by their index: automatic ones, made on demand, and those that the program creates.
//!
//! ```text
//!   0 ……… count ……… reserved ………………… end
//!   made   │  to be   │  created, some of them destroyed: their
//!          │  made    │  indices are the first to be taken again
//! ```
//! Until the first arena is created, any index below the limit may become an automatic arena. From
//! then on the indices below the limit of that moment are kept for automatic ones. Records are
//! never unmapped, so an index leads to the same record in each of its lives.

use super::arena::Arena;
use super::arena_settings;
use crate::back::system::provider::system::system;
use crate::ground::checked::at;
use crate::ground::probes;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
pub(crate) use crate::middle::arena_counts::MAX_ARENAS;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static ARENAS: [AtomicPtr<Arena>; MAX_ARENAS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_ARENAS];
/// How many automatic arenas there are.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The first index of a created arena; 0: none was created yet.
static RESERVED: AtomicU32 = AtomicU32::new(0);
/// One more than the index of the last created arena.
static END: AtomicU32 = AtomicU32::new(0);
/// Created arenas that are live, and those ever destroyed.
static CREATED: AtomicU32 = AtomicU32::new(0);
static DESTROYED: AtomicU32 = AtomicU32::new(0);

/// Guards the making of arenas and their return to life.
pub(crate) static MAKING: RankedMutex<()> = RankedMutex::new(LockRank::Arenas, ());

/// The arena with an index, if it was made. It may have been destroyed since.
#[inline]
pub(crate) fn by_id(id: u32) -> Option<&'static Arena> {
    let slot = ARENAS.get(id as usize)?;
    // Acquire: pairs with the Release in `publish`.
    // SAFETY: arenas live for ever.
    unsafe { slot.load(Ordering::Acquire).as_ref() }
}

/// How many automatic arenas have been made.
pub(crate) fn count() -> u32 {
    // Acquire: pairs with the Release in `make_next`.
    COUNT.load(Ordering::Acquire)
}

/// How many arenas there are, created ones too.
pub(crate) fn open() -> u32 {
    count() + CREATED.load(Ordering::Relaxed)
}

/// How many arenas were ever destroyed.
pub(crate) fn destroyed() -> u32 {
    DESTROYED.load(Ordering::Relaxed)
}

/// The first index that no automatic arena will have, as far as that is known. `None`: no arena was
/// created yet.
#[inline]
pub(crate) fn reserved() -> Option<u32> {
    let reserved = RESERVED.load(Ordering::Relaxed);
    (reserved != 0).then_some(reserved)
}

/// One more than the largest index that a created arena ever had; 0: none was created.
pub(crate) fn end() -> u32 {
    // Acquire: pairs with the Release in `create`.
    END.load(Ordering::Acquire)
}

/// The automatic arenas.
pub(crate) fn automatic() -> impl Iterator<Item = &'static Arena> {
    (0..count()).filter_map(by_id)
}

/// All arenas, also those that have been destroyed, which hold nothing.
pub(crate) fn all() -> impl Iterator<Item = &'static Arena> {
    let end = end();
    automatic().chain((reserved().unwrap_or(end)..end).filter_map(by_id))
}

/// Makes the next automatic arena, unless `limit` of them exist. `None` also without memory.
pub(crate) fn make_next(limit: u32) -> Option<&'static Arena> {
    let _making = MAKING.lock();
    let id = count();
    if id >= limit.min(reserved().unwrap_or(limit)) || id as usize >= MAX_ARENAS {
        return None;
    }
    let arena = Arena::new_at(id, false, system())?;
    arena_settings::begin_with_defaults(arena);
    publish(arena);
    // Release: pairs with the Acquire in `count`.
    COUNT.store(id + 1, Ordering::Release);
    probes::arena_made(id, false);
    Some(arena)
}

/// Makes an arena for the program, where `limit` automatic ones may be: the destroyed one of the
/// lowest index, or a new one. `None`: no index is left, or no memory.
pub(crate) fn create(limit: u32) -> Option<&'static Arena> {
    let _making = MAKING.lock();
    let first = reserved().unwrap_or_else(|| limit.max(count()));
    let end = end().max(first);
    let arena = match (first..end).filter_map(by_id).find(|arena| arena_settings::revive(arena)) {
        Some(arena) => arena,
        None => {
            if end as usize >= MAX_ARENAS {
                return None;
            }
            let arena = Arena::new_at(end, true, system())?;
            arena_settings::begin_with_defaults(arena);
            RESERVED.store(first, Ordering::Relaxed);
            publish(arena);
            // Release: pairs with the Acquire in `end`.
            END.store(end + 1, Ordering::Release);
            arena
        }
    };
    CREATED.fetch_add(1, Ordering::Relaxed);
    probes::arena_made(arena.id(), true);
    Some(arena)
}

/// Counts the end of a created arena.
pub(in crate::middle) fn note_end() {
    CREATED.fetch_sub(1, Ordering::Relaxed);
    DESTROYED.fetch_add(1, Ordering::Relaxed);
}

/// Makes an arena known under its index. Called under the lock.
fn publish(arena: &'static Arena) {
    // SAFETY: the callers compared the index with the length.
    let slot = unsafe { at(&ARENAS, arena.id() as usize) };
    // Release: pairs with the Acquire in `by_id`.
    slot.store(core::ptr::from_ref(arena).cast_mut(), Ordering::Release);
}
