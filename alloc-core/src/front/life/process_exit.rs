//! The exit of the process: a look at what the calling thread's caches hold.
//!
//! The function is listed in `.fini_array`, because `atexit` may allocate; so it runs in a Rust
//! program, with a preloaded library and in a static program, at the return of `main` and at
//! `exit`. Its place among those with a priority makes it the last one: the statistics and profiles
//! that are written at the exit come before. `_exit`, a signal and `abort` skip it.

use crate::front::cache::current;
use crate::front::cache::thread::Thread;
use crate::front::supply::suspects;

/// Looks for misused blocks in the caches of the calling thread. A cache that is in use, because a
/// signal handler called `exit`, is left out.
extern "C" fn at_exit() {
    current::thread().into_iter().flat_map(Thread::caches).for_each(suspects::all);
}

#[used]
#[unsafe(link_section = ".fini_array.00099")]
static AT_EXIT: extern "C" fn() = at_exit;
