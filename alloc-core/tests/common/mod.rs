//! What the integration tests of the core share.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

pub(crate) mod block;
pub(crate) mod child;
pub(crate) mod random;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One test at a time, so that the process's totals are this test's alone.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that the program has, by the allocator's own count.
pub(crate) fn allocated() -> usize {
    lumalloc::observe::totals().allocated
}
