//! Gives unused memory back at once where no thread would do so later: in a process whose use of
//! memory has fallen to a third, and which has one thread or can start none; and when the use has
//! fallen far and the last but one thread ends.
//!
//! Such a process gets no background thread, and while it sleeps nobody makes a pass. So its own
//! thread gives back what has become unused when it frees. This takes time, and more if the process
//! needs the memory again. Therefore a process has a budget of pages that go back: each page that
//! its heap has grown by, once, and some for each millisecond. What is left ages as it does in any
//! process.

use crate::back::runs::source;
use crate::ground::os;
use crate::ground::sync::wait::{self, Deadline};
use crate::ground::units::PAGE;
use crate::middle::handed_out;
use crate::middle::passes::decay_pass;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What a millisecond adds to the budget, in pages: 16 MiB in a second. To give a page back and to
/// fault it in again takes 0.8 to 2.6 µs, so a process that does nothing else loses up to 1 % of
/// its time.
const PER_MILLI: u64 = 4;
/// The milliseconds that the budget counts at most.
const KEPT: u64 = 150_000;
/// The milliseconds after the start in which none is given back, because most processes that are so
/// young end soon.
const YOUNG: u64 = 100;
/// With a smaller budget no page is given back, because the first one that is splits a huge page.
const LEAST: usize = (16 << 20) / PAGE;
/// So many are given back in one step, which takes some 2 ms, or twice what came back at once.
const STEP: usize = (64 << 20) / PAGE;

/// The pages of the heap at its largest, and how many of them went back once.
static LARGEST: AtomicUsize = AtomicUsize::new(0);
static WENT_BACK: AtomicUsize = AtomicUsize::new(0);
/// The time, by [`os::coarse_millis`], from which on milliseconds count.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Begins to count milliseconds. Called once, at start.
pub(super) fn begin() {
    SINCE.store(os::coarse_millis() + YOUNG, Relaxed);
}

/// Gives back unused pages of all arenas, beyond what may stay unused beside what is handed out, if
/// that has fallen to a third and as far as the budget allows. Returns whether the next slow path
/// is to go on with it, as it is if a decay pass runs now. Does nothing unless it `is_wanted`. The
/// caller holds no lock.
pub(super) fn step(is_wanted: bool) -> bool {
    try_step(is_wanted).unwrap_or(true)
}

/// As [`step`]. Returns `None` if a decay pass runs now.
fn try_step(is_wanted: bool) -> Option<bool> {
    if !is_wanted || !handed_out::has_fallen_to_third() {
        return Some(false);
    }
    let rest = give_some()?;
    if rest == Rest::Nothing {
        handed_out::note_trimmed();
    }
    Some(rest == Rest::More)
}

/// What is left to give back after a step.
#[derive(PartialEq, Eq)]
enum Rest {
    Nothing,
    More,
    /// The budget allows no step now.
    Unpaid,
}

/// Gives back what one step may. Returns `None` if a decay pass runs now.
fn give_some() -> Option<Rest> {
    LARGEST.fetch_max(handed_out::peak_bytes() / PAGE, Relaxed);
    let by_growth = LARGEST.load(Relaxed).saturating_sub(WENT_BACK.load(Relaxed));
    let (since, by_time) = budget_by_time(SINCE.load(Relaxed), os::coarse_millis());
    let most = by_growth + by_time;
    // Under a limit of addresses others cannot wait: a thread's stack needs some too.
    let is_young = by_time == 0 && !source::are_addresses_limited();
    if is_young || most < LEAST {
        return Some(Rest::Unpaid);
    }
    let most = most.min(STEP.max(2 * handed_out::last_fall() / PAGE));
    let given = decay_pass::trim(handed_out::spare() / PAGE, most)?;
    WENT_BACK.fetch_add(given.min(by_growth), Relaxed);
    let paid = given.saturating_sub(by_growth) as u64;
    SINCE.store(since + paid.div_ceil(PER_MILLI), Relaxed);
    Some(if given < most { Rest::Nothing } else { Rest::More })
}

/// Gives back what is unused once the last but one thread has ended, if what is handed out has
/// fallen far: no thread will do it later. Waits for a decay pass for a time only: one that holds a
/// pass up may wait for the end of the calling thread.
pub(super) fn all(is_wanted: bool) {
    if !is_wanted || !handed_out::is_far_below_peak() {
        return;
    }
    let deadline = Deadline::of_all();
    loop {
        match wait::within_a_time(deadline, give_some) {
            Some(Rest::More) => {}
            Some(Rest::Nothing) => return handed_out::forget_peaks(),
            Some(Rest::Unpaid) | None => return,
        }
    }
}

/// Returns from when on milliseconds count at the time `now`, and how many pages they add by then.
fn budget_by_time(since: u64, now: u64) -> (u64, usize) {
    let since = since.max(now.saturating_sub(KEPT));
    (since, (now.saturating_sub(since) * PER_MILLI) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_count_for_some_time() {
        let per_milli = PER_MILLI as usize;
        assert_eq!(budget_by_time(1000, 1000), (1000, 0));
        assert_eq!(budget_by_time(1000, 3000), (1000, 2000 * per_milli));
        assert_eq!(budget_by_time(1000, KEPT + 2000), (2000, KEPT as usize * per_milli));
        // What is to come by then was used in advance.
        assert_eq!(budget_by_time(2000, 1999), (2000, 0));
    }
}
