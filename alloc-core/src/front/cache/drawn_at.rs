//! The rate of the heap profiler at which the next samples of a cache were drawn.

use super::cold_bin::ColdBin;
use crate::front::bins::cache_bin::CacheBin;
use crate::profile::rate;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How often the rate had been set when the next samples of a cache were drawn. Its thread writes
/// it. Others only compare it.
pub(crate) struct DrawnAt(AtomicU32);

impl DrawnAt {
    /// Creates the note of a cache for which nothing was drawn.
    pub(super) const fn nothing() -> DrawnAt {
        DrawnAt(AtomicU32::new(0))
    }

    /// Returns whether the rate was set since.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        self.0.load(Relaxed) != rate::times_set()
    }

    /// Notes the present rate. Returns whether it was set since.
    #[inline]
    pub(super) fn follow(&self) -> bool {
        let is_behind = self.is_behind();
        if is_behind {
            self.0.store(rate::times_set(), Relaxed);
        }
        is_behind
    }
}

/// Lets the countdown of a bin run out, whose next request then decides anew. Called by the bin's
/// thread.
#[cold]
pub(super) fn run_out(bin: &CacheBin, cold: &ColdBin) {
    cold.until_profiled.forget();
    // Where none is left, a request may be about to arm it.
    if let Ok(left @ 1..) = usize::try_from(bin.countdown()) {
        bin.set_countdown(0);
        cold.armed.add((left as u64).wrapping_neg());
        cold.until_guarded.take_back(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_armed_and_not_requested_is_taken_back() {
        let (bin, cold) = (CacheBin::none(), ColdBin::new());
        let requests = || cold.armed.get().wrapping_sub(i64::from(bin.countdown()) as u64);
        cold.until_guarded.begin(|| 100, || panic!("it is not due"));
        cold.until_profiled.begin(|| 90, || panic!("it is not due"));
        cold.until_guarded.pass(50);
        cold.armed.add(50);
        bin.set_countdown(40);
        assert_eq!(requests(), 10);
        run_out(&bin, &cold);
        assert_eq!((bin.countdown(), requests()), (0, 10));
        assert_eq!(cold.until_guarded.begin(|| 0, || ()), 89, "of 100, ten were requested");
        assert_eq!(cold.until_profiled.begin(|| 7, || ()), 6, "drawn anew");
        // The request that found it run out is counted, and arms it now.
        bin.set_countdown(-1);
        run_out(&bin, &cold);
        assert_eq!((bin.countdown(), requests()), (-1, 11));
    }
}
