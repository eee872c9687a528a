//! The calling thread: its arena, its caches, and what it has allocated.
//!
//! A thread begins with its first allocation, or with a call of a function here. After its end (in
//! destructors that run later than the allocator's own) it has no arena and no cache. Functions
//! that set something then return `false` or an error, and those that read return 0.

use crate::front::cache::real_cache::Thread;
use crate::front::cache::thread::Moves;
use crate::front::cache::volume::Volume;
use crate::front::cache::{current, registry, switch};
use crate::front::life::scope;
use crate::front::life::thread_begin::real_cache;
use crate::front::supply::thread_limits;
use crate::ground::options;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::choose_arena;
use core::ptr::NonNull;

/// Why a thread cannot move to an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveError {
    /// There is no arena with this index (`EFAULT`).
    NoSuchArena,
    /// Arenas are chosen by CPU, so that no thread may choose an automatic one (`EPERM`).
    ByCpu,
    /// There is no memory for the thread's cache, or the thread is at its end (`EAGAIN`).
    NoMemory,
}

impl core::fmt::Display for MoveError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            MoveError::NoSuchArena => "there is no arena with this index",
            MoveError::ByCpu => "arenas are chosen by CPU (opt.percpu_arena)",
            MoveError::NoMemory => "there is no memory for the thread's cache",
        })
    }
}

impl core::error::Error for MoveError {}

fn own() -> Option<&'static Thread> {
    real_cache()?.thread()
}

/// Returns the index of the arena that the calling thread allocates from. Source: jemalloc(3),
/// `thread.arena`.
#[must_use]
pub fn arena() -> u32 {
    own();
    current::arena().unwrap_or(0)
}

/// Makes the calling thread allocate from the arena with this index, and from no other, from now
/// on. Its blocks stay where they are. Its caches keep blocks of other arenas for when it returns
/// there.
///
/// # Errors
/// Returns a [`MoveError`], and then nothing changed. Source: jemalloc(3), `thread.arena`.
///
/// ```
/// use lumalloc::control::thread;
/// let home = thread::arena();
/// thread::set_arena(home).unwrap();
/// assert_eq!(thread::set_arena(4000), Err(thread::MoveError::NoSuchArena));
/// assert_eq!(thread::arena(), home);
/// ```
pub fn set_arena(index: u32) -> Result<(), MoveError> {
    own().ok_or(MoveError::NoMemory)?;
    let is_by_cpu = choose_arena::is_automatic(index) && index < choose_arena::limit();
    if choose_arena::is_percpu() && is_by_cpu {
        return if index == arena() { Ok(()) } else { Err(MoveError::ByCpu) };
    }
    let arena = find(index).ok_or(MoveError::NoSuchArena)?;
    if scope::move_to(arena) { Ok(()) } else { Err(MoveError::NoMemory) }
}

fn find(index: u32) -> Option<&'static Arena> {
    let arena = arena_list::by_id(index).or_else(|| choose_arena::automatic(index));
    arena.filter(|arena| arena.is_live())
}

/// The calling thread allocates from an arena until its scope is dropped, then again as it did
/// before. Scopes nest. Each ends on the thread that began it.
#[must_use = "the scope ends at once"]
pub struct Scope {
    _scope: scope::Scope,
}

/// Makes the calling thread allocate from the arena with this index, and from no other, until the
/// returned [`Scope`] is dropped. The first call for an arena makes a cache of the thread for it.
/// Later calls take a few nanoseconds, and flush nothing.
///
/// # Errors
/// Returns a [`MoveError`], but never `ByCpu`, because a scope may choose any arena.
///
/// ```
/// use lumalloc::control::thread;
/// let home = thread::arena();
/// {
///     let _scope = thread::enter(0).unwrap();
///     assert_eq!(thread::arena(), 0);
/// }
/// assert_eq!(thread::arena(), home);
/// ```
pub fn enter(index: u32) -> Result<Scope, MoveError> {
    own().ok_or(MoveError::NoMemory)?;
    let arena = find(index).ok_or(MoveError::NoSuchArena)?;
    scope::enter(arena).map(|_scope| Scope { _scope }).ok_or(MoveError::NoMemory)
}

/// Returns how many threads allocate from an arena just now. Source: jemalloc(3),
/// `stats.arenas.<i>.nthreads`.
#[must_use]
pub fn count_in(arena: u32) -> u32 {
    own();
    registry::count_in(arena)
}

/// Returns exactly how many bytes the calling thread has ever allocated, by usable size. A resized
/// block counts as freed and allocated, moved or not. If its usable size stays the same, it does
/// not count. (jemalloc adds it to both counts then too, so the difference of the counts is the
/// same.) Source: jemalloc(3), `thread.allocated`.
///
/// ```
/// use lumalloc::{control::thread, raw};
/// let before = thread::allocated();
/// let p = raw::malloc(100);
/// assert_eq!(thread::allocated() - before, 112);
/// // SAFETY: p came from malloc, and is freed once.
/// unsafe { raw::free(p) };
/// ```
#[must_use]
pub fn allocated() -> u64 {
    own().map_or(0, |thread| volume(thread).allocated)
}

/// Returns how many bytes the calling thread has ever freed. Resized blocks count as for
/// [`allocated`]. Source: jemalloc(3), `thread.deallocated`.
#[must_use]
pub fn deallocated() -> u64 {
    own().map_or(0, |thread| volume(thread).freed)
}

fn volume(thread: &Thread) -> Volume {
    if thread.moves() == Moves::Slowly {
        thread.refresh();
    }
    thread.volume()
}

