//! Arenas that the program creates, and what may be set for each arena. Source: jemalloc(3),
//! `arenas.*`, `arena.<i>.*`.
//!
//! The indices below the limit of automatic arenas (see [`narenas`](super::narenas)) are kept for
//! them when the first arena is created; created ones follow, and an index may come again after its
//! arena was destroyed.

use super::{ARENAS_ALL, ARENAS_DESTROYED};
use crate::back::hooked::hooks::default_hooks;
use crate::front::cache::registry::REGISTRY;
use crate::front::life::thread_begin::real_cache;
use crate::front::{calls::query, modes::guarded};
use crate::ground::{options::Dss, os};
use crate::middle::arenas::arena_settings::{self, Aging};
use crate::middle::arenas::{arena::Arena, arena_name::Name};
use crate::middle::arenas::{arena_hooks, arena_list, choose_arena};
use crate::middle::passes::{arena_end, decay_pass::PASS, reserve};
use crate::observe::graves;

pub use crate::back::hooked::hooks::{
    ExtentAlloc, ExtentDalloc, ExtentDestroy, ExtentHooks, ExtentMerge, ExtentRange, ExtentSplit,
};
pub use crate::middle::arenas::arena_name::NAME_BYTES;

/// Creates an arena and answers its index. Threads come there only by
/// [`Flags::arena`](crate::raw::Flags::arena), or when they are sent. `None`: no memory, or 4095
/// arenas. Source: jemalloc(3), `arenas.create`.
///
/// ```
/// use lumalloc::control::arenas;
/// use lumalloc::raw::{self, Flags};
///
/// let arena = arenas::create().unwrap();
/// let block = raw::allocate(100, Flags::NONE.arena(arena));
/// assert_eq!(arenas::lookup(block), Some(arena));
/// // SAFETY: nobody uses the arena's blocks any more.
/// assert!(unsafe { arenas::destroy(arena) });
/// assert!(!arenas::is_initialized(arena));
/// ```
#[must_use]
pub fn create() -> Option<u32> {
    real_cache();
    arena_list::create(choose_arena::limit()).map(Arena::id)
}

/// As [`create`], with functions of the program's that supply the arena's pages.
///
/// The functions run under no lock of the allocator's; they may allocate and read and write the
/// namespace. Each run of pages is dealt with by its own arena's functions and no others. While one
/// runs, its thread calls no other by the way:
/// - What it allocates comes from the first arena, past all caches; if that one has functions too,
///   what it lacks comes from the system.
/// - Blocks of such arenas are freed, but neither cut nor lengthened in place.
/// - Purging such arenas is put off until the function is done; ageing is left to the next pass.
/// - Where it names an arena with functions, to allocate there or to destroy it, those are called:
///   a function that allocates from its own arena is called again inside itself.
///
/// A fork does not wait for them: what one has in hand in another thread is lost to the child.
///
/// # Safety
/// The table stays where it is as long as the arena has it, or memory that came by it is in use,
/// and its functions do what jemalloc(3) says of them.
#[must_use]
pub unsafe fn create_with(hooks: *mut ExtentHooks) -> Option<u32> {
    let index = create()?;
    if let Some(arena) = find_created(index).filter(|_| !hooks.is_null()) {
        arena_hooks::set(arena, hooks);
    }
    Some(index)
}

/// The functions that supply an arena's pages: those that were set, or the default ones, which work
/// on any memory that came from them. An automatic arena that has not been made has the default
/// ones, and is not made by this. `None`: there is no arena with this index. Source: jemalloc(3),
/// `arena.<i>.extent_hooks`.
///
/// ```
/// let hooks = lumalloc::control::arenas::extent_hooks(0).unwrap();
/// // SAFETY: the table is there, and nobody changes it.
/// assert!(unsafe { *hooks }.alloc.is_some());
/// ```
#[must_use]
pub fn extent_hooks(index: u32) -> Option<*mut ExtentHooks> {
    let made = find(index).map(Arena::hook_table);
    made.or_else(|| (index < choose_arena::limit()).then(default_hooks))
}

