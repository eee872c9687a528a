//! Checks of the region that malloc allocates in, every so many calls.

use super::super::abi::Vmalloc;
use super::super::inside::Way;
use super::super::kinds;
use core::sync::atomic::{AtomicUsize, Ordering};
use lumalloc_region::Position;

/// How many calls lie between two checks, or 0.
static PERIOD: AtomicUsize = AtomicUsize::new(0);
/// How many calls are to come before the next check.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Checks the region after `start` calls, and then every `period` calls.
pub(super) fn set(start: usize, period: usize) {
    LEFT.store(start, Ordering::Relaxed);
    PERIOD.store(period, Ordering::Relaxed);
}

/// Counts a call, and checks the region if that is due. What is wrong is told as for `vmdbcheck`.
pub(super) fn count_call(vm: &Vmalloc) {
    let period = PERIOD.load(Ordering::Relaxed);
    if period == 0 {
        return;
    }
    let next = |left: usize| Some(left.checked_sub(1).unwrap_or(period - 1));
    if LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) == Ok(0) {
        (kinds::of(vm).check)(vm, Way::Call, Position::UNKNOWN);
    }
}
