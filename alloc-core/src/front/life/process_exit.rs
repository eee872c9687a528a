//! The exit of the process: a look at what the caches of the calling thread and of others hold.
//!
//! The function is listed in `.fini_array`, because `atexit` may allocate; so it runs in a Rust
//! program, with a preloaded library and in a static program, at the return of `main` and at
//! `exit`. Its place among those with a priority makes it the last one: the statistics and profiles
//! that are written at the exit come before. `_exit`, a signal and `abort` skip it.

use super::fork;
use crate::front::cache::current;
use crate::front::cache::real_cache::Thread;
use crate::front::cache::registry::{self, REGISTRY};
use crate::front::modes::hardened::sweep;
use crate::front::supply::{suspects, suspects_elsewhere};
use crate::ground::sync::wait::{self, Deadline};
use crate::middle::passes::decay_pass::PASS;
use core::sync::atomic::Ordering::Relaxed;

/// Looks for misused blocks in the caches of all threads, and in the hardened tier at all blocks. A
/// cache that a slow path uses, because a signal handler called `exit`, is left out.
extern "C" fn at_exit() {
    let deadline = Deadline::of_all();
    let mine = current::thread();
    let caches = || mine.into_iter().flat_map(Thread::caches);
    let left_out = caches().filter(|cache| !suspects::all(cache, deadline)).count();
    if left_out > 0 || fork::HAS_LOST_THREADS.load(Relaxed) {
        return;
    }
    // Meanwhile no pass moves blocks, and no thread gets its first cache or ends.
    let Some(_pass) = wait::within_a_time(deadline, || PASS.try_lock()) else { return };
    let registry = wait::within_a_time(deadline, || REGISTRY.try_lock());
    let Some(mut registry) = registry else { return };
    suspects_elsewhere::all(&mut registry, mine, deadline);
    // No other thread has a cache, and no cache is explicit.
    if mine.is_some() && registry::CACHES.get() == caches().count() as u64 {
        sweep::at_exit(|class, block| caches().any(|cache| suspects::holds(cache, class, block)));
    }
}

#[unsafe(link_section = ".fini_array.00099")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Makes the function part of every program that has this allocator. It is not marked as used,
/// because an object that links the crate for its types alone would then have the allocator too.
pub(super) fn register() {
    core::hint::black_box(&raw const AT_EXIT);
}