/// Sets the functions that supply an arena's pages, and answers those before; an automatic arena
/// that has not been made is made now. They get pages that others supplied, and pass them on. From
/// then on runs of pages are cut and merged by their leave. `None`: there is no arena with this
/// index, or `hooks` is null.
///
/// # Safety
/// As [`create_with`].
#[must_use]
pub unsafe fn set_extent_hooks(index: u32, hooks: *mut ExtentHooks) -> Option<*mut ExtentHooks> {
    if hooks.is_null() {
        return None;
    }
    let arena = find(index).or_else(|| choose_arena::automatic(index))?;
    Some(arena_hooks::set(arena, hooks))
}

/// The arena that a block belongs to. `None`: the pointer is no block of this allocator. Source:
/// jemalloc(3) 5.1, `arenas.lookup`.
///
/// ```
/// let on_the_stack = 1u8;
/// assert_eq!(lumalloc::control::arenas::lookup(&on_the_stack), None);
/// ```
#[must_use]
pub fn lookup(block: *const u8) -> Option<u32> {
    let arena = query::arena_of(block as usize);
    // A guarded sample lies in no arena: the first one stands for it.
    arena.or_else(|| guarded::usable_size(block as usize).map(|_| 0))
}

/// Whether there is an arena with this index: it has been made and was not destroyed. Also for
/// [`ARENAS_ALL`], and for [`ARENAS_DESTROYED`] when one has been destroyed. Source: jemalloc(3),
/// `arena.<i>.initialized`.
#[must_use]
pub fn is_initialized(index: u32) -> bool {
    match index {
        ARENAS_ALL => true,
        ARENAS_DESTROYED => arena_list::destroyed() > 0,
        _ => find(index).is_some(),
    }
}

/// Discards every block of a created arena. `false`: there is none with this index, or it is an
/// automatic one. Source: jemalloc(3), `arena.<i>.reset`.
///
/// # Safety
/// Nobody uses a block of the arena any more, nor frees one or allocates there meanwhile; caches
/// that had to do with the arena have been flushed. (Of what they still hold, a free that sends it
/// home ends the process with a message, unless the place was handed out again.)
#[must_use]
pub unsafe fn reset(index: u32) -> bool {
    let Some(arena) = find_created(index) else { return false };
    discard(arena);
    true
}

/// Discards every block of a created arena, gives its memory back, and ends it: the index may come
/// again. `false`: there is no created arena with this index, or threads are bound to it; then
/// nothing is done. Memory that came by functions of the program's goes back by their `dalloc`, and
/// what that refuses by `destroy`; without `destroy`, that part stays the program's. Source:
/// jemalloc(3), `arena.<i>.destroy`.
///
/// # Safety
/// As [`reset`].
#[must_use]
pub unsafe fn destroy(index: u32) -> bool {
    let Some(arena) = find_created(index).filter(|arena| arena.begin_end()) else { return false };
    discard(arena);
    arena_end::give_addresses_back(arena);
    graves::dig(arena);
    arena_end::complete_end(arena);
    true
}

fn discard(arena: &'static Arena) {
    let _pass = PASS.lock();
    let _registry = REGISTRY.lock();
    arena_end::discard_all(arena);
}

/// How many threads are bound to an arena. Source: jemalloc(3), `stats.arenas.<i>.nthreads`.
#[must_use]
pub fn bound_threads(index: u32) -> Option<u32> {
    find(index).map(Arena::bound)
}

/// Purges what is due by the decay curve now, of an arena or of all for [`ARENAS_ALL`]. `false`:
/// there is no arena with this index. Source: jemalloc(3), `arena.<i>.decay`.
#[must_use]
pub fn decay(index: u32) -> bool {
    let now = os::coarse_millis();
    for_each(index, |arena| {
        arena.decay(now);
    })
}

/// Which unused pages a decay time is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Those that still have memory.
    Dirty,
    /// Those whose memory the system takes when it likes.
    Muzzy,
}

impl Pages {
    fn aging(self) -> Aging {
        match self {
            Pages::Dirty => Aging::Dirty,
            Pages::Muzzy => Aging::Muzzy,
        }
    }
}

