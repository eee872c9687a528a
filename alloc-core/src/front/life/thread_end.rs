//! A thread's end: its cached blocks are given back to their slabs, and its record and caches are
//! kept for the next thread.
//!
//! The exit call is the destructor of one pthread key, which runs after C++ and Rust thread-local
//! destructors. It is made in each round of destructors, and counts in the third one, so that those
//! of the program's keys allocate and free as before. Later allocations and frees of the thread
//! bypass all caches, and only exact heap profiles know of them.
//!
//! What ends without its exit call: [`give_back`].

use super::{background, give_back};
use crate::front::bins::thread_cache::{REENTRANT, UNCACHED};
use crate::front::bins::tls;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::{current, registry};
use crate::front::supply::{arrays, flush, freed_samples};
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::passes::idle_owner;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

/// The round of destructors in which the exit call counts. The C library makes at least four rounds
/// as long as keys have values (POSIX). Sanitizers end their own record of a thread in the last
/// one, and their code must not run after that.
const ROUND: u32 = 3;

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// Creates the key whose destructor is the exit call. Without the key, no thread has a cache.
pub(crate) fn register_exit() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is a place for the result; the destructor takes what `set_value` stores.
    let status = unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) };
    if status == 0 {
        // Release: pairs with the Acquire in `key`.
        KEY.store(key, Ordering::Release);
    }
}

/// Returns whether there is a key for the exit call.
pub(super) fn has_key() -> bool {
    key() != NO_KEY
}

fn key() -> u32 {
    // Acquire: pairs with the Release in `register_exit`.
    KEY.load(Ordering::Acquire)
}

/// Makes the calling thread's end give this record back. Returns `false` if the C library cannot do
/// it.
pub(super) fn set_value(thread: &'static Thread) -> bool {
    let value = core::ptr::from_ref(thread).cast();
    // SAFETY: the key was created, and is never deleted.
    os::keep_errno(|| unsafe { libc::pthread_setspecific(key(), value) }) == 0
}

/// The exit call.
unsafe extern "C" fn on_exit(thread: *mut c_void) {
    // SAFETY: `set_value` stored a thread's record, and records live for ever.
    let thread: &'static Thread = unsafe { &*thread.cast::<Thread>() };
    let is_due = thread.count_exit_call() == ROUND;
    // With a value there is another round.
    if is_due || !set_value(thread) {
        retire(thread);
    }
}

/// Takes the calling thread's record and caches away. Its later operations bypass all caches.
pub(super) fn retire(thread: &'static Thread) {
    let on_reserve = current::lives_on_reserve();
    tls::set_current(&REENTRANT);
    give_back::of_thread(thread);
    background::tick_at_exit(on_reserve);
    tls::set_current(&UNCACHED);
}

/// Empties the caches of the calling thread, which will do nothing for long: they keep neither
/// blocks nor arrays nor slabs. Returns `false` if the thread has no cache.
pub(crate) fn idle() -> bool {
    let Some(thread) = current::thread() else { return false };
    thread.caches().for_each(give_back::empty);
    background::tick();
    true
}

/// Drops a cache whose thread does not exist after a fork, and gives its slabs up. Its arrays may
/// be in the middle of a change, so the blocks in them are abandoned. Returns how many.
pub(crate) fn abandon(cache: &'static RealCache) -> usize {
    let mut lost = 0;
    if let Some(facade) = cache.facade() {
        lost += facade.forget();
    }
    {
        let mut state = cache.owner.state.lock();
        freed_samples::note_in_lost(cache, &state);
        for class in SizeClass::all() {
            lost += cache.in_bin(class);
            arrays::drop(cache, class);
        }
        cache.emptied.forget();
        cache.budget_used.set(0);
        idle_owner::give_up(&cache.owner, &mut state);
    }
    registry::put(cache);
    lost
}

/// Gives all cached blocks of the calling thread back to their slabs. Returns `false` if the thread
/// has no cache.
pub(crate) fn flush_current() -> bool {
    let Some(thread) = current::thread() else { return false };
    for cache in thread.caches() {
        let mut state = cache.lock_own();
        cache.owner.activity.add(1);
        flush::all(cache, &mut state);
    }
    background::tick_outside();
    true
}
