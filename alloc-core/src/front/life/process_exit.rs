//! The exit of the process: a look at what the calling thread's caches hold.
//!
//! The function is listed in `.fini_array`, because `atexit` may allocate; so it runs in a Rust
//! program, with a preloaded library and in a static program, at the return of `main` and at
//! `exit`. Its place among those with a priority makes it the last one: the statistics and profiles
//! that are written at the exit come before. `_exit`, a signal and `abort` skip it.

use super::fork;
use crate::front::cache::current;
use crate::front::cache::registry::{self, REGISTRY};
use crate::front::modes::hardened::sweep;
use crate::front::supply::suspects;
use crate::middle::passes::decay_pass::PASS;
use core::sync::atomic::Ordering::Relaxed;

/// Looks for misused blocks in the caches of the calling thread, and in the hardened tier at all
/// blocks. A cache that a slow path uses, because a signal handler called `exit`, is left
/// out.
extern "C" fn at_exit() {
    let Some(thread) = current::thread() else { return };
    let left_out = thread.caches().filter(|cache| !suspects::all(cache)).count();
    if left_out > 0 || fork::HAS_LOST_THREADS.load(Relaxed) {
        return;
    }
    // Meanwhile no pass moves blocks, and no thread gets its first cache.
    let (Some(_pass), Some(_registry)) = (PASS.try_lock(), REGISTRY.try_lock()) else { return };
    if registry::CACHES.get() == 1 {
        sweep::at_exit(|class, block| {
            thread.caches().any(|cache| suspects::holds(cache, class, block))
        });
    }
}

#[unsafe(link_section = ".fini_array.00099")]
static AT_EXIT: extern "C" fn() = at_exit;

/// Makes the function part of every program that has this allocator. It is not marked as used,
/// because an object that links the crate for its types alone would then have the allocator too.
pub(super) fn register() {
    core::hint::black_box(&raw const AT_EXIT);
}
