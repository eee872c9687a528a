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
#[path = "../../../tests/src/not_tried.rs"]
pub(crate) mod not_tried;
pub(crate) mod touched;

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Runs one test at a time and without the allocator's own thread, which takes and gives back pages
/// of its own accord, so that the totals of the process are those of this test alone.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static OFF: Once = Once::new();
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread does it, because the one that does it gets a cache.
    let off = || assert!(lumalloc::control::set_background_thread(false));
    OFF.call_once(|| std::thread::spawn(off).join().expect("the thread"));
    guard
}

/// What is left after the caches of this thread and of idle owners are emptied and all unused pages
/// are given back: bytes allocated, cached, active, dirty and muzzy.
pub(crate) fn rest() -> [usize; 5] {
    lumalloc::control::flush_thread_cache();
    assert!(lumalloc::control::purge(lumalloc::control::ARENAS_ALL));
    let totals = lumalloc::observe::totals();
    [totals.allocated, totals.cached, totals.active, totals.dirty, totals.muzzy]
}

/// Returns the size of the class of a small block of the hardened tier, which has a canary beside
/// the requested bytes. `None`: the block is large, or there is no such tier.
pub(crate) fn hardened_class(size: usize, align: usize) -> Option<usize> {
    let room = (size.max(1) + 8).next_multiple_of(align).max(16);
    let step = if room <= 128 { 16 } else { room.next_power_of_two() / 8 };
    let class = room.next_multiple_of(step);
    (lumalloc::options::current().hardened && class <= 32 << 10).then_some(class)
}

/// Returns the bytes that count for a large block of the hardened tier, of which `size` are usable:
/// all of its pages. `None`: the block is small, or there is no such tier.
#[track_caller]
pub(crate) fn hardened_large(block: *const u8, size: usize, align: usize) -> Option<usize> {
    if !lumalloc::options::current().hardened || hardened_class(size, align).is_some() {
        return None;
    }
    let bytes = lumalloc::observe::block_around(block as usize).expect("a live block").usable;
    // It has its class, or the requested pages alone.
    assert!(bytes.is_multiple_of(4096) && bytes >= size, "{bytes} for {size}");
    assert!(bytes - size <= size / 4 + 4096, "{bytes} for {size}");
    Some(bytes)
}

/// Panics unless every block is free. A block that was lost on the way to its slab keeps the slab.
#[track_caller]
pub(crate) fn assert_empty() {
    assert_eq!(rest(), [0; 5], "{:#?}", lumalloc::observe::totals());
}
