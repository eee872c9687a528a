//! The arena that a thread takes pages from first.

use super::arena::Arena;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, Ordering::Relaxed};

/// Meetings in a bin past the caches until a thread moves; twice as many after each move, up to
/// `DOUBLINGS` times. A thread with caches uses a bin once for many blocks, and goes to another
/// arena for that time only.
pub(in crate::middle) const PATIENCE: u32 = 64;
const DOUBLINGS: u32 = 16;

/// The arena that a thread takes pages from first. Written by its thread, read by any thread.
pub(crate) struct HomeArena {
    arena: AtomicPtr<Arena>,
    /// The thread was told to stay: it takes from no other arena, and waits if need be.
    bound: AtomicBool,
    /// Meetings with others past the caches since the last move, and moves because of meetings.
    pub(in crate::middle) meetings: AtomicU32,
    moves: AtomicU32,
}

impl HomeArena {
    /// A home that the thread leaves if it meets other threads there often.
    pub(crate) const fn new(arena: &'static Arena) -> HomeArena {
        HomeArena {
            arena: AtomicPtr::new(core::ptr::from_ref(arena).cast_mut()),
            ..HomeArena::none()
        }
    }

    /// No home yet. One is set before any thread reads it.
    pub(crate) const fn none() -> HomeArena {
        HomeArena {
            arena: AtomicPtr::new(core::ptr::null_mut()),
            bound: AtomicBool::new(false),
            meetings: AtomicU32::new(0),
            moves: AtomicU32::new(0),
        }
    }

    /// The arena that this home stands for.
    #[inline]
    pub(crate) fn get(&self) -> &'static Arena {
        // Acquire: pairs with the Release in `set`; the home of another thread may be a new arena.
        let arena = self.arena.load(Ordering::Acquire);
        // SAFETY: arenas live for ever; null is stored by `none` alone, and an owner sets its home
        // before another thread sees the owner.
        unsafe { &*arena }
    }

    /// Whether the thread was told to stay here.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound.load(Relaxed)
    }

    /// Sets whether the thread stays here, and forgets its meetings and moves.
    pub(crate) fn bind(&self, bound: bool) {
        self.bound.store(bound, Relaxed);
        self.meetings.store(0, Relaxed);
        self.moves.store(0, Relaxed);
    }

    /// Makes another arena the home.
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
