//! `opt.stats_interval`: the statistics, printed again and again as so many bytes are allocated.
//!
//! Bytes are counted where slow paths see them anyway: small requests when a bin's countdown has
//! run out (64 KiB of them as a rule, `opt.tcache_gc_incr_bytes`), large ones each. So a printing
//! may come so much too late, and costs the fast paths nothing. Who prints is told by
//! [`set_printer`]; the core knows no text.

use super::options;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Prints the statistics, with the letters of `opt.stats_interval_opts`.
pub type Printer = extern "C" fn();

static PRINTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static BUSY: AtomicBool = AtomicBool::new(false);
static BYTES: Bytes = Bytes(AtomicU64::new(0));

/// Names who prints the statistics at each interval, or nobody.
///
/// It is called by whatever thread allocates, under no lock of the allocator, and never by two
/// threads at once, nor from within itself. Source: jemalloc(3), `opt.stats_interval`.
pub fn set_printer(printer: Option<Printer>) {
    let pointer = printer.map_or(core::ptr::null_mut(), |f| f as *mut ());
    // Release: pairs with the Acquire in `print`; what the printer needs was set up before.
    PRINTER.store(pointer, Ordering::Release);
}

/// Counts bytes that were asked for, and prints when an interval is full. Under no lock.
pub(crate) fn count(bytes: usize) {
    // Negative: never.
    let Ok(interval) = u64::try_from(options::current().stats_interval) else { return };
    if BYTES.complete(bytes as u64, interval) {
        print();
    }
}

/// Bytes since the last full interval.
struct Bytes(AtomicU64);

impl Bytes {
    /// Adds bytes; `true`: that made an interval, or more, complete. What is over counts for the
    /// next one, unless it is one itself.
    fn complete(&self, bytes: u64, interval: u64) -> bool {
        let whole = self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if whole < interval {
            return false;
        }
        let rest = whole.checked_rem(interval).unwrap_or(0);
        // Who comes first takes all that is there; the others find less than an interval.
        let take = |now: u64| (now >= interval).then(|| now.saturating_sub(whole - rest));
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

fn print() {
    // Acquire: pairs with the Release in `set_printer`.
    let printer = PRINTER.load(Ordering::Acquire);
    // Acquire: pairs with the Release below: one printing after another.
    if printer.is_null() || BUSY.swap(true, Ordering::Acquire) {
        return;
    }
    // SAFETY: only `set_printer` stores here, and only functions of this type.
    let printer: Printer = unsafe { core::mem::transmute(printer) };
    printer();
    // Release: pairs with the Acquire above.
    BUSY.store(false, Ordering::Release);
}

/// In a child of fork the printing thread of the parent does not exist.
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
