//! Access to the runs of large blocks in the hardened tier: none once they are free.
//!
//! ```text
//!   reserved ──▶ open ──free of a large block──▶ closed ──taken──▶ open
//! ```
//! A use of a large block after its free then faults where it happens, and so does a write behind a
//! block, because a free page is closed behind it. The memory of most closed runs is given back at
//! once, and they wait before they are used again ([`super::waiting`]). Where much is freed, the
//! memory of the rest stays, and is purged as that of other free runs. A run is noted as closed if
//! a part of it may be. Runs of arenas with extent hooks and runs at low addresses are left as they
//! are.

use super::in_hand::InHand;
use crate::back::map::extent::Extent;
use crate::ground::options;
use crate::ground::os;
use crate::ground::units::LG_PAGE;
use crate::ground::untouchable;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// While more runs than this are in use, none is closed. Each may lie between two closed ones, and
/// the system allows a process 65,530 mappings by default.
const MOST: usize = 1 << 14;

/// The longest block behind which a page stays free, in pages. Longer ones may lie in huge pages,
/// which such a page would break.
const LONGEST_WITH_GAP: usize = (2 << 20) >> LG_PAGE;

/// The most free pages between two large blocks that each have left one.
const GAP: usize = 2;

/// So many runs are closed at once, and so many in each millisecond after that. To close one and to
/// open it again takes some 5 microseconds.
const TURNS_AT_ONCE: u64 = 256;
const TURNS_A_MILLISECOND: u64 = 2;

/// The time until which turns are taken, in turns.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// So many pages of closed runs are given back at once, and so many in each millisecond after that.
/// The next use of a page takes a fault, 0.3 to 3 microseconds.
const PAGES_AT_ONCE: u64 = (16 << 20) >> LG_PAGE;
const PAGES_A_MILLISECOND: u64 = 16;

/// The time until which pages are given back, in pages.
static PAGES: AtomicU64 = AtomicU64::new(0);

/// Runs in use in the hardened tier.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Whether any run may be closed. Where the system's pages are larger than the allocator's, none
/// is, because a run may end within one.
#[inline]
pub(in crate::back) fn are_some_closed() -> bool {
    options::current().hardened && untouchable::can_close_each_page()
}

/// Counts a run that is in use from now on.
#[inline]
pub(in crate::back) fn note_taken() {
    if are_some_closed() {
        IN_USE.fetch_add(1, Relaxed);
    }
}

/// Counts a run that is not in use any more.
#[inline]
pub(in crate::back) fn note_given() {
    if are_some_closed() {
        IN_USE.fetch_sub(1, Relaxed);
    }
}

/// Returns whether one more run may be closed: not too many are in use, and not too many were
/// closed within a short time.
fn may_close() -> bool {
    IN_USE.load(Relaxed) < MOST && take(&TURNS, now(), 1, TURNS_AT_ONCE)
}

/// Returns whether a run that is free now would be closed.
pub(crate) fn is_to_be_closed(run: &Extent) -> bool {
    are_some_closed()
        && !run.is_low()
        && IN_USE.load(Relaxed) < MOST
        && after(&TURNS, now(), 1, TURNS_AT_ONCE).is_some()
}

/// Returns whether a run that is free now would be closed, and is to wait without memory before
/// its addresses are used again. Counts its pages as given back then. Of a run that is longer than
/// what may be given back at once, no more than that is counted.
pub(crate) fn is_to_wait(run: &Extent) -> bool {
    let now = os::coarse_millis() * PAGES_A_MILLISECOND;
    let pages = PAGES_AT_ONCE.min(run.pages() as u64);
    is_to_be_closed(run) && take(&PAGES, now, pages, PAGES_AT_ONCE)
}

/// Returns the time in turns.
fn now() -> u64 {
    os::coarse_millis() * TURNS_A_MILLISECOND
}

/// Takes `wanted` turns at a time in turns, of which `at_once` may be taken in advance. Returns
/// `false` if there are fewer. If threads take some at the same moment, those of one may count.
fn take(turns: &AtomicU64, now: u64, wanted: u64, at_once: u64) -> bool {
    let next = after(turns, now, wanted, at_once);
    next.into_iter().for_each(|next| turns.store(next, Relaxed));
    next.is_some()
}