/// Milliseconds until unused pages of an arena are purged: -1 never, 0 at once. `None`: there is no
/// arena with this index. Source: jemalloc(3), `arena.<i>.dirty_decay_ms`.
#[must_use]
pub fn decay_ms(index: u32, pages: Pages) -> Option<isize> {
    find(index).map(|arena| arena_settings::decay_ms(arena, pages.aging()))
}

/// Sets that time; what is unused now is purged, unless the time is -1. `false`: there is no arena
/// with this index, or the time is below -1.
///
/// ```
/// use lumalloc::control::arenas::{self, Pages};
/// let before = arenas::decay_ms(0, Pages::Dirty).unwrap();
/// assert!(arenas::set_decay_ms(0, Pages::Dirty, 100));
/// assert!(!arenas::set_decay_ms(0, Pages::Dirty, -2));
/// assert_eq!(arenas::decay_ms(0, Pages::Dirty), Some(100));
/// assert!(arenas::set_decay_ms(0, Pages::Dirty, before));
/// ```
#[must_use]
pub fn set_decay_ms(index: u32, pages: Pages, millis: isize) -> bool {
    find(index).is_some_and(|arena| arena_settings::set_decay_ms(arena, pages.aging(), millis))
}

/// The same time for arenas made later. Source: jemalloc(3), `arenas.dirty_decay_ms`.
#[must_use]
pub fn default_decay_ms(pages: Pages) -> isize {
    real_cache();
    arena_settings::default_decay_ms(pages.aging())
}

/// Sets the time for arenas made later. `false`: it is below -1.
#[must_use]
pub fn set_default_decay_ms(pages: Pages, millis: isize) -> bool {
    real_cache();
    arena_settings::set_default_decay_ms(pages.aging(), millis)
}

/// When an arena takes addresses from the data segment; for [`ARENAS_ALL`], when arenas made later
/// will. `None`: there is no arena with this index. Source: jemalloc(3), `arena.<i>.dss`.
#[must_use]
pub fn dss(index: u32) -> Option<Dss> {
    if index == ARENAS_ALL {
        real_cache();
        return Some(arena_settings::default_dss());
    }
    find(index).map(arena_settings::dss)
}

/// Sets it. `false`: there is no arena with this index.
#[must_use]
pub fn set_dss(index: u32, dss: Dss) -> bool {
    if index == ARENAS_ALL {
        real_cache();
        arena_settings::set_default_dss(dss);
        return true;
    }
    find(index).map(|arena| arena_settings::set_dss(arena, dss)).is_some()
}

/// The name of an arena, NUL-terminated: `auto_<i>` or `manual_<i>` unless it was given another.
/// Source: jemalloc(3) 5.3, `arena.<i>.name`.
///
/// ```
/// use lumalloc::control::arenas;
/// assert!(arenas::name(0).unwrap().starts_with(b"auto_0\0"));
/// assert!(arenas::set_name(0, b"main"));
/// assert!(arenas::name(0).unwrap().starts_with(b"main\0"));
/// # arenas::set_name(0, b"auto_0");
/// ```
#[must_use]
pub fn name(index: u32) -> Option<[u8; NAME_BYTES]> {
    find(index).map(|arena| arena_settings::name(arena).bytes())
}

/// Names an arena: the first 31 bytes of the text, up to a NUL. `false`: there is none.
pub fn set_name(index: u32, name: &[u8]) -> bool {
    find(index).map(|arena| arena_settings::set_name(arena, Name::new(name))).is_some()
}

/// Bytes up to which the reservations that an arena makes in advance grow. Source: jemalloc(3) 5.1,
/// `arena.<i>.retain_grow_limit`.
#[must_use]
pub fn retain_grow_limit(index: u32) -> Option<usize> {
    find(index).map(arena_settings::grow_limit)
}

/// Sets it, rounded down to a page class. `false`: there is no arena with this index, or it is less
/// than a page.
#[must_use]
pub fn set_retain_grow_limit(index: u32, bytes: usize) -> bool {
    find(index).is_some_and(|arena| arena_settings::set_grow_limit(arena, bytes))
}

