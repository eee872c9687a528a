//! Which cache, or which façade, a thread's word names, and how others change that.
//!
//! A thread moves its word as it likes: to another of its caches, by a plain store. A mode that all
//! threads must follow is switched by another thread, under the registry's lock: it says so in one
//! word of state, makes sure that all see it, and then moves the words of all threads.
//!
//! ```text
//!   thread                              who switches
//!   a: word = front for state           1: state = new
//!   b: state changed? again             2: membarrier
//!                                       3: word: compare-exchange old → front for state
//!                                       4: membarrier
//! ```
//! Either b sees 1, and the thread corrects its word itself, or 2 came after b, and therefore after
//! a: then 3 sees what a stored. A thread in the middle of a malloc or free finishes that one with
//! the cache that it has read; its next call reads what 3 has stored.

use super::facade::Facade;
use super::real_cache::{RealCache, Thread};
use super::registry::{self, REGISTRY};
use super::thread::Moves;
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::bins::tls;
use crate::front::modes::watch::{self, State};
use crate::ground::fill_mode::{self, Fill};
use crate::ground::{options, os};
use core::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

/// Puts the calling thread's word on one of its caches, or on its façade.
#[inline]
pub(crate) fn show(cache: &'static RealCache) {
    let mut seen = watch::state();
    loop {
        tls::set_current(front_of(cache, seen));
        // SeqCst: pairs with the membarrier of who switches, which makes a real fence of it.
        compiler_fence(Ordering::SeqCst);
        let now = watch::state();
        if now == seen {
            return;
        }
        seen = now;
    }
}

#[inline]
fn front_of(cache: &'static RealCache, state: State) -> &'static ThreadCache {
    if !state.is_watching() && !cache.is_watched() {
        return &cache.front;
    }
    // Made before anything was said to watch.
    cache.facade().map_or(&cache.front, Facade::front)
}

/// Says what is filled from now on, in all threads: the one allocation or free of each that is
/// under way may be as before. `false`: no memory, or the system cannot do it; nothing changed.
pub(crate) fn set_fill(fill: Fill) -> bool {
    let registry = REGISTRY.lock();
    let before = fill_mode::current();
    fill_mode::set(fill);
    let done = watch_all(&registry, fill_mode::is_any() || options::current().hardened);
    if !done {
        fill_mode::set(before);
    }
    done
}

/// Has every operation of every thread seen, or no more. At most the one operation of each thread
/// that is under way escapes. `false`: no memory, or the system cannot do it; nothing changed.
fn watch_all(registry: &registry::Locked<'_>, on: bool) -> bool {
    if on && !registry::all().all(|cache| cache.thread().is_none() || cache.prepare_facade()) {
        return false;
    }
    let before = watch::state();
    let now = before.switched(on);
    watch::set(now);
    if !os::fence_all_threads() {
        // Threads that saw it have their façades, which do no harm.
        watch::set(before);
        return false;
    }
    registry::for_each_word(registry, |word| move_word(word, now));
    if !os::fence_all_threads() {
        // Some threads may not have seen it yet, so none is to follow it.
        watch::set(before);
        registry::for_each_word(registry, |word| move_word(word, before));
        return false;
    }
    true
}

/// Has the calling thread's every operation seen, which moves the cells that it counts in. `false`:
/// no memory for façades; nothing changed.
pub(crate) fn watch_own(thread: &'static Thread, cache: &'static RealCache) -> bool {
    let _registry = REGISTRY.lock();
    thread.caches().for_each(|cache| cache.watch(true));
    if !thread.caches().all(RealCache::prepare_facade) {
        thread.caches().for_each(|cache| cache.watch(false));
        return false;
    }
    thread.set_moves(Moves::Always);
    show(cache);
    true
}

/// Moves another thread's word to the front that a state asks for.
fn move_word(word: &AtomicPtr<u8>, state: State) {
    let mut seen = word.load(Ordering::Relaxed);
    // A thread that has just begun, is about to end, or runs a callback shows its cache itself.
    while let Some(cache) = RealCache::of(tls::named_by(seen)) {
        let front = tls::word_for(front_of(cache, state));
        // SeqCst: pairs with the fences that `fence_all_threads` makes in every thread.
        match word.compare_exchange(seen, front, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}
