//! Decides which requests get a sample, by the bins' countdowns.
//!
//! Each bin of each thread draws the number of requests until its next sample ([`gap`]),
//! independently of all other bins. The countdown is never armed for more than this number, and the
//! request that finds it run out gets the sample. The fast paths need no test for it.

use crate::front::cache::real_cache::RealCache;
use crate::front::modes::guarded::{self, gap};
use crate::ground::size_class::SizeClass;

/// The largest class that samples are taken of, because larger blocks do not fit into a page.
const LARGEST: usize = 4096;

/// Returns for how many requests, of `most`, a bin's countdown is to be armed. The present request,
/// which found it run out, is the first of them, and becomes a sample if its time has come.
pub(crate) fn arm(cache: &RealCache, class: SizeClass, most: usize) -> usize {
    if !guarded::is_on() || class.size() > LARGEST {
        return most;
    }
    let until = &cache.cold(class).until_sample;
    if until.get() == 0 {
        until.set(gap::next());
    }
    if until.get() == 1 {
        cache.sample_due.set(true);
        until.set(1 + gap::next());
    }
    let pops = most.min(until.get() - 1);
    until.set(until.get() - pops);
    pops
}
