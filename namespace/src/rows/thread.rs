//! `thread.*`: the calling thread.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::{act, ask, ro, rw, wo};
use core::ffi::c_void;
use core::ptr::NonNull;
use lumalloc::control;
use lumalloc::control::thread::{self, MoveError};

/// The rows of `thread.*`.
pub static ROWS: &[Spec] = &[
    rw!(
        "thread.arena",
        Unsigned,
        None,
        |_| thread::arena(),
        |_, index| thread::set_arena(index).map_err(cannot_move),
        "the arena this thread allocates from; a write moves it there for good (EFAULT: no such \
         arena; EPERM: one of those by CPU)"
    ),
    ro!(
        "thread.allocated",
        U64,
        Bytes,
        |_| thread::allocated(),
        "what this thread has ever allocated, by usable size; a realloc that leaves a block as \
         long as it is counts nothing (jemalloc: as allocated and freed), any other counts both"
    ),
    ro!(
        "thread.allocatedp",
        Pointer("uint64_t *"),
        None,
        |_| place(thread::allocatedp()),
        "where thread.allocated stands, for the thread's life; once asked for, it moves with every \
         operation (opt.allocatedp_live)"
    ),
    ro!(
        "thread.deallocated",
        U64,
        Bytes,
        |_| thread::deallocated(),
        "what this thread has ever freed, by usable size; of a realloc as thread.allocated"
    ),
    ro!(
        "thread.deallocatedp",
        Pointer("uint64_t *"),
        None,
        |_| place(thread::deallocatedp()),
        "where thread.deallocated stands, as thread.allocatedp"
    ),
    rw!(
        "thread.tcache.enabled",
        Bool,
        None,
        |_| thread::is_cached(),
        |_, on| done(thread::set_cached(on)),
        "whether this thread caches; turned off, its caches are emptied first"
    ),
    rw!(
        "thread.tcache.max",
        Size,
        Bytes,
        |_| thread::cached_max(),
        |_, size| done(thread::set_cached_max(size)),
        "largest size that this thread caches; a write is rounded up to a class, at most 32 KiB"
    ),
    act!(
        "thread.tcache.flush",
        |_| done(control::flush_thread_cache()),
        "gives this thread's cached blocks back (EFAULT: its caches are off)"
    ),
    ask!(
        "thread.tcache.ncached_max.read_sizeclass",
        Size => Size,
        Count,
        |_, size: Option<usize>| size.and_then(thread::ncached_max).ok_or(Error::Invalid),
        "how many blocks of the class of the size that comes in a cache of this thread holds"
    ),
    wo!(
        "thread.tcache.ncached_max.write",
        Str,
        None,
        |_, text| set_ncached_max(text.to_bytes()),
        "how many blocks of which sizes a cache of this thread holds: \
         low-high:count|low-high:count (ENOENT: its caches are off)"
    ),
    ro!(
        "thread.peak.read",
        U64,
        Bytes,
        |_| thread::peak(),
        "most that this thread had allocated and not freed since the last reset, within a megabyte"
    ),
    act!(
        "thread.peak.reset",
        |_| {
            thread::reset_peak();
            Ok(())
        },
        "begins thread.peak.read anew"
    ),
    act!(
        "thread.idle",
        |_| idle(),
        "says that this thread will do nothing for long: its cache keeps nothing"
    ),
];

fn cannot_move(error: MoveError) -> Error {
    match error {
        MoveError::NoSuchArena => Error::Fault,
        MoveError::ByCpu => Error::NotPermitted,
        MoveError::NoMemory => Error::Again,
    }
}

fn place(cell: Option<NonNull<u64>>) -> Result<*mut c_void, Error> {
    cell.map(|cell| cell.as_ptr().cast()).ok_or(Error::Again)
}

fn done(done: bool) -> Result<(), Error> {
    done.then_some(()).ok_or(Error::Fault)
}

/// Sets how many blocks the thread's caches hold. With caches off there is nothing to set. Source:
/// jemalloc 5.3.1.
fn set_ncached_max(text: &[u8]) -> Result<(), Error> {
    if !thread::is_cached() {
        return Err(Error::NoEntry);
    }
    thread::set_ncached_max(text).then_some(()).ok_or(Error::Invalid)
}

/// Empties the thread's cache. A thread without a cache has nothing to give back, so this does not
/// fail.
fn idle() -> Result<(), Error> {
    control::thread_idle();
    Ok(())
}
