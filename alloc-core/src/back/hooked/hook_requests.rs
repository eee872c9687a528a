//! The runs that allocations in an arena with hooks lacked. They are noted under the lock of its
//! pages, and made when no lock is held.
//!
//! Each thread makes only what it lacked itself. So an extent hook that allocates does not cause
//! calls of hooks for other threads, and no thread finds its run in another thread's hands.

use crate::ground::os;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Wants in all arenas.
static WANTS: AtomicU32 = AtomicU32::new(0);
/// How often a want was replaced by another.
static DISPLACED: AtomicU32 = AtomicU32::new(0);

/// The most threads whose wants an arena notes at a time.
const MOST: usize = 16;

/// A run that an allocation lacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HookRequest {
    pub(crate) pages: usize,
    pub(crate) align: usize,
}

#[derive(Clone, Copy)]
struct Noted {
    want: HookRequest,
    thread: usize,
}

/// The wants of threads in one arena. Guarded by the lock of its pages.
pub(crate) struct HookRequests {
    slots: [Option<Noted>; MOST],
    /// Which want is replaced next if there are too many.
    next: usize,
}

/// Whether there is a want in any arena.
#[inline]
pub(crate) fn is_wanting() -> bool {
    WANTS.load(Relaxed) != 0
}

/// How often a want was replaced, because too many threads had one at a time. The thread whose want
/// was replaced tries again.
pub(crate) fn displaced() -> u32 {
    DISPLACED.load(Relaxed)
}

impl HookRequests {
    pub(in crate::back) const fn new() -> HookRequests {
        HookRequests { slots: [None; MOST], next: 0 }
    }

    /// Notes the want of the calling thread, in place of its earlier one.
    pub(in crate::back) fn note(&mut self, want: HookRequest) {
        self.note_for(os::own_mark(), want);
    }

    /// Takes the want of the calling thread.
    pub(in crate::back) fn take(&mut self) -> Option<HookRequest> {
        self.take_of(os::own_mark())
    }

    fn slot_of(&mut self, thread: usize) -> Option<&mut Option<Noted>> {
        self.slots.iter_mut().find(|slot| slot.is_some_and(|noted| noted.thread == thread))
    }

    fn note_for(&mut self, thread: usize, want: HookRequest) {
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

    fn take_of(&mut self, thread: usize) -> Option<HookRequest> {
        let noted = self.slot_of(thread)?.take()?;
        WANTS.fetch_sub(1, Relaxed);
        Some(noted.want)
    }

    /// Forgets the wants of all threads.
    pub(in crate::back) fn forget(&mut self) {
        let noted = self.slots.iter_mut().filter_map(Option::take).count();
        WANTS.fetch_sub(noted as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn want(pages: usize) -> HookRequest {
        HookRequest { pages, align: 1 }
    }

    #[test]
    fn each_thread_finds_its_own_want_once() {
        let mut wants = HookRequests::new();
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
        let mut wants = HookRequests::new();
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
