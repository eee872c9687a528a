//! Code that the integration tests of the core share.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

pub(crate) mod block;
pub(crate) mod child;
pub(crate) mod this_program;
pub(crate) mod idling;
pub(crate) mod mappings;
pub(crate) mod random;
pub(crate) mod touched;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs one test at a time, so that the totals of the process are those of this test alone.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left after the caches of this thread and of idle owners are emptied and all unused pages
/// are given back: bytes allocated, cached, active, dirty and muzzy.
pub(crate) fn rest() -> [usize; 5] {
    lumalloc::control::flush_thread_cache();
    assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
    let totals = lumalloc::observe::totals();
    [totals.allocated, totals.cached, totals.active, totals.dirty, totals.muzzy]
}

/// Panics unless every block is free. A block that was lost on the way to its slab keeps the slab.
#[track_caller]
pub(crate) fn assert_empty() {
    assert_eq!(rest(), [0; 5], "{:#?}", lumalloc::observe::totals());
}
