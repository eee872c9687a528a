//! A thread's first call, and its exit.
//!
//! ```text
//!   EMPTY ──first call──▶ REENTRANT ──▶ real cache ──exit──▶ REENTRANT ──▶ UNCACHED
//! ```
//! Where a mode watches, the thread's word is on the real cache's façade ([`facade`]) instead.
//! The exit call is the destructor of one pthread key: it runs after C++ and Rust thread-local
//! destructors. What still allocates or frees after it goes past all caches.

use super::background;
use super::facade;
use super::process_life;
use super::refill;
use super::registry::{self, RealCache};
use super::thread_cache::{self, EMPTY, REENTRANT, UNCACHED};
use crate::ground::options;
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::middle::arena;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

const NO_KEY: u32 = u32::MAX;
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// Creates the key whose destructor is the exit call. Without one, exits leak what caches hold.
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
    if !options::current().tcache {
        thread_cache::set_current(&UNCACHED);
        return;
    }
    let Some(cache) = arena::by_id(0).and_then(registry::take) else {
        thread_cache::set_current(&EMPTY);
        return;
    };
    let Some(front) = facade::front_of(cache) else {
        registry::put(cache);
        thread_cache::set_current(&EMPTY);
        return;
    };
    // Acquire: pairs with the Release in `register_exit`.
    let key = KEY.load(Ordering::Acquire);
    if key != NO_KEY {
        // SAFETY: the key was created, and is never deleted.
        os::keep_errno(|| unsafe {
            libc::pthread_setspecific(key, core::ptr::from_ref(cache).cast())
        });
    }
    thread_cache::set_current(front);
}

/// The exit call.
unsafe extern "C" fn on_exit(cache: *mut c_void) {
    // SAFETY: `begin` stored a real cache, and those live for ever.
    let cache: &'static RealCache = unsafe { &*cache.cast::<RealCache>() };
    thread_cache::set_current(&REENTRANT);
    retire(cache);
    thread_cache::set_current(&UNCACHED);
}

/// Sends a cache's blocks home, gives its slabs up for adoption and the cache back.
fn retire(cache: &'static RealCache) {
    empty(cache);
    registry::put(cache);
    background::tick_at_exit();
}

fn empty(cache: &'static RealCache) {
    let mut state = cache.owner.state.lock();
    refill::flush_all(cache, &mut state);
    cache.owner.give_up(&mut state);
    for class in SizeClass::all() {
        refill::drop_array(cache, class);
    }
}

/// The calling thread will do nothing for long: its cache keeps neither blocks nor arrays nor
/// slabs. `false`: it has no cache.
pub(crate) fn idle() -> bool {
    let Some(cache) = thread_cache::current().as_real() else { return false };
    empty(cache);
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
    let Some(cache) = thread_cache::current().as_real() else { return false };
    let mut state = cache.owner.state.lock();
    state.activity += 1;
    refill::flush_all(cache, &mut state);
    true
}
