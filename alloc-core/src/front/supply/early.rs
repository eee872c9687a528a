//! Sends a thread that makes few requests to a slow path soon, because memory waits for one to be
//! given back.
//!
//! The countdowns of the thread's bins are cut short, so that the next request of each class is a
//! slow one. At that request the countdown gets one request back, the present one, at the next slow
//! one again one, then two, four and so on, until it has all of them. So a bin makes some ten slow
//! requests for each cut, and never more fast ones between two of them than it had made before.
//!
//! What a countdown was cut by stays passed for samples, for collection and for intervals.

use crate::front::cache::real_cache::RealCache;
use crate::ground::size_class::SizeClass;

/// Cuts the countdowns of all bins short. Called by the cache's thread.
pub(crate) fn cut_short(cache: &RealCache) {
    for class in cache.owner.ledger.used_classes() {
        let (bin, cold) = (cache.bin(class), cache.cold(class));
        cold.resumed.set(0);
        // Negative: a request has found the countdown run out, and no memory.
        if let Ok(left) = u16::try_from(bin.countdown()) {
            // In this order, so that others see too many requests meanwhile, as while it is armed.
            bin.set_countdown(0);
            cold.armed.add(u64::from(left).wrapping_neg());
            cold.cut.set(cold.cut.get().saturating_add(left));
        }
    }
}

/// Gives a bin whose countdown has run out some of what it was cut by, for the present request and
/// those after it. Returns `false` if it has all of it.
pub(super) fn resume(cache: &RealCache, class: SizeClass) -> bool {
    let (bin, cold) = (cache.bin(class), cache.cold(class));
    let (cut, resumed) = (cold.cut.get(), cold.resumed.get());
    let more = cut.min(resumed.max(1));
    if more > 0 {
        cold.cut.set(cut - more);
        cold.resumed.set(resumed.saturating_add(more));
        cold.armed.add(more.into());
        bin.set_countdown(i32::from(more) - 1);
    }
    more > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::front::life::thread_end;
    use crate::front::supply::refill;

    /// Makes `n` pairs of a request and a free. Returns which of the requests were slow.
    fn slow_ones(cache: &'static RealCache, class: SizeClass, n: usize) -> Vec<usize> {
        let mut slow = Vec::new();
        for number in 1..=n {
            let request = || {
                slow.push(number);
                refill::request(cache, class)
            };
            let block = cache.bin(class).pop_or(1, |_| (), request);
            assert!(cache.bin(class).put(block));
        }
        slow
    }

    #[test]
    fn the_next_requests_are_slow_and_then_fewer_and_fewer() {
        // Other tests use no such blocks, and leave their caches to this one.
        let (cache, class) = (new_cache(), SizeClass::of(112));
        assert_eq!(slow_ones(cache, class, 300), [1]);
        let (left, requests) = (cache.bin(class).countdown(), cache.requests(class));
        cut_short(cache);
        assert_eq!(cache.requests(class), requests);
        assert_eq!(slow_ones(cache, class, 20), [1, 2, 3, 5, 9, 17]);
        assert_eq!(cache.requests(class), requests + 20);
        cut_short(cache);
        assert_eq!(slow_ones(cache, class, 3), [1, 2, 3]);
        assert_eq!(cache.requests(class), requests + 23);
        // The countdown runs out when it would have.
        let left = left.cast_unsigned() as usize - 23;
        assert_eq!(slow_ones(cache, class, left), [2, 6, 14, 30, 62, 126, 254]);
        assert_eq!((cache.cold(class).cut.get(), cache.bin(class).countdown()), (0, 0));
        assert_eq!(slow_ones(cache, class, 100), [1]);
        thread_end::empty(cache);
        end(cache);
    }

    #[test]
    fn a_bin_that_lacks_memory_and_one_that_served_nothing_stay_as_they_are() {
        let (cache, class) = (new_cache(), SizeClass::of(96));
        cut_short(cache);
        slow_ones(cache, class, 1);
        cache.bin(class).set_countdown(-1);
        cut_short(cache);
        assert_eq!((cache.bin(class).countdown(), cache.cold(class).cut.get()), (-1, 0));
        assert!(!resume(cache, class));
        thread_end::empty(cache);
        end(cache);
    }
}
