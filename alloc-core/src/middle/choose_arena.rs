//! Which arena a thread takes pages from, and when a new one is made.
//!
//! One arena at the start. A thread that finds its arena's lock taken tries the others once, and
//! its own for a few microseconds more; if all stay taken and fewer than the limit exist, a new one
//! is made and becomes the thread's home; else it waits. Source: vmalloc(3), "regions for malloc".

use super::arena::{self, Arena, ArenaPages};
use crate::ground::counters::SharedCount;
use crate::ground::cpu_quota;
use crate::ground::options;
use crate::ground::sync::lock::Guard;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use crossbeam_utils::Backoff;

/// The arena that a thread takes pages from first. Written by its thread, read by anyone.
pub(crate) struct Home(AtomicPtr<Arena>);

impl Home {
    /// A home.
    pub(crate) const fn new(arena: &'static Arena) -> Home {
        Home(AtomicPtr::new(core::ptr::from_ref(arena).cast_mut()))
    }

    /// The arena.
    #[inline]
    pub(crate) fn get(&self) -> &'static Arena {
        // SAFETY: only arenas are stored, and arenas live for ever.
        unsafe { &*self.0.load(Relaxed) }
    }

    /// Moves.
    pub(crate) fn set(&self, arena: &'static Arena) {
        self.0.store(core::ptr::from_ref(arena).cast_mut(), Relaxed);
    }
}

/// One more than `setregmax`'s default.
const DEFAULT_REGIONS: u32 = 65;

/// Entries that searched for an arena, and that waited for one.
pub(crate) static PROBES: SharedCount = SharedCount::new();
pub(crate) static WAITS: SharedCount = SharedCount::new();

static LIMIT: AtomicU32 = AtomicU32::new(0);

/// The largest number of automatic arenas. Asks the system at the first call.
pub(crate) fn limit() -> u32 {
    let known = LIMIT.load(Relaxed);
    if known != 0 {
        return known;
    }
    let options = options::current();
    let limit = match options.narenas {
        0 => {
            let per_cpu = u64::from(options.narenas_ratio);
            let cpus = cpu_quota::cpus();
            let wanted = if cpus == 1 { 1 } else { (u64::from(cpus) * per_cpu) >> 16 };
            (wanted.max(1) as u32).min(DEFAULT_REGIONS)
        }
        explicit => explicit,
    };
    LIMIT.store(limit, Relaxed);
    limit
}

/// The automatic arena with an index, made now if it must be.
pub(crate) fn automatic(id: u32) -> Option<&'static Arena> {
    if id >= limit() {
        return None;
    }
    while arena::count() <= id {
        arena::make_next(limit())?;
    }
    arena::by_id(id)
}

/// Locks the pages of `home`, or of another arena that is free just now and becomes the home.
pub(crate) fn enter(home: &Home) -> (&'static Arena, Guard<'static, ArenaPages>) {
    let arena = home.get();
    if let Some(pages) = open(arena) {
        return (arena, pages);
    }
    PROBES.add(1);
    for other in arena::all() {
        if let Some(pages) = open(other) {
            home.set(other);
            return (other, pages);
        }
    }
    if let Some(pages) = open_soon(arena) {
        return (arena, pages);
    }
    if arena::count() < limit()
        && let Some(new) = arena::make_next(limit())
    {
        home.set(new);
        if let Some(pages) = open(new) {
            return (new, pages);
        }
    }
    WAITS.add(1);
    (arena, arena.pages.lock())
}

/// Tries a little longer: a lock that is held for a moment is no reason for one more arena, which
/// would keep its own unused pages from then on.
fn open_soon(arena: &'static Arena) -> Option<Guard<'static, ArenaPages>> {
    let backoff = Backoff::new();
    while !backoff.is_completed() {
        backoff.spin();
        if let Some(pages) = open(arena) {
            return Some(pages);
        }
    }
    None
}

fn open(arena: &'static Arena) -> Option<Guard<'static, ArenaPages>> {
    let mut pages = arena.pages.try_lock()?;
    pages.opens += 1;
    Some(pages)
}
