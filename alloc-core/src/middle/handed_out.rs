//! How much memory is handed out to the program and to thread caches, roughly, and whether that has
//! fallen so far that much memory is unused, or risen so far that caches may hold much.
//!
//! Each owner and each arena counts for itself under its own lock, and tells the sum only when its
//! count has changed by a [`GRAIN`]. So a refill that follows a flush touches no shared line.

use crate::ground::sync::helper_state;
use core::sync::atomic::{AtomicIsize, AtomicU8, AtomicUsize, Ordering, Ordering::Relaxed};

/// How far the memory handed out must fall below its peak: so many bytes, and one part in so many
/// of what is still handed out.
const MUCH: isize = 16 << 20;
const PART: isize = 8;
/// The change of one count that the sum may not know of, in bytes.
const GRAIN: isize = 64 << 10;

/// Bytes handed out now, the peak of the present period, and that of the period before.
static NOW: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static PEAK_BEFORE: AtomicIsize = AtomicIsize::new(0);
/// Bytes handed out when a rise was last forgotten.
static LOW: AtomicIsize = AtomicIsize::new(0);
/// The last change that was told as a fall far below the peak, in bytes.
static LAST_FALL: AtomicUsize = AtomicUsize::new(0);
static MOVES: AtomicU8 = AtomicU8::new(0);
const FALLEN: u8 = 1;
const RISEN: u8 = 2;

/// What one owner or one arena has handed out since it last told the sum, in bytes. Under the lock
/// of that owner or arena.
pub(crate) struct Untold {
    bytes: isize,
    /// The change that is told.
    grain: isize,
}

impl Untold {
    /// Nothing, of a thread cache's owner.
    pub(in crate::middle) const fn of_owner() -> Untold {
        Untold { bytes: 0, grain: GRAIN }
    }

    /// Nothing, of an arena. The grain is longer, because large blocks are handed out and come back
    /// one by one.
    pub(in crate::middle) const fn of_arena() -> Untold {
        Untold { bytes: 0, grain: GRAIN * 16 }
    }

    /// Counts bytes that were handed out, or for a negative number came back.
    #[inline]
    pub(crate) fn add(&mut self, bytes: isize) {
        self.bytes += bytes;
        if self.bytes.unsigned_abs() >= self.grain.unsigned_abs() {
            tell(core::mem::take(&mut self.bytes));
        }
    }
}

/// Counts blocks that end with their arena, in bytes.
pub(in crate::middle) fn take_back(bytes: usize) {
    tell(-bytes.cast_signed());
}

#[cold]
#[inline(never)]
fn tell(bytes: isize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    if bytes > 0 {
        if now > PEAK.load(Relaxed) {
            PEAK.fetch_max(now, Relaxed);
        }
        if now - LOW.load(Relaxed) >= MUCH {
            MOVES.fetch_or(RISEN, Relaxed);
        }
    } else if is_much_below(peak(), now) {
        LAST_FALL.store(bytes.unsigned_abs(), Relaxed);
        // Release: pairs with the Acquire in `begin_period`.
        MOVES.fetch_or(FALLEN, Ordering::Release);
        helper_state::work_was_told();
    }
}

fn peak() -> isize {
    PEAK.load(Relaxed).max(PEAK_BEFORE.load(Relaxed))
}

fn is_much_below(peak: isize, now: isize) -> bool {
    peak - now >= MUCH.max(now / PART)
}

/// Returns whether what is handed out has fallen far, and to a third of its peak or less.
pub(crate) fn has_fallen_to_third() -> bool {
    let (peak, now) = (peak(), NOW.load(Relaxed));
    is_much_below(peak, now) && now <= peak / 3
}

/// Returns whether what is handed out is far below its peak, whatever was told last.
pub(crate) fn is_far_below_peak() -> bool {
    is_much_below(peak(), NOW.load(Relaxed))
}

/// Tells a fall again that was forgotten while there was only one thread, if what is handed out is
/// still far below its peak.
pub(crate) fn remember_fall() {
    if is_far_below_peak() {
        // Release: pairs with the Acquire in `begin_period`.
        MOVES.fetch_or(FALLEN, Ordering::Release);
    }
}

