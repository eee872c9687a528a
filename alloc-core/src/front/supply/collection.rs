//! Collection gives the blocks of bins that are not used back to their slabs, step by step.

use super::{arrays, flush};
use crate::front::cache::real_cache::RealCache;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::middle::blocks::overflow_moves;
use crate::middle::owners::owner::OwnerState;

/// Bins that one step of collection looks at.
const VISITS: usize = 4;

/// Looks at a few bins. A bin that was neither popped nor missed since the last look loses its
/// blocks and its array.
#[inline(never)]
pub(super) fn collect(cache: &'static RealCache) {
    let mut round = false;
    let mut state = cache.lock_own();
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
    drop(state);
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
    overflow_moves::age(&cache.owner, state, class);
    if !used && !missed {
        overflow_moves::empty(&cache.owner, state, class);
        flush::oldest(cache, state, class, bin.level());
        arrays::drop(cache, class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry;
    use crate::front::supply::refill;
    use crate::middle::arenas::choose_arena;

    /// The peak is noted under no lock, because another thread may have emptied the cache.
    #[test]
    fn a_round_over_all_bins_notes_the_peak_of_the_thread() {
        let thread = registry::take_thread().unwrap();
        let home = choose_arena::create().unwrap();
        let cache = registry::take(home, true, Some(thread)).unwrap();
        thread.add_cache(cache);
        let class = SizeClass::of(1024);
        let block = refill::request(cache, class);
        for _ in 0..=CLASSES / VISITS {
            collect(cache);
        }
        if !cache.bin(class).put(block) {
            refill::overflow(cache, class, block);
        }
        assert_eq!(thread.peak(), 1024);
        registry::tests::end(cache);
        registry::put_thread(thread);
    }
}
