//! What bounds refused, for each thread: a thread whose allocation has failed finds whether a bound
//! was the reason, which one, and how much was wanted.
//!
//! A refusal is noted under the lock of an arena's pages, far below the function that makes the
//! attempt. So it is left here, with the thread that it belongs to.

use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Pages that a bound refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    /// The bytes wanted.
    pub(crate) wanted: usize,
    /// The arena whose bound it was, or [`ANY`](super::limit::ANY).
    pub(crate) place: usize,
}

/// The most threads whose refusals are kept at a time.
const MOST: usize = 16;

#[derive(Clone, Copy)]
struct Noted {
    refusal: Refusal,
    /// By [`os::own_mark`].
    thread: usize,
    /// How often a bound had refused pages by then. 0: nothing is noted here.
    number: u64,
}

/// The last refusals of a few threads.
pub(crate) struct Refusals([Noted; MOST]);

const NONE: Noted = Noted { refusal: Refusal { wanted: 0, place: 0 }, thread: 0, number: 0 };

/// The refusals that no thread has taken yet. Under no other lock than that of an arena's pages.
pub(crate) static NOTED: RankedMutex<Refusals> =
    RankedMutex::new(LockRank::Guarded, Refusals([NONE; MOST]));
/// How often a bound refused pages.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// How often a refusal was replaced by that of another thread.
static DISPLACED: AtomicU32 = AtomicU32::new(0);

/// How often a bound refused pages so far.
pub(crate) fn count() -> u64 {
    REFUSED.load(Relaxed)
}

/// How often a refusal was replaced, because too many threads had one at a time. The thread whose
/// refusal was replaced tries again.
pub(crate) fn displaced() -> u32 {
    DISPLACED.load(Relaxed)
}

/// Counts a refusal, and notes it for the calling thread in place of its earlier one.
#[cold]
pub(crate) fn note(refusal: Refusal) {
    let mut noted = NOTED.lock();
    let number = REFUSED.fetch_add(1, Relaxed) + 1;
    noted.note(Noted { refusal, thread: os::own_mark(), number });
}

/// Takes the last refusal of the calling thread, if it came after the first `before`.
pub(crate) fn take_since(before: u64) -> Option<Refusal> {
    if count() == before {
        return None;
    }
    NOTED.lock().take(os::own_mark(), before)
}

impl Refusals {
    fn note(&mut self, new: Noted) {
        // The thread's own, an empty one, or the oldest.
        let order = |noted: &&mut Noted| (noted.thread != new.thread, noted.number);
        let Some(place) = self.0.iter_mut().min_by_key(order) else { return };
        if place.number != 0 && place.thread != new.thread {
            DISPLACED.fetch_add(1, Relaxed);
        }
        *place = new;
    }

    fn take(&mut self, thread: usize, before: u64) -> Option<Refusal> {
        let is_it = |noted: &&mut Noted| noted.thread == thread && noted.number > before;
        let noted = self.0.iter_mut().find(is_it)?;
        Some(core::mem::replace(noted, NONE).refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(thread: usize, number: u64) -> Noted {
        let place = thread * 100;
        Noted { refusal: Refusal { wanted: number as usize, place }, thread, number }
    }

    #[test]
    fn each_thread_finds_its_own_last_refusal_once() {
        let mut refusals = Refusals([NONE; MOST]);
        for (thread, number) in [(1, 1), (2, 2), (1, 3)] {
            refusals.note(noted(thread, number));
        }
        assert_eq!(refusals.take(3, 0), None);
        assert_eq!(refusals.take(1, 3), None, "it is older than that");
        assert_eq!(refusals.take(1, 2), Some(Refusal { wanted: 3, place: 100 }));
        assert_eq!(refusals.take(1, 0), None);
        assert_eq!(refusals.take(2, 0), Some(Refusal { wanted: 2, place: 200 }));
    }

    #[test]
    fn with_too_many_the_oldest_is_forgotten_and_that_is_said() {
        let mut refusals = Refusals([NONE; MOST]);
        let before = displaced();
        for thread in 1..=MOST + 1 {
            refusals.note(noted(thread, thread as u64));
        }
        assert!(displaced() > before);
        assert_eq!(refusals.take(1, 0), None);
        assert!((2..=MOST + 1).all(|thread| refusals.take(thread, 0).is_some()));
    }
}