/// Returns the peak of what is handed out, in bytes.
pub(crate) fn peak_bytes() -> usize {
    peak().max(0).cast_unsigned()
}

/// Returns how many bytes came back at once when what is handed out was last told to have fallen
/// far.
pub(crate) fn last_fall() -> usize {
    LAST_FALL.load(Relaxed)
}

/// Returns how many bytes may be unused beside what is handed out, and are not much.
pub(crate) fn spare() -> usize {
    (NOW.load(Relaxed) / PART).max(0).cast_unsigned()
}

/// Notes that what is unused now has been given back. It has fallen to a third again once it has
/// fallen by a quarter more: pages become unused after most of their blocks.
pub(crate) fn note_trimmed() {
    let next = NOW.load(Relaxed) / 4 * 3;
    PEAK_BEFORE.store(0, Relaxed);
    PEAK.store(next + (2 * next).max(MUCH), Relaxed);
}

/// Returns whether what is handed out has fallen or risen far, by the last changes that were told.
#[inline]
pub(crate) fn has_moved() -> bool {
    moves().0 != 0
}

/// Returns whether what is handed out has fallen far below its peak.
pub(crate) fn has_fallen() -> bool {
    moves().has_fallen()
}

/// How far what is handed out had moved when somebody looked.
#[derive(Clone, Copy)]
pub(crate) struct Moves(u8);

impl Moves {
    /// Returns whether it had fallen far below its peak.
    pub(crate) fn has_fallen(self) -> bool {
        self.0 & FALLEN != 0
    }
}

/// Returns how far what is handed out has moved, by the last changes that were told.
pub(crate) fn moves() -> Moves {
    Moves(MOVES.load(Relaxed))
}

/// Forgets the moves that were `seen`, until the next change is told. A fall that was told since
/// then stays known.
pub(crate) fn forget(seen: Moves) {
    LOW.store(NOW.load(Relaxed), Relaxed);
    MOVES.fetch_and(!seen.0, Relaxed);
}

/// Begins a new period. Peaks from before the last period are forgotten.
///
/// A fall that another thread tells meanwhile is not lost: it is told after the moves are forgotten
/// here, or the bytes read after that are without it. The peak is at no moment lower than that of
/// the new period.
pub(crate) fn begin_period() {
    // Acquire: pairs with the Release in `tell`, so that what has fallen is read below.
    MOVES.swap(0, Ordering::Acquire);
    PEAK_BEFORE.store(PEAK.load(Relaxed), Relaxed);
    PEAK.store(NOW.load(Relaxed), Relaxed);
    let now = NOW.load(Relaxed);
    PEAK.fetch_max(now, Relaxed);
    LOW.store(now, Relaxed);
    if is_much_below(peak(), now) {
        MOVES.fetch_or(FALLEN, Relaxed);
    }
}

/// Forgets all peaks: what is unused now does not count any more.
pub(crate) fn forget_peaks() {
    begin_period();
    begin_period();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_is_much_only_beside_what_is_left() {
        assert!(is_much_below(MUCH, 0) && !is_much_below(MUCH - 1, 0));
        let left = MUCH * PART * 4;
        assert!(is_much_below(left + left / PART, left));
        assert!(!is_much_below(left + left / PART - 1, left));
    }

    #[test]
    fn small_changes_that_cancel_out_are_not_told() {
        let mut untold = Untold::of_owner();
        for _ in 0..1000 {
            untold.add(GRAIN - 1);
            untold.add(1 - GRAIN);
        }
        assert_eq!(untold.bytes, 0);
        untold.add(GRAIN - 1);
        assert_eq!(untold.bytes, GRAIN - 1);
        // What is told here is taken back, because other tests tell the same sum.
        untold.add(1);
        assert_eq!(untold.bytes, 0);
        untold.add(-GRAIN);
        assert_eq!(untold.bytes, 0);
    }
}
