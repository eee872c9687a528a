//! Arenas that the program creates, and the settings of each arena. Source: jemalloc(3),
//! `arenas.*`, `arena.<i>.*`.
//!
//! When the first arena is created, the indices below the limit of automatic arenas (see
//! [`narenas`](super::narenas)) are kept for automatic ones. The indices of created arenas follow.
//! An index may be used again after its arena was destroyed.

use super::discard::discard;
use super::{ARENAS_ALL, ARENAS_DESTROYED};
use crate::back::hooked::hooks::default_hooks;
use crate::front::life::background;
use crate::front::life::thread_begin::real_cache;
use crate::front::modes::guarded;
use crate::ground::{options::Dss, os};
use crate::middle::arenas::arena_settings::{self, Aging};
use crate::middle::arenas::{arena::Arena, arena_name::Name};
use crate::middle::arenas::{arena_hooks, arena_list, choose_arena};
use crate::middle::blocks::{block_arena, empty_blocks};
use crate::middle::passes::{arena_end, reserve};
use crate::observe::destroyed;

pub use crate::back::hooked::hooks::{
    ExtentAlloc, ExtentDalloc, ExtentDestroy, ExtentHooks, ExtentMerge, ExtentRange, ExtentSplit,
};
pub use crate::middle::arenas::arena_name::NAME_BYTES;

/// Creates an arena and returns its index, or `None` if there is no memory, or there are 4095
/// arenas. Threads allocate from it only by [`Flags::arena`](crate::raw::Flags::arena), or when
/// they are moved there (see [`thread`](super::thread)). Source: jemalloc(3), `arenas.create`.
///
/// ```
/// use lumalloc::control::arenas;
/// use lumalloc::raw::{self, Flags};
/// let arena = arenas::create().unwrap();
/// let block = raw::allocate(100, Flags::NONE.arena(arena));
/// assert_eq!(arenas::lookup(block), Some(arena));
/// // SAFETY: no thread uses the arena's blocks any more.
/// assert!(unsafe { arenas::destroy(arena) });
/// assert!(!arenas::is_initialized(arena));
/// ```
#[must_use]
pub fn create() -> Option<u32> {
    real_cache();
    choose_arena::create().map(Arena::id)
}

/// As [`create`], but functions of the program supply the arena's pages.
///
/// The functions run under no lock of the allocator. They may allocate, and read and write the
/// namespace. Each run of pages is handled by the functions of its own arena only. While one runs,
/// the allocator calls no other in that thread as a side effect:
/// - Its allocations come from the first arena, past all caches. If that arena has functions too,
///   pages that it lacks come from the system.
/// - Blocks of arenas with functions are freed, but neither cut nor lengthened in place.
/// - Purging arenas with functions waits until the function returns, ageing until the next pass.
/// - If it names an arena with functions, to allocate there or to destroy it, these are called. A
///   function that allocates from its own arena is called again inside itself.
///
/// A fork does not wait for them. Pages that one handles in another thread are lost to the child.
///
/// # Safety
/// The table stays where it is as long as the arena has it, or memory that it supplied is in use.
/// Its functions do what jemalloc(3) says of them.
#[must_use]
pub unsafe fn create_with(hooks: *mut ExtentHooks) -> Option<u32> {
    let index = create()?;
    if let Some(arena) = find_created(index).filter(|_| !hooks.is_null()) {
        arena_hooks::set(arena, hooks);
    }
    Some(index)
}

/// Returns the functions that supply an arena's pages: those that were set, or the default ones,
/// which work on any memory that they supplied. An automatic arena that has not been made has the
/// default ones, and this call does not make it. Returns `None` if there is no arena with this
/// index. Source: jemalloc(3), `arena.<i>.extent_hooks`.
///
/// ```
/// let hooks = lumalloc::control::arenas::extent_hooks(0).unwrap();
/// // SAFETY: the table is there, and no thread changes it.
/// assert!(unsafe { *hooks }.alloc.is_some());
/// ```
#[must_use]
pub fn extent_hooks(index: u32) -> Option<*mut ExtentHooks> {
    let made = find(index).map(Arena::hook_table);
    made.or_else(|| (index < choose_arena::limit()).then(default_hooks))
}

/// Sets the functions that supply an arena's pages, and returns the previous ones. An automatic
/// arena that has not been made is made now. The functions also get pages that others supplied, and
/// pass them on. From then on runs of pages are cut and merged only if they agree. Returns `None`
/// if there is no arena with this index, or `hooks` is null.
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