/// Returns the address of the calling thread's number for [`allocated`], which can be read at any
/// time, without a call, while the thread lives. From then on each operation of the thread updates
/// the number: a pair of malloc and free takes 130 instructions instead of 56, which is about 2
/// nanoseconds more. In the hardened tier it takes 723 instead of 241. With `allocatedp_live:false`
/// the number is updated on slow paths, and when either count is read. Returns `None` if the thread
/// is at its end. Source: jemalloc(3), `thread.allocatedp`.
///
/// ```
/// use lumalloc::{control::thread, raw};
/// let place = thread::allocatedp().unwrap();
/// // SAFETY: this thread's own number.
/// let before = unsafe { place.read() };
/// let p = raw::malloc(100);
/// // SAFETY: as above.
/// assert_eq!(unsafe { place.read() } - before, 112);
/// // SAFETY: p came from malloc, and is freed once.
/// unsafe { raw::free(p) };
/// ```
#[must_use]
pub fn allocatedp() -> Option<NonNull<u64>> {
    moving_cells().map(|(allocated, _)| allocated)
}

/// As [`allocatedp`], for [`deallocated`]. Source: jemalloc(3), `thread.deallocatedp`.
#[must_use]
pub fn deallocatedp() -> Option<NonNull<u64>> {
    moving_cells().map(|(_, freed)| freed)
}

fn moving_cells() -> Option<(NonNull<u64>, NonNull<u64>)> {
    let thread = own()?;
    if thread.moves() == Moves::Never {
        thread.refresh();
        let cache = current::real_cache()?;
        if !options::current().allocatedp_live || !switch::watch_own(thread, cache) {
            thread.set_moves(Moves::Slowly);
        }
    }
    Some(thread.cells())
}

/// Returns the most bytes that the calling thread had allocated and not freed, beyond those it had
/// at the last [`reset_peak`]. The number is exact to about a megabyte. Source: jemalloc(3) 5.3,
/// `thread.peak.read`.
///
/// ```
/// use lumalloc::{control::thread, raw};
/// thread::reset_peak();
/// let p = raw::malloc(10 << 20);
/// // SAFETY: p came from malloc, and is freed once.
/// unsafe { raw::free(p) };
/// assert_eq!(thread::peak(), 10 << 20);
/// ```
#[must_use]
pub fn peak() -> u64 {
    own().map_or(0, Thread::peak)
}

/// Starts the measurement of [`peak`] again. Source: jemalloc(3) 5.3, `thread.peak.reset`.
pub fn reset_peak() {
    if let Some(thread) = own() {
        thread.reset_peak();
    }
}

/// Whether the calling thread's caches are on. Source: jemalloc(3), `thread.tcache.enabled`.
#[must_use]
pub fn is_cached() -> bool {
    own().is_some_and(|thread| thread.is_enabled())
}

/// Turns the calling thread's caches on or off. Caches are emptied before they are turned off.
/// Returns `false` if the thread has none. Source: jemalloc(3), `thread.tcache.enabled`.
///
/// ```
/// use lumalloc::control::{self, thread};
/// assert!(thread::set_cached(false));
/// assert!(!thread::is_cached());
/// assert!(!control::flush_thread_cache(), "nothing to flush");
/// assert!(thread::set_cached(true));
/// ```
pub fn set_cached(on: bool) -> bool {
    own().map(|thread| thread_limits::enable(thread, on)).is_some()
}

/// Returns the largest size in bytes that the calling thread caches. Source: jemalloc(3) 5.3,
/// `thread.tcache.max`.
#[must_use]
pub fn cached_max() -> usize {
    own().map_or(0, |thread| thread.max())
}

/// Sets the largest size in bytes that the calling thread caches. It is rounded up to a size class,
/// and is at most 32 KiB. Larger blocks in the thread's caches are returned to their slabs. Returns
/// `false` if the thread has no cache. Source: jemalloc(3) 5.3, `thread.tcache.max`.
pub fn set_cached_max(size: usize) -> bool {
    own().map(|thread| thread_limits::set_max(thread, size)).is_some()
}

/// Returns how many blocks of a size's class each cache of the calling thread may hold, which is 0
/// above [`cached_max`]. Returns `None` if no cache holds blocks of that size, or the caches are
/// off. Source: jemalloc(3) 5.3, `thread.tcache.ncached_max.read_sizeclass`.
#[must_use]
pub fn ncached_max(size: usize) -> Option<usize> {
    thread_limits::ncached_max(own()?, size)
}

/// Sets how many blocks of some size classes each cache of the calling thread may hold. The text
/// has parts `low-high:count` between `|`. A count is at most 2047, and 0 caches none. Cached
/// blocks of these sizes are returned to their slabs. A cache may hold fewer blocks than the text
/// says, because it holds at most a megabyte. Returns `false` if the text has another form, and
/// then nothing changed, or if the thread has no cache. Source: jemalloc(3) 5.3,
/// `thread.tcache.ncached_max.write`.
///
/// ```
/// use lumalloc::control::thread;
/// assert!(thread::set_ncached_max(b"8-64:10|1024-2048:0"));
/// assert_eq!(thread::ncached_max(50), Some(10));
/// assert_eq!(thread::ncached_max(1500), Some(0));
/// assert!(!thread::set_ncached_max(b"8-64"));
/// ```
pub fn set_ncached_max(text: &[u8]) -> bool {
    own().is_some_and(|thread| thread_limits::set_ncached_max(thread, text))
}

#[cfg(test)]
mod tests {
    use super::MoveError;
    use std::string::ToString;

    #[test]
    fn why_a_thread_cannot_move_is_said() {
        for (error, text) in [
            (MoveError::NoSuchArena, "there is no arena with this index"),
            (MoveError::ByCpu, "arenas are chosen by CPU (opt.percpu_arena)"),
            (MoveError::NoMemory, "there is no memory for the thread's cache"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
