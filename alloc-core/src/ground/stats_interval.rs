//! `opt.stats_interval`: prints the statistics each time that so many bytes were allocated.
//!
//! Bytes are counted in slow paths, so that the fast paths do nothing more: small requests when a
//! bin's countdown has run out (usually after 64 KiB of them, `opt.tcache_gc_incr_bytes`), and each
//! large request. A printing may be late by that much. The function that prints is set by
//! [`set_printer`], because the core has no code for texts.

use super::options;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A function that prints the statistics, with the letters of `opt.stats_interval_opts`.
pub type Printer = extern "C" fn();

static PRINTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static BUSY: AtomicBool = AtomicBool::new(false);
static BYTES: Bytes = Bytes(AtomicU64::new(0));

/// Sets the function that prints the statistics at each interval, or none.
///
/// The function is called by a thread that allocates, under no lock of the allocator. It is never
/// called by two threads at once, nor from within itself. Source: jemalloc(3),
/// `opt.stats_interval`.
pub fn set_printer(printer: Option<Printer>) {
    let pointer = printer.map_or(core::ptr::null_mut(), |f| f as *mut ());
    // Release: pairs with the Acquire in `print`, which then sees what was set up for the printer.
    PRINTER.store(pointer, Ordering::Release);
}

/// Counts requested bytes, and prints when an interval is complete. The caller holds no lock.
pub(crate) fn count(bytes: usize) {
    // A negative interval means never.
    let Ok(interval) = u64::try_from(options::current().stats_interval) else { return };
    if BYTES.complete(bytes as u64, interval) {
        print();
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

fn print() {
    // Acquire: pairs with the Release in `set_printer`.
    let printer = PRINTER.load(Ordering::Acquire);
    // Acquire: pairs with the Release below, so that printings do not overlap.
    if printer.is_null() || BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: only `set_printer` stores here, and it stores only functions of this type.
    let printer: Printer = unsafe { core::mem::transmute(printer) };
    printer();
    // Release: pairs with the Acquire above.
    BUSY.store(false, Ordering::Release);
}

/// Clears the busy flag in a child of fork, where a printing thread of the parent does not exist.
pub(crate) fn forget_in_child() {
    BUSY.store(false, Ordering::Relaxed);
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
