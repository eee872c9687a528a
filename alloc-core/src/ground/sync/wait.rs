//! Waiting for what other threads are about to change.

use crate::ground::os;
use core::sync::atomic::AtomicU32;

/// A look is repeated for so many milliseconds: longer than a busy system keeps a thread from
/// running.
const LASTING: u64 = 380;

/// So many milliseconds are between two looks, and at least so many looks are made.
const BETWEEN: u64 = 20;
const LEAST: usize = 5;

/// More looks than there is time for, if the clock goes on.
const MOST: usize = 200;

/// All looks and waits together have so many milliseconds. The first of them are for finding what
/// is to be looked at again.
const ALL: u64 = 600;
const SCAN: u64 = 160;

/// A lock is tried for so many milliseconds, with one between two tries, and at least so often.
const FOR_LOCK: u64 = 50;
const TRIES: usize = 10;

/// How often a lock is tried without a pause: for some 30 microseconds.
const SPINS: usize = 1000;

const _: () = assert!(LEAST as u64 * BETWEEN <= LASTING && SCAN + LASTING < ALL);

/// A moment after which nothing is waited for. A busy system wakes a thread late, so neither looks
/// nor tries are a measure of time.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    /// Nanoseconds of the monotonic clock.
    end: u64,
}

impl Deadline {
    /// Returns the end of all looks that begin now.
    pub(crate) fn of_all() -> Deadline {
        Deadline::after(ALL)
    }

    /// Returns the moment at which a scan has to end, so that the time that is left suffices for
    /// what it has found.
    pub(crate) fn of_scan(self) -> Deadline {
        Deadline { end: self.end.saturating_sub((ALL - SCAN) * 1_000_000) }
    }

    fn after(millis: u64) -> Deadline {
        Deadline { end: os::nanoseconds().saturating_add(millis * 1_000_000) }
    }

    /// Returns whether the moment has passed.
    pub(crate) fn is_over(self) -> bool {
        os::nanoseconds() >= self.end
    }
}

/// Returns whether something is so, and stays so for a time. Once the deadline has passed, the
/// fewest looks are made, and the result is `false` if they do not last long enough.
pub(crate) fn lasts(deadline: Deadline, mut is_so: impl FnMut() -> bool) -> bool {
    let least = Deadline::after(LASTING);
    for looks in 1..=MOST {
        if looks > LEAST && deadline.is_over() {
            return false;
        }
        sleep(BETWEEN);
        // The time up to the look counts, not that which the look takes.
        let is_enough = looks >= LEAST && least.is_over();
        if !is_so() {
            return false;
        }
        if is_enough {
            return true;
        }
    }
    false
}

/// Removes those of which `is_so` does not stay true for a time, as [`lasts`]. Returns whether some
/// are left. `None`, for what cannot be seen now, removes nothing before the deadline. Most are
/// removed at the first look, which is made at once.
pub(crate) fn retain_lasting<T>(
    deadline: Deadline,
    some: &mut [Option<T>],
    mut is_so: impl FnMut(&mut T) -> Option<bool>,
) -> bool {
    let mut are_left = || {
        for one in some.iter_mut() {
            one.take_if(|it| !is_so(it).unwrap_or_else(|| !deadline.is_over()));
        }
        some.iter().any(Option::is_some)
    };
    are_left() && lasts(deadline, are_left)
}

/// Takes a lock by `attempt`, which is repeated for a time, but not after the deadline. Returns
/// `None` if it is held all the time, as by a thread that this one has interrupted.
pub(crate) fn within_a_time<T>(
    deadline: Deadline,
    mut attempt: impl FnMut() -> Option<T>,
) -> Option<T> {
    let least = Deadline::after(FOR_LOCK);
    for tries in 1..=MOST {
        let taken = attempt();
        if taken.is_some() || deadline.is_over() || (tries > TRIES && least.is_over()) {
            return taken;
        }
        sleep(1);
    }
    None
}

/// Takes a lock by `attempt`, which is repeated for a few microseconds. Returns `None` if it is
/// held for longer, as by a thread that does not run.
pub(crate) fn for_a_moment<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    (0..SPINS).find_map(|_| {
        attempt().or_else(|| {
            core::hint::spin_loop();
            None
        })
    })
}

/// Sleeps for so many milliseconds.
pub(super) fn sleep(millis: u64) {
    os::futex_wait_for(&AtomicU32::new(0), 0, Some(millis));
}
