//! Collection: what bins hold and do not need goes home, step by step.
//!
//! A bin fades when collection finds it unused, and holds less when no visit found all its blocks
//! needed.

use super::{arrays, flush};
use crate::front::cache::real_cache::RealCache;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::middle::blocks::parking;
use crate::middle::owners::owner::OwnerState;

/// Bins that one step of collection visits.
const VISITS: usize = 4;

/// One step of collection: visits a few bins. What was neither popped nor missed since the last
/// visit goes home and its array with it; of what was used without a miss, what was never needed.
#[inline(never)]
pub(super) fn collect(cache: &'static RealCache) {
    let mut round = false;
    let mut state = cache.owner.state.lock();
    cache.owner.activity.add(1);
    for _ in 0..VISITS {
        let index = cache.next_visit.get();
        cache.next_visit.set(if index + 1 < CLASSES { index + 1 } else { 0 });
        if index == 0 {
            state.runs.age();
            round = true;
        }
        if let Some(class) = SizeClass::from_bin(index + 1) {
            visit(cache, &mut state, class);
        }
    }
    if round && let Some(thread) = cache.thread() {
        thread.note_peak();
    }
}

fn visit(cache: &'static RealCache, state: &mut OwnerState, class: SizeClass) {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    if bin.capacity() == 0 {
        return;
    }
    let requests = cache.requests(class);
    let used = requests != cold.seen_requests.replace(requests);
    let missed = cold.missed.replace(false);
    let level = bin.level();
    parking::age_depot(&cache.owner, state, class);
    if !used && !missed {
        parking::empty_depot(&cache.owner, state, class);
        flush::oldest(cache, state, class, level);
        arrays::drop(cache, class);
    } else {
        let n = cold.idle(level, missed);
        if n > 0 {
            flush::oldest(cache, state, class, n);
            cold.want.set((cold.want.get() / 2).max(2));
        }
    }
}
