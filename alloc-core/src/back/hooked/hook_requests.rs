//! The runs that allocations in an arena with hooks lacked. They are noted under the lock of its
//! pages, and made when no lock is held.
//!
//! Each thread makes only what it lacked itself. So an extent hook that allocates does not cause
//! calls of hooks for other threads, and no thread finds its run in another thread's hands.

use crate::ground::os;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Requests in all arenas.
static REQUESTS: AtomicU32 = AtomicU32::new(0);
/// How often a request was replaced by another.
static DISPLACED: AtomicU32 = AtomicU32::new(0);

/// The most threads whose requests an arena notes at a time.
const MOST: usize = 16;

/// A run that an allocation lacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HookRequest {
    pub(crate) pages: usize,
    pub(crate) align: usize,
}

#[derive(Clone, Copy)]
struct Noted {
    request: HookRequest,
    thread: usize,
}

/// The requests of threads in one arena. Guarded by the lock of its pages.
pub(crate) struct HookRequests {
    slots: [Option<Noted>; MOST],
    /// Which request is replaced next if there are too many.
    next: usize,
}

/// Whether there is a request in any arena.
#[inline]
pub(crate) fn any() -> bool {
    REQUESTS.load(Relaxed) != 0
}

/// How often a request was replaced, because too many threads had one at a time. The thread whose
/// request was replaced tries again.
pub(crate) fn displaced() -> u32 {
    DISPLACED.load(Relaxed)
}

impl HookRequests {
    pub(in crate::back) const fn new() -> HookRequests {
        HookRequests { slots: [None; MOST], next: 0 }
    }

    /// Notes the request of the calling thread, in place of its earlier one.
    pub(in crate::back) fn note(&mut self, request: HookRequest) {
        self.note_for(os::own_mark(), request);
    }

    /// Takes the request of the calling thread.
    pub(in crate::back) fn take(&mut self) -> Option<HookRequest> {
        self.take_of(os::own_mark())
    }

    fn slot_of(&mut self, thread: usize) -> Option<&mut Option<Noted>> {
        self.slots.iter_mut().find(|slot| slot.is_some_and(|noted| noted.thread == thread))
    }

    fn note_for(&mut self, thread: usize, request: HookRequest) {
        let noted = Some(Noted { request, thread });
        if let Some(slot) = self.slot_of(thread) {
            *slot = noted;
            return;
        }
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *slot = noted;
            REQUESTS.fetch_add(1, Relaxed);
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
        REQUESTS.fetch_sub(1, Relaxed);
        Some(noted.request)
    }

    /// Forgets the requests of all threads.
    pub(in crate::back) fn forget(&mut self) {
        let noted = self.slots.iter_mut().filter_map(Option::take).count();
        REQUESTS.fetch_sub(noted as u32, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pages: usize) -> HookRequest {
        HookRequest { pages, align: 1 }
    }

    #[test]
    fn each_thread_finds_its_own_request_once() {
        let mut requests = HookRequests::new();
        requests.note_for(1, request(10));
        requests.note_for(2, request(20));
        requests.note_for(1, request(11));
        assert_eq!(requests.take_of(3), None);
        assert_eq!(requests.take_of(1), Some(request(11)), "the last one");
        assert_eq!(requests.take_of(1), None);
        assert_eq!(requests.take_of(2), Some(request(20)));
    }

    #[test]
    fn with_too_many_the_first_one_is_forgotten_and_that_is_said() {
        let mut requests = HookRequests::new();
        let before = displaced();
        for thread in 0..=MOST {
            requests.note_for(thread, request(thread + 1));
        }
        assert!(displaced() > before);
        assert_eq!(requests.take_of(0), None);
        assert_eq!(requests.take_of(MOST), Some(request(MOST + 1)));
        assert_eq!(requests.take_of(1), Some(request(2)));
        requests.forget();
        assert_eq!(requests.take_of(2), None);
    }
}
