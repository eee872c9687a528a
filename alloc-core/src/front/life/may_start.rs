//! Whether a slow path may start a thread of the library that the program has not asked for.
//!
//! The C library holds the lock of its thread stacks while it frees the thread-local storage of a
//! thread that has ended. `pthread_create` takes the same lock, so a thread that is started within
//! that free would wait for itself for ever. Those frees come from the loader's code, so nothing
//! is started for a caller there, nor for one that is not found. A program that has the C library
//! linked into it has no loader to tell by, and starts nothing if its malloc is this allocator.

use crate::front::cache::registry::THREADS;
use crate::front::modes::diversion;
use crate::ground::process;
use crate::profile::backtrace::{self, MOST_OWN};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The process that made the start of the allocator, or its child by fork. 0: none yet.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// Notes which process this is. Called at the start, and in a forked child.
pub(super) fn note_process() {
    PROCESS.store(process::id(), Relaxed);
}

/// Returns whether the calling thread may start one now. A process with one thread starts none,
/// and neither does the child of a vfork, which shares its parent's memory.
pub(super) fn may_start() -> bool {
    has_threads() && process::id() == PROCESS.load(Relaxed) && is_called_outside_loader()
}

/// Returns whether at least two threads of the program allocate.
pub(super) fn has_threads() -> bool {
    THREADS.get() > 1
}

fn is_called_outside_loader() -> bool {
    if diversion::offer().is_none() {
        // The allocator is not the program's malloc, so the C library does not call it.
        return true;
    }
    let loader = process::loader();
    if loader == 0 {
        return false;
    }
    let mut stack = [0; MOST_OWN + 1];
    if backtrace::take_of_calls(&mut stack, 1) == 0 {
        return false;
    }
    let [caller, ..] = stack;
    backtrace::module_begin(caller).is_some_and(|module| module != loader)
}
