//! The arena that a thread takes pages from first.

use super::arena::Arena;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, Ordering::Relaxed};

/// Meetings in a bin past the caches until a thread moves; twice as many after each move, up to
/// this many doublings. One with caches comes to a bin once for many blocks, and goes elsewhere for
/// that time only.
pub(in crate::middle) const PATIENCE: u32 = 64;
const DOUBLINGS: u32 = 16;

/// The arena that a thread takes pages from first. Written by its thread, read by anyone.
pub(crate) struct Home {
    arena: AtomicPtr<Arena>,
    /// The thread was told to stay: it takes from no other arena, and waits where it must.
    bound: AtomicBool,
    /// Meetings with others past the caches since it moved because of them, and such moves.
    pub(in crate::middle) meetings: AtomicU32,
    moves: AtomicU32,
}

impl Home {
    /// A home that the thread leaves where it meets others.
    pub(crate) const fn new(arena: &'static Arena) -> Home {
        Home { arena: AtomicPtr::new(core::ptr::from_ref(arena).cast_mut()), ..Home::none() }
    }

    /// None yet: one is set before anybody asks.
    pub(crate) const fn none() -> Home {
        Home {
            arena: AtomicPtr::new(core::ptr::null_mut()),
            bound: AtomicBool::new(false),
            meetings: AtomicU32::new(0),
            moves: AtomicU32::new(0),
        }
    }

    /// The arena.
    #[inline]
    pub(crate) fn get(&self) -> &'static Arena {
        // Acquire: pairs with the Release in `set`; another thread's may be a new arena.
        let arena = self.arena.load(Ordering::Acquire);
        // SAFETY: arenas live for ever; null is stored by `none` alone, and an owner sets its home
        // before it lets anybody see it.
        unsafe { &*arena }
    }

    /// Whether the thread stays here.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound.load(Relaxed)
    }

    /// Says whether the thread stays here. It has met nobody yet.
    pub(crate) fn bind(&self, bound: bool) {
        self.bound.store(bound, Relaxed);
        self.meetings.store(0, Relaxed);
        self.moves.store(0, Relaxed);
    }

    /// Moves.
    pub(crate) fn set(&self, arena: &'static Arena) {
        // Release: pairs with the Acquire in `get`.
        self.arena.store(core::ptr::from_ref(arena).cast_mut(), Ordering::Release);
    }

    /// Notes a meeting with another thread past the caches. Returns whether there have been so many
    /// that the thread should move.
    pub(in crate::middle) fn meets_often(&self) -> bool {
        let (meetings, moves) = (self.meetings.load(Relaxed) + 1, self.moves.load(Relaxed));
        if meetings < PATIENCE << moves {
            self.meetings.store(meetings, Relaxed);
            return false;
        }
        self.meetings.store(0, Relaxed);
        self.moves.store((moves + 1).min(DOUBLINGS), Relaxed);
        true
    }
}
