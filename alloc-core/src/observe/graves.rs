//! What an arena had counted when it was destroyed: its index may come again before anybody looks,
//! and what is counted by index goes on.

use super::arena_stats::ArenaStats;
use super::collect;
use super::records::record;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list::{MAKING, MAX_ARENAS};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Two records for each index: one that is read, under the lock of the list of arenas, and one that
/// the next end is written into.
struct Grave {
    read: AtomicPtr<ArenaStats>,
    written: AtomicPtr<ArenaStats>,
}

static GRAVES: [Grave; MAX_ARENAS] = [const {
    Grave {
        read: AtomicPtr::new(core::ptr::null_mut()),
        written: AtomicPtr::new(core::ptr::null_mut()),
    }
}; MAX_ARENAS];

/// Notes what an arena has counted, which holds nothing any more and is about to end. One thread at
/// a time for each arena, with no lock in hand.
pub(crate) fn dig(arena: &'static Arena) {
    let Some(grave) = GRAVES.get(arena.id() as usize) else { return };
    if grave.written.load(Ordering::Relaxed).is_null() {
        let fresh = record().map_or(core::ptr::null_mut(), core::ptr::from_mut);
        grave.written.store(fresh, Ordering::Relaxed);
    }
    let place = grave.written.load(Ordering::Relaxed);
    // SAFETY: records live for ever, and this one is nobody's but this thread's.
    let Some(stats) = (unsafe { place.as_mut() }) else { return };
    stats.clear();
    stats.keep_counts();
    collect::add_one(stats, arena);
    stats.keep_counts();
    let _making = MAKING.lock();
    let before = grave.read.swap(place, Ordering::Relaxed);
    grave.written.store(before, Ordering::Relaxed);
}

/// Calls `look` on what the arenas of an index had counted at the last end of one of them.
pub(super) fn visit(index: u32, look: impl FnOnce(&ArenaStats)) {
    let _making = MAKING.lock();
    let Some(grave) = GRAVES.get(index as usize) else { return };
    // SAFETY: records live for ever; this one is written to after the next swap only, which needs
    // the lock.
    if let Some(stats) = unsafe { grave.read.load(Ordering::Relaxed).as_ref() } {
        look(stats);
    }
}
