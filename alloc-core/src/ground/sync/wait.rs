//! Waiting for what other threads are about to change.

use crate::ground::os;
use core::sync::atomic::AtomicU32;

/// A look is repeated so often, with so many milliseconds between two: together longer than a busy
/// system keeps a thread from running.
const LOOKS: usize = 20;
const BETWEEN: u64 = 20;

/// A lock is tried so often, with a millisecond between two tries.
const TRIES: usize = 50;

/// How often a lock is tried without a pause: for some 30 microseconds.
const SPINS: usize = 1000;

/// Returns whether something is so, and stays so for a time.
pub(crate) fn lasts(mut is_so: impl FnMut() -> bool) -> bool {
    (1..LOOKS).all(|_| {
        sleep(BETWEEN);
        is_so()
    })
}

/// Removes those of which `is_so` does not stay true for a time. Returns whether some are left.
pub(crate) fn retain_lasting<T>(some: &mut [Option<T>], mut is_so: impl FnMut(&T) -> bool) -> bool {
    let is_left = |some: &[Option<T>]| some.iter().any(Option::is_some);
    is_left(some)
        && lasts(|| {
            for one in some.iter_mut() {
                one.take_if(|it| !is_so(it));
            }
            is_left(some)
        })
}

/// Takes a lock by `attempt`, which is repeated for a time. Returns `None` if it is held all the
/// time, as by a thread that this one has interrupted.
pub(crate) fn within_a_time<T>(mut attempt: impl FnMut() -> Option<T>) -> Option<T> {
    attempt().or_else(|| {
        (0..TRIES).find_map(|_| {
            sleep(1);
            attempt()
        })
    })
}

/// Takes a lock by `attempt`, which is repeated for a few microseconds. Returns `None` if it is
/// held for longer, as by a thread that does not run.
pub(crate) fn for_a_moment<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    (0..SPINS).find_map(|_| {
        attempt().or_else(|| {
            core::hint::spin_loop();
            None
        })
    })
}

fn sleep(millis: u64) {
    os::futex_wait_for(&AtomicU32::new(0), 0, Some(millis));
}
