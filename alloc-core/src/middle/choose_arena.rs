//! Which arena a thread takes pages from, and when a new one is made.
//!
//! One arena at the start. A thread that finds its arena's lock taken tries the others once, and
//! its own for a few microseconds more; if all stay taken and fewer than the limit exist, a new one
//! is made and becomes the thread's home; else it waits. Source: vmalloc(3), "regions for malloc".

use super::arena::{self, Arena, ArenaPages};
use crate::back::page_allocator::Memory;
use crate::ground::counters::SharedCount;
use crate::ground::cpu_quota;
use crate::ground::options;
use crate::ground::sync::lock::{Guard, SPINS};
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

/// How many arenas beside the first there may be unless somebody says otherwise. Source:
/// vmalloc(3).
const DEFAULT_REGMAX: u32 = 64;
const UNSET: u32 = u32::MAX;

/// Entries that searched for an arena, and that waited for one.
pub(crate) static PROBES: SharedCount = SharedCount::new();
pub(crate) static WAITS: SharedCount = SharedCount::new();

/// What `opt.narenas` or the CPUs allow; 0 until asked.
static WANTED: AtomicU32 = AtomicU32::new(0);
static REGMAX: AtomicU32 = AtomicU32::new(UNSET);

/// The largest number of automatic arenas. Asks the system at the first call.
pub(crate) fn limit() -> u32 {
    let explicit = options::current().narenas;
    match REGMAX.load(Relaxed) {
        UNSET if explicit != 0 => explicit,
        UNSET => wanted().min(1 + DEFAULT_REGMAX),
        regmax => wanted().min(regmax.saturating_add(1)),
    }
}

/// Sets how many arenas beside the first there may be, and answers what it was. Arenas that exist
/// stay.
pub(crate) fn set_regmax(regmax: u32) -> u32 {
    match REGMAX.swap(regmax.min(UNSET - 1), Relaxed) {
        UNSET => DEFAULT_REGMAX,
        before => before,
    }
}

fn wanted() -> u32 {
    let known = WANTED.load(Relaxed);
    if known != 0 {
        return known;
    }
    let options = options::current();
    let wanted = match (options.narenas, cpu_quota::cpus()) {
        (0, 1) => 1,
        (0, cpus) => ((u64::from(cpus) * u64::from(options.narenas_ratio)) >> 16).max(1) as u32,
        (explicit, _) => explicit,
    };
    WANTED.store(wanted, Relaxed);
    wanted
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

/// Whether the arena with this index is one of those that threads spread over by themselves.
pub(crate) fn is_automatic(id: u32) -> bool {
    id < limit()
}

/// Calls `take` on the pages of an arena until it answers something: for memory that is unused but
/// there, in the arena that [`enter`] finds and then in the others that are free just now; after
/// that for new memory in the first. So no arena grows while another keeps memory that nobody uses.
pub(crate) fn with_pages<R>(
    home: &Home,
    mut take: impl FnMut(&mut ArenaPages, Memory) -> Option<R>,
) -> Option<R> {
    let (arena, mut pages) = enter(home);
    if let Some(found) = take(&mut pages, Memory::Resident) {
        return Some(found);
    }
    for other in arena::all().filter(|other| !core::ptr::eq(*other, arena)) {
        let Some(mut pages) = other.pages.try_lock() else { continue };
        if let Some(found) = take(&mut pages, Memory::Resident) {
            return Some(found);
        }
    }
    take(&mut pages, Memory::Any)
}

/// Locks the pages of `home`, or of another arena that is free just now. A new arena becomes the
/// home.
fn enter(home: &Home) -> (&'static Arena, Guard<'static, ArenaPages>) {
    let arena = home.get();
    if let Some(pages) = open(arena) {
        return (arena, pages);
    }
    PROBES.add(1);
    for other in arena::all() {
        if let Some(pages) = open(other) {
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
    for _ in 0..SPINS {
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