/// Returns the time until which turns are taken with `wanted` more. `None` if more than `at_once`
/// would be taken in advance.
fn after(turns: &AtomicU64, now: u64, wanted: u64, at_once: u64) -> Option<u64> {
    let next = turns.load(Relaxed).max(now) + wanted;
    (next - now <= at_once).then_some(next)
}

/// Whether a page is to stay free behind a large block of so many pages.
pub(crate) fn leaves_gap(pages: usize) -> bool {
    may_leave_gap(pages) && may_close()
}

/// As [`leaves_gap`], if not too many runs are in use or were closed.
pub(in crate::back) fn may_leave_gap(pages: usize) -> bool {
    are_some_closed() && pages <= LONGEST_WITH_GAP
}

/// Whether a free run may consist of pages that large blocks have left free beside them.
pub(in crate::back) fn may_be_gap(run: &Extent) -> bool {
    run.marks.is_closed() && run.pages() <= GAP
}

/// Opens a run that is to be used, and returns it. If the system refuses, passes it to `put_back`
/// and returns `None`.
#[inline]
pub(in crate::back) fn opened(run: InHand, put_back: impl FnOnce(InHand)) -> Option<InHand> {
    if !open_if_closed(&run) {
        put_back(run);
        return None;
    }
    Some(run)
}

/// Opens a run if it is closed. Returns `false` if the system refuses.
#[inline]
pub(crate) fn open_if_closed(run: &Extent) -> bool {
    !run.marks.is_closed() || open(run)
}

/// Opens a run that is to be free in an arena with extent hooks, because hooks may read or write
/// what they are told to purge. If the system refuses, it stays closed.
pub(in crate::back) fn open_for_hooks(run: InHand) -> InHand {
    open_if_closed(&run);
    run
}

#[cold]
fn open(run: &Extent) -> bool {
    let is_open = untouchable::open_page(run.base(), run.bytes());
    run.marks.set_closed(!is_open);
    is_open
}

/// Closes the run of a large block that is to be free. If the system refuses, or [`may_close`]
/// does, it stays open. `is_hooked` says whether its arena has extent hooks.
pub(crate) fn close(run: &Extent, is_hooked: bool) {
    if are_some_closed() && !is_hooked && !run.is_low() && may_close() {
        shut(run);
    }
}

/// Closes a free run again, because the system has made its pages anew and left them open.
pub(in crate::back) fn close_again(run: &Extent) {
    if run.marks.is_closed() {
        shut(run);
    }
}

/// Closes a run, and marks it as closed if the system did so.
fn shut(run: &Extent) {
    let is_closed = untouchable::close(run.base(), run.bytes());
    if !is_closed {
        // Of a run in several mappings the first may have been closed.
        untouchable::open_page(run.base(), run.bytes());
    }
    run.marks.set_closed(is_closed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::units::PAGE;

    #[test]
    fn turns_are_taken_in_advance_and_come_back_with_time() {
        let turns = AtomicU64::new(0);
        let turn = |now| take(&turns, now, 1, TURNS_AT_ONCE);
        let taken = |now| (0..2 * TURNS_AT_ONCE).filter(|_| turn(now)).count() as u64;
        assert_eq!([taken(10), taken(10), taken(17), taken(17)], [TURNS_AT_ONCE, 0, 7, 0]);
        assert_eq!(taken(1_000_000), TURNS_AT_ONCE, "and no more after a long time");
    }

    #[test]
    fn a_run_is_marked_as_closed_only_if_the_system_closed_it() {
        let run = Extent::new(0);
        let mapped = untouchable::reserve(4 * PAGE).unwrap();
        run.set_range(mapped, 4);
        shut(&run);
        assert!(run.marks.is_closed());
        assert!(open(&run) && !run.marks.is_closed());
        close_again(&run);
        assert!(!run.marks.is_closed(), "it was open");
        shut(&run);
        close_again(&run);
        assert!(run.marks.is_closed());
        assert!(open_if_closed(&run) && open_if_closed(&run));
        // The system refuses what is not mapped, but closes what lies before it.
        untouchable::release(mapped + PAGE, PAGE);
        shut(&run);
        assert!(!run.marks.is_closed());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let first = maps.lines().find(|line| line.contains(&format!("-{:x} ", mapped + PAGE)));
        assert!(first.is_some_and(|first| first.contains(" rw")), "{first:?}");
        untouchable::release(mapped, 4 * PAGE);
    }
}
