//! A thread's first call, which gives it a cache.
//!
//! ```text
//!   EMPTY ──first call──▶ REENTRANT ──▶ real cache ──exit──▶ REENTRANT ──▶ UNCACHED
//! ```
//! With `tcache:false` the thread has a real cache too, which holds nothing. If a mode watches, the
//! thread's word points to the real cache's façade instead.
//!
//! Other threads read and change the words of all threads that have a cache, until the exit call
//! ([`thread_end`]). A thread for which the exit call will not run therefore gets no cache, and
//! bypasses all caches from its first call on. This happens if no key could be created, if the
//! thread's value of the key could not be set, and in a thread that the program made by clone(2)
//! and not by the C library. The child of a vfork(2) has the word of its parent's thread. It gets
//! no cache either, and leaves the word as it was.

use super::{give_back, may_start, start, thread_end};
use crate::front::bins::thread_cache::{EMPTY, Kind, REENTRANT, UNCACHED};
use crate::front::bins::tls;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::registry::THREADS;
use crate::front::cache::{current, registry, switch};
use crate::ground::os;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::{arena_list, choose_arena};
use crate::middle::handed_out;
use crate::profile::backtrace;

/// Returns the calling thread's real cache, which is made now if this is its first call.
pub(crate) fn real_cache() -> Option<&'static RealCache> {
    if tls::current().kind() == Kind::Empty {
        begin();
    }
    current::real_cache()
}

/// As [`real_cache`], for a free. A thread that ends may free what the C library has kept of other
/// threads, after its destructors have run. It gets no cache, because nothing would take it back.
/// Where nothing tells who calls, no thread gets one that has only freed so far.
pub(crate) fn real_cache_to_free() -> Option<&'static RealCache> {
    let is_first = tls::current().kind() == Kind::Empty;
    if is_first && may_start::is_called_by_loader() != Some(false) {
        return None;
    }
    real_cache()
}

/// Returns the arena for allocations past the caches, or `None` before the start.
pub(crate) fn home() -> Option<&'static Arena> {
    match real_cache() {
        Some(cache) => Some(choose_arena::at_home(&cache.owner.home)),
        None => arena_list::by_id(0),
    }
}

/// Gives the calling thread a cache at its first call. Without memory for one, nothing changes.
#[cold]
#[inline(never)]
fn begin() {
    tls::set_current(&REENTRANT);
    backtrace::begin_thread();
    if !start::ensure_started() {
        tls::set_current(&EMPTY);
        return;
    }
    if !thread_end::has_key() || !os::is_thread_of_libc() {
        tls::set_current(if may_start::is_own_process() { &UNCACHED } else { &EMPTY });
        return;
    }
    let Some(thread) = make() else {
        tls::set_current(&EMPTY);
        return;
    };
    if !thread_end::set_value(thread) {
        thread_end::retire(thread);
        return;
    }
    thread.caches().for_each(switch::show);
    if THREADS.get() == 2 {
        // What the only thread had no background thread for may get one now.
        handed_out::remember_fall();
    }
}

/// Returns a record for the calling thread, with a cache in the first arena, or `None` if there is
/// no memory.
fn make() -> Option<&'static Thread> {
    let home = arena_list::by_id(0)?;
    give_back::of_few_lost_threads();
    let thread = registry::take_thread()?;
    let Some(cache) = registry::take(home, false, Some(thread)) else {
        registry::put_thread(thread);
        return None;
    };
    thread.add_cache(cache);
    Some(thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::backtrace::depths;

    #[test]
    fn a_thread_does_not_know_the_depth_of_one_that_had_its_address_before() {
        for first_call in [real_cache, real_cache_to_free] {
            let thread = std::thread::spawn(move || {
                assert_eq!(tls::current().kind(), Kind::Empty);
                depths::leave_depth();
                first_call();
                assert!(!depths::is_left());
            });
            thread.join().expect("the thread");
        }
    }
}
