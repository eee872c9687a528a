//! What allocations in an arena with hooks lacked: noted under the lock of its pages, served when
//! none is held.
//!
//! Each thread serves what it lacked itself. So an extent hook that allocates has nobody else's
//! hooks called, and nobody finds that what he lacked is in another thread's hands.

use crate::ground::os;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Runs that are lacked, in all arenas.
static WANTS: AtomicU32 = AtomicU32::new(0);
/// How often one was forgotten for another.
static DISPLACED: AtomicU32 = AtomicU32::new(0);

/// Threads whose wants an arena notes at a time.
const MOST: usize = 16;

/// A run that an allocation lacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    pub(crate) pages: usize,
    pub(crate) align: usize,
}

#[derive(Clone, Copy)]
struct Noted {
    want: Want,
    thread: usize,
}

/// What threads lack in one arena. Under the lock of its pages.
pub(crate) struct Wants {
    slots: [Option<Noted>; MOST],
    /// Which is forgotten next where there are too many.
    next: usize,
}

/// Whether any arena lacks a run.
#[inline]
pub(crate) fn is_wanting() -> bool {
    WANTS.load(Relaxed) != 0
}

/// How often a want was forgotten, because too many threads lacked something at a time: whose it
/// was tries again.
pub(crate) fn displaced() -> u32 {
    DISPLACED.load(Relaxed)
}

impl Wants {
    pub(in crate::back) const fn new() -> Wants {
        Wants { slots: [None; MOST], next: 0 }
    }

    /// Notes what the calling thread lacks, instead of what it lacked before.
    pub(in crate::back) fn note(&mut self, want: Want) {
        self.note_for(os::own_mark(), want);
    }

    /// What the calling thread lacks, once.
    pub(in crate::back) fn take(&mut self) -> Option<Want> {
        self.take_of(os::own_mark())
    }

    fn slot_of(&mut self, thread: usize) -> Option<&mut Option<Noted>> {
        self.slots.iter_mut().find(|slot| slot.is_some_and(|noted| noted.thread == thread))
    }

    fn note_for(&mut self, thread: usize, want: Want) {
        let noted = Some(Noted { want, thread });
        if let Some(slot) = self.slot_of(thread) {
            *slot = noted;
            return;
        }
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *slot = noted;
            WANTS.fetch_add(1, Relaxed);
            return;
        }
        if let Some(slot) = self.slots.get_mut(self.next) {
            *slot = noted;
            DISPLACED.fetch_add(1, Relaxed);
        }
        self.next = (self.next + 1) % MOST;
    }

    fn take_of(&mut self, thread: usize) -> Option<Want> {
        let noted = self.slot_of(thread)?.take()?;
        WANTS.fetch_sub(1, Relaxed);
        Some(noted.want)
    }

    /// Forgets what all threads lack.
    pub(in crate::back) fn forget(&mut self) {
        let noted = self.slots.iter_mut().filter_map(Option::take).count();
        WANTS.fetch_sub(noted as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(pages: usize) -> Want {
        Want { pages, align: 1 }
    }

    #[test]
    fn each_thread_finds_its_own_want_once() {
        let mut wants = Wants::new();
        wants.note_for(1, want(10));
        wants.note_for(2, want(20));
        wants.note_for(1, want(11));
        assert_eq!(wants.take_of(3), None);
        assert_eq!(wants.take_of(1), Some(want(11)), "the last one");
        assert_eq!(wants.take_of(1), None);
        assert_eq!(wants.take_of(2), Some(want(20)));
    }

    #[test]
    fn with_too_many_the_first_one_is_forgotten_and_that_is_said() {
        let mut wants = Wants::new();
        let before = displaced();
        for thread in 0..=MOST {
            wants.note_for(thread, want(thread + 1));
        }
        assert!(displaced() > before);
        assert_eq!(wants.take_of(0), None);
        assert_eq!(wants.take_of(MOST), Some(want(MOST + 1)));
        assert_eq!(wants.take_of(1), Some(want(2)));
        wants.forget();
        assert_eq!(wants.take_of(2), None);
    }
}
