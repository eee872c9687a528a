//! Decides which requests get a sample, by the bins' countdowns.
//!
//! Each bin of each thread draws the number of requests until its next sample, independently of all
//! other bins: for guarded samples ([`gap`]), and for the heap profiler ([`rate`]). The countdown
//! is never armed for more than this number, and the request that finds it run out gets the sample.
//! The fast paths need no test for it. Allocations past the bins count their bytes instead. When
//! the rate of the heap profiler is set anew, all countdowns run out ([`rousing`]).
//!
//! [`rousing`]: crate::front::cache::rousing

use crate::front::cache::real_cache::RealCache;
use crate::front::modes::block_size;
use crate::front::modes::guarded::{self, gap};
use crate::front::modes::until_sample::Due;
use crate::ground::size_class::SizeClass;
use crate::profile::{rate, sampler};

/// The largest request that guarded samples are taken of, because larger blocks do not fit into a
/// page.
const LARGEST: usize = 4096;

/// Returns for how many requests, of `most`, a bin's countdown is to be armed. The present request,
/// which found it run out, is the first of them, and becomes a sample if its time has come.
pub(crate) fn arm(cache: &RealCache, class: SizeClass, most: usize) -> usize {
    let cold = cache.cold(class);
    let mut pops = most;
    // An explicit cache belongs to no thread. Its requests are counted by their bytes, and none is
    // guarded.
    let is_of_thread = cache.thread().is_some();
    let is_profiled = sampler::is_on() && !sampler::is_exact() && is_of_thread;
    if is_profiled {
        cache.follow_rate();
        let draw = || rate::requests(class.size());
        pops = pops.min(cold.until_profiled.begin(draw, || cache.due.set(Due::Profiled)));
    }
    let is_guarded = guarded::is_on() && may_fit(class) && is_of_thread;
    if is_guarded {
        pops = pops.min(cold.until_guarded.begin(gap::next, || cache.due.set(Due::Guarded)));
    }
    if is_profiled {
        cold.until_profiled.pass(pops);
    }
    if is_guarded {
        cold.until_guarded.pass(pops);
    }
    pops
}

/// Whether the class serves requests that guarded samples are taken of. In the hardened tier a
/// request has its canary.
fn may_fit(class: SizeClass) -> bool {
    block_size::room(LARGEST, 1).is_some_and(|room| class <= SizeClass::of(room))
}

/// Counts an allocation of `bytes` bytes past the bins. Returns whether the profiler samples it.
#[inline]
pub(crate) fn samples_bytes(cache: &RealCache, bytes: usize) -> bool {
    if !sampler::is_on() {
        return false;
    }
    cache.follow_rate();
    cache.until_byte.count(bytes, rate::bytes)
}