/// Bytes from which on a block that is freed is given back to the system at once; 0: none is, which
/// is what arenas begin with. Source: jemalloc(3) 5.3, `arena.<i>.oversize_threshold`.
#[must_use]
pub fn oversize_threshold(index: u32) -> Option<usize> {
    find(index).map(arena_settings::oversize)
}

/// Sets it. `false`: there is no arena with this index.
#[must_use]
pub fn set_oversize_threshold(index: u32, bytes: usize) -> bool {
    find(index).map(|arena| arena_settings::set_oversize(arena, bytes)).is_some()
}

/// Bytes of pages with memory that an arena holds, in use or not.
#[must_use]
pub fn held(index: u32) -> Option<usize> {
    find(index).map(arena_settings::held)
}

/// Bytes of pages with memory that an arena may hold; 0: any, which is what arenas begin with. What
/// happens beyond is as for [`limits`](super::limits).
#[must_use]
pub fn limit(index: u32) -> Option<usize> {
    find(index).map(arena_settings::limit)
}

/// Sets it. `false`: there is no arena with this index.
///
/// ```
/// use lumalloc::control::arenas;
/// use lumalloc::raw::{self, Flags};
/// let arena = arenas::create().unwrap();
/// assert!(arenas::set_limit(arena, 1 << 20));
/// assert!(raw::allocate(2 << 20, Flags::NONE.arena(arena)).is_null());
/// ```
#[must_use]
pub fn set_limit(index: u32, bytes: usize) -> bool {
    find(index).map(|arena| arena_settings::set_limit(arena, bytes)).is_some()
}

/// Whether the hard bound of all arenas refuses it no pages. Its own limit holds.
#[must_use]
pub fn is_limit_exempt(index: u32) -> Option<bool> {
    find(index).map(arena_settings::is_limit_exempt)
}

/// Sets it, for threads that can raise the limit. `false`: there is no arena with this index.
///
/// ```
/// use lumalloc::control::arenas;
/// let arena = arenas::create().unwrap();
/// assert!(arenas::set_limit_exempt(arena, true) && arenas::is_limit_exempt(arena) == Some(true));
/// ```
#[must_use]
pub fn set_limit_exempt(index: u32, is_exempt: bool) -> bool {
    find(index).map(|arena| arena_settings::set_limit_exempt(arena, is_exempt)).is_some()
}

/// Bytes of unused pages of an arena that stay, whatever purges; 0 unless somebody sets it.
#[must_use]
pub fn reserve(index: u32) -> Option<usize> {
    find(index).map(Arena::reserved_bytes)
}

/// Sets it, and purges what is unused beyond. `false`: there is no arena with this index.
///
/// For threads that must go on when there is no memory left: those whose arena it is wait for no
/// other arena, purge for nobody, and ask no callback; their allocations fail at once. Unused pages
/// get there by being freed there, and stay long enough with a decay time of -1. Under blocks of
/// 4 MiB and more lie huge pages, which no purge cuts in two: up to 2 MiB less may stay of those.
///
/// ```
/// use lumalloc::control::{arenas, purge};
/// use lumalloc::raw::{self, Flags};
/// let arena = arenas::create().unwrap();
/// assert!(arenas::set_reserve(arena, 1 << 20));
/// let block = raw::allocate(3 << 20, Flags::NONE.arena(arena));
/// unsafe { raw::free(block) };
/// purge(arena);
/// assert!(arenas::held(arena).unwrap() >= 1 << 20);
/// ```
#[must_use]
pub fn set_reserve(index: u32, bytes: usize) -> bool {
    find(index).map(|arena| reserve::set(arena, bytes)).is_some()
}

/// The arena with an index, if it lives.
fn find(index: u32) -> Option<&'static Arena> {
    real_cache();
    arena_list::by_id(index).filter(|arena| arena.is_live())
}

fn find_created(index: u32) -> Option<&'static Arena> {
    find(index).filter(|arena| arena.is_created())
}

/// Calls `act` on an arena or on all. `false`: there is no such index.
fn for_each(index: u32, act: impl Fn(&'static Arena)) -> bool {
    real_cache();
    if index == ARENAS_ALL {
        arena_list::all().for_each(act);
        return true;
    }
    arena_list::by_id(index).into_iter().for_each(act);
    index < super::narenas()
}
