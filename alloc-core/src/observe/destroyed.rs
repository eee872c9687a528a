//! Statistics of destroyed arenas. The counts of an index go on after its arena was destroyed, and
//! the index may be used again before the next walk. So the counts are saved when an arena is
//! destroyed.

use super::arena_stats::ArenaStats;
use super::collect;
use super::records::record;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list::{MAKING, MAX_ARENAS};
use core::sync::atomic::{AtomicPtr, Ordering};

/// Two records for each index: one that is read, under the lock of the list of arenas, and one that
/// is written when an arena of the index is destroyed next.
struct Ended {
    read: AtomicPtr<ArenaStats>,
    written: AtomicPtr<ArenaStats>,
}

static ENDED: [Ended; MAX_ARENAS] = [const {
    Ended {
        read: AtomicPtr::new(core::ptr::null_mut()),
        written: AtomicPtr::new(core::ptr::null_mut()),
    }
}; MAX_ARENAS];

/// Saves the counts of an arena that holds nothing any more and is about to be destroyed. One
/// thread at a time does that for an arena, and it holds no lock.
pub(crate) fn keep(arena: &'static Arena) {
    let Some(ended) = ENDED.get(arena.id() as usize) else { return };
    if ended.written.load(Ordering::Relaxed).is_null() {
        let fresh = record().map_or(core::ptr::null_mut(), core::ptr::from_mut);
        ended.written.store(fresh, Ordering::Relaxed);
    }
    let place = ended.written.load(Ordering::Relaxed);
    // SAFETY: records are never freed, and only this thread uses this one.
    let Some(stats) = (unsafe { place.as_mut() }) else { return };
    stats.clear();
    stats.keep_counts();
    collect::add_one(stats, arena);
    stats.keep_counts();
    let _making = MAKING.lock();
    let before = ended.read.swap(place, Ordering::Relaxed);
    ended.written.store(before, Ordering::Relaxed);
}

/// Calls `look` on the counts that were saved when an arena of this index was last destroyed.
pub(super) fn visit(index: u32, look: impl FnOnce(&ArenaStats)) {
    let _making = MAKING.lock();
    let Some(ended) = ENDED.get(index as usize) else { return };
    // SAFETY: records are never freed. This one is written to only after the next swap, which needs
    // the lock.
    if let Some(stats) = unsafe { ended.read.load(Ordering::Relaxed).as_ref() } {
        look(stats);
    }
}