/// Returns the arena that a block belongs to, or `None` if the pointer is no block of this
/// allocator. Source: jemalloc(3) 5.1, `arenas.lookup`.
///
/// ```
/// let on_the_stack = 1u8;
/// assert_eq!(lumalloc::control::arenas::lookup(&on_the_stack), None);
/// ```
#[must_use]
pub fn lookup(block: *const u8) -> Option<u32> {
    let address = block as usize;
    let is_elsewhere =
        || guarded::usable_size(address).is_some() || empty_blocks::is_block_at(address);
    // A guarded sample or a block of 0 bytes lies in no arena, so the first one stands for it.
    block_arena::arena_of(address).or_else(|| is_elsewhere().then_some(0))
}

/// Whether an arena with this index was made and not destroyed. Also true for [`ARENAS_ALL`], and
/// for [`ARENAS_DESTROYED`] if any was destroyed. Source: jemalloc(3), `arena.<i>.initialized`.
#[must_use]
pub fn is_initialized(index: u32) -> bool {
    match index {
        ARENAS_ALL => true,
        ARENAS_DESTROYED => arena_list::destroyed() > 0,
        _ => find(index).is_some(),
    }
}

/// Discards every block of a created arena. Returns `false` if there is none with this index, or it
/// is an automatic one. Source: jemalloc(3), `arena.<i>.reset`.
///
/// # Safety
/// No thread uses a block of the arena any more, nor frees one or allocates there meanwhile. Caches
/// that had blocks of the arena have been flushed. (Returning a block that they still hold to its
/// slab ends the process with a message, unless the place was handed out again.)
#[must_use]
pub unsafe fn reset(index: u32) -> bool {
    let Some(arena) = find_created(index) else { return false };
    discard(arena);
    background::tick_outside();
    true
}

/// Discards every block of a created arena, gives its memory back, and destroys it. The index may
/// be used again. Returns `false`, and does nothing, if there is no created arena with this index,
/// or if a thread is bound to it or an explicit cache takes pages from it. Memory that functions of
/// the program supplied goes back by their `dalloc`, or by `destroy` if that refuses. Else the
/// program keeps it. Source: jemalloc(3), `arena.<i>.destroy`.
///
/// # Safety
/// As [`reset`].
#[must_use]
pub unsafe fn destroy(index: u32) -> bool {
    let Some(arena) = find_created(index).filter(|arena| arena.begin_end()) else { return false };
    discard(arena);
    arena_end::give_addresses_back(arena);
    destroyed::keep(arena);
    arena_end::complete_end(arena);
    background::tick_outside();
    true
}

/// The number of threads bound to an arena. Source: jemalloc(3), `stats.arenas.<i>.nthreads`.
#[must_use]
pub fn bound_threads(index: u32) -> Option<u32> {
    find(index).map(|arena| arena.life().bound())
}

/// Purges what is due by the decay curve now, of an arena or of all for [`ARENAS_ALL`]. Returns
/// `false` if there is no arena with this index. Source: jemalloc(3), `arena.<i>.decay`.
#[must_use]
pub fn decay(index: u32) -> bool {
    let now = os::coarse_millis();
    for_each(index, |arena| arena.decay_by_hand(now))
}

/// The kind of unused pages that a decay time is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pages {
    /// Pages that still have memory.
    Dirty,
    /// Pages whose memory the system takes when it needs it.
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

/// Returns the milliseconds until an arena's unused pages are purged (-1 never, 0 at once). `None`
/// if there is no arena with this index. Source: jemalloc(3), `arena.<i>.dirty_decay_ms`.
#[must_use]
pub fn decay_ms(index: u32, pages: Pages) -> Option<isize> {
    find(index).map(|arena| arena_settings::decay_ms(arena, pages.aging()))
}

/// Sets the time of [`decay_ms`]. Purges what is unused now, unless the time is -1. Returns `false`
/// if there is no arena with this index, or the time is below -1.
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

/// As [`decay_ms`], for arenas made later. Source: jemalloc(3), `arenas.dirty_decay_ms`.
#[must_use]
pub fn default_decay_ms(pages: Pages) -> isize {
    real_cache();
    arena_settings::default_decay_ms(pages.aging())
}

/// Sets the time of [`default_decay_ms`]. Returns `false` if it is below -1.
#[must_use]
pub fn set_default_decay_ms(pages: Pages, millis: isize) -> bool {
    real_cache();
    arena_settings::set_default_decay_ms(pages.aging(), millis)
}

/// Returns when an arena (for [`ARENAS_ALL`], one made later) takes addresses from the data
/// segment. `None` if there is no arena with this index. Source: jemalloc(3), `arena.<i>.dss`.
#[must_use]
pub fn dss(index: u32) -> Option<Dss> {
    if index == ARENAS_ALL {
        real_cache();
        return Some(arena_settings::default_dss());
    }
    find(index).map(arena_settings::dss)
}

