//! Which cache or façade a thread's word points to, and how other threads change the word.
//!
//! A thread moves its own word to another of its caches by a plain store. A mode that all threads
//! must follow is switched by another thread under the registry's lock. That thread sets one word
//! of state, makes sure that all threads see it, and then moves the words of all threads.
//!
//! The protocol, and why no thread misses the switch: [`following`]. A thread in the middle of a
//! malloc or free finishes it with the cache that it has read. Its next call reads the new word.

use super::facade::Facade;
use super::real_cache::{RealCache, Thread};
use super::registry::{self, REGISTRY};
use super::thread::Moves;
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::bins::tls;
use crate::front::modes::diversion;
use crate::front::modes::watch::{self, Observer, State};
use crate::ground::fill_mode::{self, Fill};
use crate::ground::sync::following;
use crate::ground::{options, os};
use crate::profile::hooks::{self, AllocatedHook, FreedHook};
use crate::profile::recorder;
use core::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

/// Points the calling thread's word to one of its caches, or to the façade of that cache.
#[inline]
pub(crate) fn show(cache: &'static RealCache) {
    following::follow(
        || (watch::state(), cache.emptied.is_set()),
        |(state, _)| tls::set_current(front_of(cache, state)),
        // SeqCst: pairs with the membarrier of the switching thread, which turns this into a real
        // fence.
        || compiler_fence(Ordering::SeqCst),
    );
}

/// Returns whether all operations of a cache's thread must see the façade.
#[inline]
pub(super) fn needs_facade(cache: &RealCache) -> bool {
    watch::is_on() || cache.is_watched()
}

#[inline]
fn front_of(cache: &'static RealCache, state: State) -> &'static ThreadCache {
    if !state.is_watching() && !cache.is_watched() && !cache.emptied.is_set() {
        return &cache.front;
    }
    // The façade is made before any state asks for it.
    cache.facade().map_or(&cache.front, Facade::front)
}

/// Changes what all threads fill from now on, except the one allocation or free of each that is
/// under way. Returns `false`, and changes nothing, if there is no memory or the system cannot do
/// it.
pub(crate) fn change_fill(change: impl FnOnce(Fill) -> Fill) -> bool {
    let registry = REGISTRY.lock();
    let before = fill_mode::current();
    fill_mode::set(change(before));
    let done = watch_all(&registry, must_watch());
    if !done {
        fill_mode::set(before);
        tune_facades(registry::all());
    }
    done
}

/// Tunes the façades of these caches to the modes in force. A cache without a façade is left as it
/// is. The registry is locked.
fn tune_facades(caches: impl Iterator<Item = &'static RealCache>) {
    for cache in caches.filter(|cache| cache.facade().is_some()) {
        cache.prepare_facade();
    }
}

/// Begins or ends the recording of all allocations and frees, except the one operation of each
/// thread that is under way. Returns `false` if there is no memory or the system cannot do it; then
/// nothing is recorded.
pub(crate) fn set_recording(on: bool) -> bool {
    let registry = REGISTRY.lock();
    if !on {
        recorder::turn_off();
    }
    let done = set_observer(&registry, Observer::Recorder, on);
    if done && on {
        recorder::turn_on();
    }
    done
}

/// The functions that are told of each allocation and each free.
pub(crate) type Hooks = (Option<AllocatedHook>, Option<FreedHook>);

/// Changes the functions that are told of each allocation and each free, except the one operation
/// of each thread that is under way. A function that stays is told of all. Returns `false`, and
/// sets none, if there is no memory or the system cannot do it.
pub(crate) fn change_hooks(change: impl FnOnce(Hooks) -> Hooks) -> bool {
    let registry = REGISTRY.lock();
    let (allocated, freed) = change((hooks::ALLOCATED.get(), hooks::FREED.get()));
    let is_wanted = allocated.is_some() || freed.is_some();
    if !is_wanted || !hooks::see_all() {
        hooks::ALLOCATED.set(None);
        hooks::FREED.set(None);
        if !set_observer(&registry, Observer::Hooks, is_wanted) {
            return false;
        }
    }
    hooks::ALLOCATED.set(allocated);
    hooks::FREED.set(freed);
    true
}

/// Leads all operations to functions that take the place of malloc from now on, except the one
/// operation of each thread that is under way. Returns `false` if there is no memory or the system
/// cannot do it.
pub(crate) fn divert() -> bool {
    let registry = REGISTRY.lock();
    let done = set_observer(&registry, Observer::Diversion, true);
    if done {
        diversion::turn_on();
    }
    done
}

/// Turns an observer on or off: leads all threads to the slow paths, or lets them leave these.
fn set_observer(registry: &registry::Locked<'_>, observer: Observer, on: bool) -> bool {
    watch::set_observer(observer, on);
    let done = watch_all(registry, must_watch());
    if !done {
        watch::set_observer(observer, false);
        tune_facades(registry::all());
    }
    done
}

/// Ends the recording in the child of a fork, which has one thread.
pub(crate) fn end_recording_in_child(mine: Option<&'static Thread>) {
    recorder::forget_in_child(mine.and_then(Thread::events_so_far));
    watch::set_observer(Observer::Recorder, false);
    watch::set(watch::state().switched(must_watch()));
    tune_facades(mine.into_iter().flat_map(Thread::caches));
}

/// Returns whether a mode must see all operations of all threads.
fn must_watch() -> bool {
    fill_mode::is_any() || watch::is_observed() || options::current().always_watches()
}

/// Turns the watching of all operations of all threads on or off, except the one operation of each
/// that is under way. Returns `false`, and changes nothing, if there is no memory or the system
/// cannot do it. It can always be turned off: a thread that has not seen it uses its façade for
/// some time still, and finds its way back at a slow path.
fn watch_all(registry: &registry::Locked<'_>, on: bool) -> bool {
    if on && !registry::all().all(|cache| cache.thread().is_none() || cache.prepare_facade()) {
        return false;
    }
    let before = watch::state();
    let now = before.switched(on);
    watch::set(now);
    let is_seen = os::fence_all_threads();
    if on && !is_seen {
        // Threads that saw the state use their façades, which is harmless.
        watch::set(before);
        return false;
    }
    registry::for_each_word(registry, |word| move_word(word, now));
    let is_seen = os::fence_all_threads();
    if on && !is_seen {
        // Some threads may not have seen the state yet, so no thread may follow it.
        watch::set(before);
        registry::for_each_word(registry, |word| move_word(word, before));
        return false;
    }
    if !on {
        // Threads whose every operation is seen go on with their façades.
        tune_facades(registry::all());
    }
    true
}

/// Makes every operation of the calling thread seen, which moves its cells. Returns `false`, and
/// changes nothing, if there is no memory for façades.
pub(crate) fn watch_own(thread: &'static Thread, cache: &'static RealCache) -> bool {
    let _registry = REGISTRY.lock();
    thread.caches().for_each(|cache| cache.watch(true));
    if !thread.caches().all(RealCache::prepare_facade) {
        thread.caches().for_each(|cache| cache.watch(false));
        tune_facades(thread.caches());
        return false;
    }
    thread.set_moves(Moves::Always);
    show(cache);
    true
}

/// Moves another thread's word to the front that a state asks for. A thread that has just begun, is
/// about to end, or runs a callback shows its cache itself.
fn move_word(word: &AtomicPtr<u8>, state: State) {
    following::move_word(word, |seen| {
        let cache = RealCache::of(tls::named_by(seen))?;
        Some(tls::word_for(front_of(cache, state)))
    });
}
