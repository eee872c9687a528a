//! The number of requests from one sample to the next. It is drawn at random, from a geometric
//! distribution whose mean is `opt.guarded_sample`, so that each request has the same chance.

use crate::ground::geometric;
use crate::ground::options;
use crate::ground::os;
use crate::ground::shared_random::SharedRandom;

static RANDOM: SharedRandom = SharedRandom::new();

/// Seeds the random numbers. Called once, at start.
pub(crate) fn prepare() {
    RANDOM.seed(os::random());
}

/// Returns a function that draws numbers of 64 random bits.
pub(crate) fn draws() -> impl FnMut() -> u64 {
    RANDOM.draws()
}

/// Returns the number of requests until the next sample.
pub(crate) fn next() -> usize {
    geometric::gap(options::current().guarded_sample, draws())
}
