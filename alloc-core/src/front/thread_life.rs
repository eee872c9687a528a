//! A thread's first call, and its exit.
//!
//! ```text
//!   EMPTY ──first call──▶ REENTRANT ──▶ real cache ──exit──▶ REENTRANT ──▶ UNCACHED
//! ```
//! With `tcache:false` the thread has a real cache too, which holds nothing. Where a mode watches,
//! its word is on the real cache's façade ([`super::facade`]) instead.
//! The exit call is the destructor of one pthread key: it runs after C++ and Rust thread-local
//! destructors. What still allocates or frees after it goes past all caches.
//!
//! Other threads read and change the words of all threads that have a cache, and the exit call ends
//! that. A thread for which it will not run therefore gets no cache, and goes past all caches from
//! its first call on: where no key could be had, where the thread's value of the key could not be
//! set, and in a thread that the program made by clone(2) and not by the C library.

use super::background;
use super::process_life;
use super::refill;
use super::registry::{self, RealCache};
use super::switch;
use super::thread::{self, Thread};
use super::thread_cache::{self, EMPTY, REENTRANT, UNCACHED};
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::arena_list;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// Creates the key whose destructor is the exit call. Without one, no thread has a cache.
pub(crate) fn register_exit() {
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is a place for the answer; the destructor takes what `begin` stores.
    let status = unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) };
    if status == 0 {
        // Release: pairs with the Acquire in `begin`.
        KEY.store(key, Ordering::Release);
    }
}

/// The calling thread's first call: gives it a cache. Without memory for one, nothing changes.
#[cold]
#[inline(never)]
pub(crate) fn begin() {
    thread_cache::set_current(&REENTRANT);
    if !process_life::ensure_started() {
        thread_cache::set_current(&EMPTY);
        return;
    }
    // Acquire: pairs with the Release in `register_exit`.
    let key = KEY.load(Ordering::Acquire);
    if key == NO_KEY || !os::is_thread_of_libc() {
        thread_cache::set_current(&UNCACHED);
        return;
    }
    let Some(thread) = make() else {
        thread_cache::set_current(&EMPTY);
        return;
    };
    // SAFETY: the key was created, and is never deleted.
    let status = os::keep_errno(|| unsafe {
        libc::pthread_setspecific(key, core::ptr::from_ref(thread).cast())
    });
    if status != 0 {
        retire(thread);
        return;
    }
    thread.caches().for_each(switch::show);
}

/// The calling thread's record, with a cache in the first arena. `None`: no memory.
fn make() -> Option<&'static Thread> {
    let home = arena_list::by_id(0)?;
    let thread = thread::take()?;
    let Some(cache) = registry::take(home, false, Some(thread)) else {
        thread::put(thread);
        return None;
    };
    thread.add_cache(cache);
    Some(thread)
}

/// The exit call.
unsafe extern "C" fn on_exit(thread: *mut c_void) {
    // SAFETY: `begin` stored a thread's record, and those live for ever.
    let thread: &'static Thread = unsafe { &*thread.cast::<Thread>() };
    retire(thread);
}

/// Takes the calling thread's record and caches away. What it does from then on goes past all
/// caches.
fn retire(thread: &'static Thread) {
    thread_cache::set_current(&REENTRANT);
    thread.caches().for_each(empty);
    let mut next = thread.caches().next();
    while let Some(cache) = next {
        next = cache.next_of_thread.get();
        registry::put(cache);
    }
    thread::put(thread);
    background::tick_at_exit();
    thread_cache::set_current(&UNCACHED);
}

/// Sends a cache's blocks home and gives its slabs up for adoption.
pub(crate) fn empty(cache: &'static RealCache) {
    let mut state = cache.owner.state.lock();
    refill::flush_all(cache, &mut state);
    cache.owner.give_up(&mut state);
    for class in SizeClass::all() {
        refill::part(cache, class);
    }
}

/// The calling thread will do nothing for long: its caches keep neither blocks nor arrays nor
/// slabs. `false`: it has none.
pub(crate) fn idle() -> bool {
    let Some(thread) = thread::current() else { return false };
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
            refill::drop_array(cache, class);
        }
        cache.budget_used.set(0);
        cache.owner.give_up(&mut state);
    }
    registry::put(cache);
    lost
}

/// Sends all cached blocks of the calling thread home. `false`: it has no cache.
pub(crate) fn flush_current() -> bool {
    let Some(thread) = thread::current() else { return false };
    for cache in thread.caches() {
        let mut state = cache.owner.state.lock();
        cache.owner.activity.add(1);
        refill::flush_all(cache, &mut state);
    }
    true
}
