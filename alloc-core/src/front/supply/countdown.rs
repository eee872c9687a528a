//! Which requests get a sample: the bins' countdowns know.
//!
//! Each bin of each thread draws the number of requests until its next sample
//! ([`gap`]); what is drawn for one bin says nothing of another. The countdown is never armed for
//! more than that, and the request that finds it run out is the one. The fast paths know nothing of
//! it.

use crate::front::cache::real_cache::RealCache;
use crate::front::modes::guarded::{self, gap};
use crate::ground::size_class::SizeClass;

/// The largest class that samples are taken of: larger blocks have no place in a page.
const LARGEST: usize = 4096;

/// For how many requests a bin's countdown is armed, of `most`: the one at hand, which found it run
/// out, is the first of them, and becomes a sample if its time has come.
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
