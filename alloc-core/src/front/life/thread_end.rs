//! A thread's end: what its caches hold goes home, and its record and caches wait for the next one.
//!
//! The exit call is the destructor of one pthread key: it runs after C++ and Rust thread-local
//! destructors. What still allocates or frees after it goes past all caches.

use super::background;
use crate::front::bins::thread_cache::{REENTRANT, UNCACHED};
use crate::front::bins::tls;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::thread::OfThread;
use crate::front::cache::{current, registry};
use crate::front::supply::{arrays, flush};
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::passes::idle_owner;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// Creates the key whose destructor is the exit call. Without one, no thread has a cache.
pub(crate) fn register_exit() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is a place for the answer; the destructor takes what `set_value` stores.
    let status = unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) };
    if status == 0 {
        // Release: pairs with the Acquire in `key`.
        KEY.store(key, Ordering::Release);
    }
}

/// Whether there is a key for the exit call.
pub(super) fn has_key() -> bool {
    key() != NO_KEY
}

fn key() -> u32 {
    // Acquire: pairs with the Release in `register_exit`.
    KEY.load(Ordering::Acquire)
}

/// Has the calling thread's end give this record back. `false`: the C library cannot.
pub(super) fn set_value(thread: &'static Thread) -> bool {
    let value = core::ptr::from_ref(thread).cast();
    // SAFETY: the key was created, and is never deleted.
    os::keep_errno(|| unsafe { libc::pthread_setspecific(key(), value) }) == 0
}

/// The exit call.
unsafe extern "C" fn on_exit(thread: *mut c_void) {
    // SAFETY: `set_value` stored a thread's record, and those live for ever.
    let thread: &'static Thread = unsafe { &*thread.cast::<Thread>() };
    retire(thread);
}

/// Takes the calling thread's record and caches away. What it does from then on goes past all
/// caches.
pub(super) fn retire(thread: &'static Thread) {
    tls::set_current(&REENTRANT);
    thread.caches().for_each(empty);
    let mut next = thread.caches().next();
    while let Some(cache) = next {
        next = cache.next_of_thread().get();
        registry::put(cache);
    }
    registry::put_thread(thread);
    background::tick_at_exit();
    tls::set_current(&UNCACHED);
}

/// Sends a cache's blocks home and gives its slabs up for adoption.
pub(crate) fn empty(cache: &'static RealCache) {
    let mut state = cache.owner.state.lock();
    flush::all(cache, &mut state);
    idle_owner::give_up(&cache.owner, &mut state);
    for class in SizeClass::all() {
        arrays::part(cache, class);
    }
}

/// The calling thread will do nothing for long: its caches keep neither blocks nor arrays nor
/// slabs. `false`: it has none.
pub(crate) fn idle() -> bool {
    let Some(thread) = current::thread() else { return false };
    thread.caches().for_each(empty);
    background::tick();
    true
}

/// Drops a cache whose thread a fork left behind. Its arrays may be in the middle of a change, so
/// the blocks in them are abandoned; answers how many. Its slabs are given up.
pub(crate) fn abandon(cache: &'static RealCache) -> usize {
    let mut lost = 0;
    if let Some(facade) = cache.facade() {
        lost += facade.forget();
    }
    {
        let mut state = cache.owner.state.lock();
        for class in SizeClass::all() {
            lost += cache.bin(class).level();
            arrays::drop(cache, class);
        }
        cache.budget_used.set(0);
        idle_owner::give_up(&cache.owner, &mut state);
    }
    registry::put(cache);
    lost
}

/// Sends all cached blocks of the calling thread home. `false`: it has no cache.
pub(crate) fn flush_current() -> bool {
    let Some(thread) = current::thread() else { return false };
    for cache in thread.caches() {
        let mut state = cache.owner.state.lock();
        cache.owner.activity.add(1);
        flush::all(cache, &mut state);
    }
    true
}