/// Sets what [`dss`] returns. Returns `false` if there is no arena with this index.
#[must_use]
pub fn set_dss(index: u32, dss: Dss) -> bool {
    if index == ARENAS_ALL {
        real_cache();
        arena_settings::set_default_dss(dss);
        return true;
    }
    find(index).map(|arena| arena_settings::set_dss(arena, dss)).is_some()
}

/// Returns the name of an arena, NUL-terminated: `auto_<i>` or `manual_<i>` unless another was set.
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

/// Names an arena by the first 31 bytes of the text, up to a NUL. Returns `false` if there is none.
pub fn set_name(index: u32, name: &[u8]) -> bool {
    find(index).map(|arena| arena_settings::set_name(arena, Name::new(name))).is_some()
}

/// Returns the bytes up to which the reservations that an arena makes in advance grow. Source:
/// jemalloc(3) 5.1, `arena.<i>.retain_grow_limit`.
#[must_use]
pub fn retain_grow_limit(index: u32) -> Option<usize> {
    find(index).map(arena_settings::grow_limit)
}

/// Sets what [`retain_grow_limit`] returns, rounded down to a page class. Returns `false` if there
/// is no arena with this index, or `bytes` is less than a page.
#[must_use]
pub fn set_retain_grow_limit(index: u32, bytes: usize) -> bool {
    find(index).is_some_and(|arena| arena_settings::set_grow_limit(arena, bytes))
}

/// Returns the bytes from which on a freed block is given back to the system at once. 0, which
/// arenas begin with, means none is. Source: jemalloc(3) 5.3, `arena.<i>.oversize_threshold`.
#[must_use]
pub fn oversize_threshold(index: u32) -> Option<usize> {
    find(index).map(arena_settings::oversize)
}

/// Sets what [`oversize_threshold`] returns. Returns `false` if there is no arena with this index.
#[must_use]
pub fn set_oversize_threshold(index: u32, bytes: usize) -> bool {
    find(index).map(|arena| arena_settings::set_oversize(arena, bytes)).is_some()
}

/// Returns the bytes of pages with memory that an arena holds, in use or not.
#[must_use]
pub fn held(index: u32) -> Option<usize> {
    find(index).map(arena_settings::held)
}

/// Returns the bytes of pages with memory that an arena may hold. 0, which arenas begin with, means
/// any. What happens beyond is as for [`limits`](super::limits).
#[must_use]
pub fn limit(index: u32) -> Option<usize> {
    find(index).map(arena_settings::limit)
}

/// Sets what [`limit`] returns. Returns `false` if there is no arena with this index.
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

/// Whether the hard bound of all arenas refuses an arena no pages. The arena's own limit holds.
#[must_use]
pub fn is_limit_exempt(index: u32) -> Option<bool> {
    find(index).map(arena_settings::is_limit_exempt)
}

/// Sets what [`is_limit_exempt`] returns, for arenas of threads that can raise the limit. Returns
/// `false` if there is no arena with this index.
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

/// Returns the bytes of unused pages of an arena that no purge gives back. They are 0 unless set.
#[must_use]
pub fn reserve(index: u32) -> Option<usize> {
    find(index).map(Arena::reserved_bytes)
}

/// Sets what [`reserve()`] returns, and purges unused pages beyond. Returns `false` if there is no
/// arena with this index.
///
/// A reserve is for threads that must go on when there is no memory left. Threads of the arena wait
/// for no other arena, purge nothing, and call no callback. Without memory their allocations fail
/// at once. Pages become unused by frees in the arena, and stay with a decay time of -1. Blocks of
/// 4 MiB and more have huge pages, which no purge cuts in two: up to 2 MiB less of those may stay.
/// The arena keeps addresses for 4 MiB without memory, and a purge gives back the others.
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

/// Returns the arena with an index, if it lives.
pub(super) fn find(index: u32) -> Option<&'static Arena> {
    real_cache();
    arena_list::by_id(index).filter(|arena| arena.is_live())
}

fn find_created(index: u32) -> Option<&'static Arena> {
    find(index).filter(|arena| arena.is_created())
}

/// Calls `act` on an arena or on all. Returns `false` if there is no such index.
fn for_each(index: u32, act: impl Fn(&'static Arena)) -> bool {
    real_cache();
    if index == ARENAS_ALL {
        arena_list::all().for_each(act);
        return true;
    }
    arena_list::by_id(index).into_iter().for_each(act);
    index < super::narenas()
}
