//! What is done each time that so many bytes were allocated: `opt.stats_interval` prints the
//! statistics, and `opt.lg_prof_interval` writes a heap profile. The profile of mprof(1) is written
//! after so many allocations, and with `opt.prof_gdump` a heap profile at each new maximum of the
//! memory held.
//!
//! Bytes are counted in slow paths, so that the fast paths do nothing more: small requests when a
//! bin's countdown has run out (usually after 64 KiB of them, `opt.tcache_gc_incr_bytes`), and each
//! one that no cache serves, each large request, and each change of a large block's size. What is
//! done may be late by that much. The functions are set from outside, because the core has no code
//! for texts and files.

use super::options;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A function that is called when an interval is complete.
pub type Action = extern "C" fn();

static STATISTICS: Interval = Interval::new();
static PROFILES: Interval = Interval::new();
static SAMPLES: Interval = Interval::new();
/// Samples between two calls of the action of [`set_sample_action`]. 0: none.
static SAMPLES_BETWEEN: AtomicU64 = AtomicU64::new(0);

static MAXIMA: Interval = Interval::new();
/// Whether anything is done at a new maximum.
static AT_MAXIMA: AtomicBool = AtomicBool::new(false);
/// The most pages that were held while it was.
static MOST_HELD: AtomicUsize = AtomicUsize::new(0);
/// Whether there is a new maximum.
static IS_MAXIMUM: AtomicBool = AtomicBool::new(false);

/// Sets the function that prints the statistics at each interval, with the letters of
/// `opt.stats_interval_opts`, or none.
///
/// The function is called by a thread that allocates, under no lock of the allocator. It is never
/// called by two threads at once, nor from within itself. Source: jemalloc(3),
/// `opt.stats_interval`.
pub fn set_printer(printer: Option<Action>) {
    STATISTICS.set(printer);
}

/// As [`set_printer`], for the function that writes a heap profile. Source: jemalloc(3),
/// `opt.lg_prof_interval`.
pub fn set_profiler(profiler: Option<Action>) {
    PROFILES.set(profiler);
}

/// As [`set_printer`], for a function that is called after each `count` samples of the heap
/// profiler. It is never called if `count` is 0. Source: mprof(1), `set_mprof_autosave`.
pub fn set_sample_action(action: Option<Action>, count: u64) {
    SAMPLES_BETWEEN.store(0, Ordering::Relaxed);
    SAMPLES.set(action);
    SAMPLES_BETWEEN.store(count, Ordering::Relaxed);
}

/// As [`set_printer`], for the function that writes a heap profile at a new maximum. Source:
/// jemalloc(3), `prof.gdump`.
pub fn set_maximum_profiler(profiler: Option<Action>) {
    MAXIMA.set(profiler);
}

/// Returns whether a heap profile is written each time that more memory is held than ever before.
/// Source: jemalloc(3), `prof.gdump`.
#[must_use]
pub fn profiles_maxima() -> bool {
    AT_MAXIMA.load(Ordering::Relaxed)
}

/// Sets whether a heap profile is written each time that more memory is held than ever before, and
/// returns whether it was.
pub fn set_profiles_maxima(profiled: bool) -> bool {
    AT_MAXIMA.swap(profiled, Ordering::Relaxed)
}

/// Notes that so many pages are held. The action follows at the next [`count`], because the caller
/// holds a lock.
pub(crate) fn note_held(pages: usize) {
    if AT_MAXIMA.load(Ordering::Relaxed) && MOST_HELD.fetch_max(pages, Ordering::Relaxed) < pages {
        IS_MAXIMUM.store(true, Ordering::Relaxed);
    }
}

/// Counts a sample, and acts when there are so many. The caller holds no lock.
pub(crate) fn count_sample() {
    let between = SAMPLES_BETWEEN.load(Ordering::Relaxed);
    if between > 0 {
        SAMPLES.count(1, between);
    }
}

/// Counts requested bytes that were allocated, and acts when an interval is complete. The caller
/// holds no lock.
pub(crate) fn count(bytes: usize) {
    let options = options::current();
    // A negative interval means never.
    if let Ok(interval) = u64::try_from(options.stats_interval) {
        STATISTICS.count(bytes as u64, interval);
    }
    if let Some(interval) = options.prof_interval() {
        PROFILES.count(bytes as u64, interval);
    }
    if IS_MAXIMUM.load(Ordering::Relaxed) && IS_MAXIMUM.swap(false, Ordering::Relaxed) {
        MAXIMA.act();
    }
}

/// Clears the busy flags in a child of fork, where a thread of the parent that acts does not exist.
pub(crate) fn forget_in_child() {
    STATISTICS.busy.store(false, Ordering::Relaxed);
    PROFILES.busy.store(false, Ordering::Relaxed);
    SAMPLES.busy.store(false, Ordering::Relaxed);
    MAXIMA.busy.store(false, Ordering::Relaxed);
}

/// An interval, and what is done when it is complete.
struct Interval {
    bytes: Bytes,
    busy: AtomicBool,
    action: AtomicPtr<()>,
}

impl Interval {
    const fn new() -> Interval {
        Interval {
            bytes: Bytes(AtomicU64::new(0)),
            busy: AtomicBool::new(false),
            action: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    fn set(&self, action: Option<Action>) {
        let pointer = action.map_or(core::ptr::null_mut(), |f| f as *mut ());
        // Release: pairs with the Acquire in `act`, which then sees what was set up for the action.
        self.action.store(pointer, Ordering::Release);
    }

    fn count(&self, bytes: u64, interval: u64) {
        if self.bytes.complete(bytes, interval) {
            self.act();
        }
    }

    fn act(&self) {
        // Acquire: pairs with the Release in `set`.
        let action = self.action.load(Ordering::Acquire);
        // Acquire: pairs with the Release below, so that two actions do not overlap.
        if action.is_null() || self.busy.swap(true, Ordering::Acquire) {
            return;
        }
        // SAFETY: only `set` stores here, and it stores only functions of this type.
        let action: Action = unsafe { core::mem::transmute(action) };
        action();
        // Release: pairs with the Acquire above.
        self.busy.store(false, Ordering::Release);
    }
}

/// The bytes counted since the last complete interval.
struct Bytes(AtomicU64);

impl Bytes {
    /// Adds bytes. Returns `true` if that completes an interval, or several. The rest counts for
    /// the next one.
    fn complete(&self, bytes: u64, interval: u64) -> bool {
        let whole = self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if whole < interval {
            return false;
        }
        let rest = whole.checked_rem(interval).unwrap_or(0);
        // The first thread takes all complete intervals, so the others find less than one.
        let take = |now: u64| (now >= interval).then(|| now.saturating_sub(whole - rest));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completions(interval: u64, steps: &[u64]) -> Vec<bool> {
        let bytes = Bytes(AtomicU64::new(0));
        steps.iter().map(|&step| bytes.complete(step, interval)).collect()
    }

    #[test]
    fn what_is_over_counts_for_the_next_interval() {
        assert_eq!(
            completions(100, &[99, 1, 60, 60, 79, 1]),
            [false, true, false, true, false, true]
        );
    }

    #[test]
    fn many_intervals_at_once_print_once() {
        assert_eq!(completions(100, &[1050, 40, 10]), [true, false, true]);
    }

    #[test]
    fn an_interval_of_zero_is_complete_at_every_count() {
        assert_eq!(completions(0, &[1, 0]), [true, true]);
    }
}
