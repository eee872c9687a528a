//! Whether a slow path may start a thread of the library.
//!
//! The C library holds the lock of its thread stacks while it frees the thread-local storage of a
//! thread that has ended. `pthread_create` takes the same lock, so a thread that is started within
//! that free would wait for itself for ever. Those frees come from the loader's code, so nothing
//! is started for a caller there. Nor is it for one that is not found, unless the program has asked
//! for the thread. A program that has the C library linked into it has no loader to tell by, and
//! starts only what it has asked for if its malloc is this allocator.

use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::cache::registry::THREADS;
use crate::front::modes::diversion;
use crate::ground::{os, own_thread, process};
use crate::middle::arenas::arena_settings;
use crate::profile::backtrace::{self, MOST_OWN};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// The process that made the start of the allocator, or its child by fork. 0: none yet.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// The time, by [`os::coarse_millis`], before which a thread that the system had no room for is not
/// tried again.
static TRY_AT: AtomicU64 = AtomicU64::new(0);
/// The shortest time between two such tries, in milliseconds.
const TRY_AGAIN: u64 = 1000;

/// Notes that the system refused a thread with this error. Returns whether it may have room for one
/// later: [`may_start`] says so after a decay time.
pub(super) fn note_refusal(error: c_int) -> bool {
    let decay = u64::try_from(arena_settings::shortest_decay_ms()).unwrap_or(0);
    TRY_AT.store(os::coarse_millis() + decay.max(TRY_AGAIN), Relaxed);
    matches!(error, libc::EAGAIN | libc::ENOMEM)
}

/// Notes which process this is. Called at the start, and in a forked child.
pub(super) fn note_process() {
    PROCESS.store(process::id(), Relaxed);
}

/// Whether a slow path may start a thread that the program has not asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MayStart {
    Now,
    /// A later slow path may.
    Later,
    /// No slow path may, or none for so long that it is not worth waiting for.
    Never,
}

/// Returns whether the calling thread may start one. A process with one thread starts none, and
/// neither does the child of a vfork, which shares its parent's memory.
pub(super) fn may_start() -> MayStart {
    if !has_threads() || !is_own_process() {
        return MayStart::Later;
    }
    if os::coarse_millis() < TRY_AT.load(Relaxed) {
        return MayStart::Never;
    }
    match is_called_by_loader() {
        Some(false) => MayStart::Now,
        Some(true) => MayStart::Later,
        None => MayStart::Never,
    }
}

/// Returns whether the calling thread may start one that the program has asked for: it is also
/// started in a process with one thread, and where the caller is not known.
pub(super) fn may_start_wanted() -> bool {
    is_own_process() && is_called_by_loader() != Some(true)
}

/// Returns whether `pthread_create` is that of the C library. One that a program or a tool puts in
/// its place may take a lock, which the program may hold when it allocates or frees.
pub(super) fn is_create_of_c_library() -> bool {
    let [create, beside] = own_thread::create_and_beside();
    backtrace::module_begin(create) == backtrace::module_begin(beside)
}

/// Returns whether this is not the child of a vfork.
pub(super) fn is_own_process() -> bool {
    process::id() == PROCESS.load(Relaxed)
}

/// Returns whether at least two threads of the program allocate.
pub(super) fn has_threads() -> bool {
    THREADS.get() > 1
}

/// Returns whether the call comes from the code of the loader, or `None` if that is not known.
pub(super) fn is_called_by_loader() -> Option<bool> {
    if tls::current().kind() == Kind::Empty {
        // What is known of the stack may be of a thread that had it before.
        backtrace::begin_thread();
    }
    if diversion::offer().is_none() {
        // The allocator is not the program's malloc, so the C library does not call it.
        return Some(false);
    }
    let loader = process::loader();
    if loader == 0 {
        return None;
    }
    let mut stack = backtrace::room::<{ MOST_OWN + 1 }>();
    let caller = *backtrace::take_of_calls(&mut stack, 1).first()?;
    Some(backtrace::module_begin(caller)? == loader)
}
