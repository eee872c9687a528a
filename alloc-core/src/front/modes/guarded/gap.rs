//! The number of requests from one sample to the next. It is drawn at random, from a geometric
//! distribution whose mean is `opt.guarded_sample`, so that each request has the same chance.

use crate::ground::geometric;
use crate::ground::options;
use crate::ground::os;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One generator for all threads. Two threads that draw at a time may draw the same number, which
/// is harmless.
static STATE: AtomicU64 = AtomicU64::new(1);

/// Seeds the generator. Called once, at start.
pub(crate) fn prepare() {
    STATE.store(os::random() | 1, Relaxed);
}

/// Returns 32 random bits.
pub(crate) fn draw() -> u32 {
    let next = STATE.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005);
    STATE.store(next, Relaxed);
    (next >> 32) as u32
}

/// Returns the chance that a request gets no sample, in units of 2^-64, if one of `mean` gets one.
fn fails(mean: usize) -> u64 {
    let mean = (mean as u64).clamp(1, 1 << 32);
    if mean == 1 { 0 } else { (u64::MAX / mean).wrapping_neg() }
}

/// Returns the number of requests until the next sample.
pub(crate) fn next() -> usize {
    geometric::gap(fails(options::current().guarded_sample), draw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_one_leaves_no_request_out() {
        assert_eq!([fails(0), fails(1), fails(2)], [0, 0, (1 << 63) + 1]);
        assert_eq!(geometric::gap(fails(1), || 0), 1);
        assert_eq!(fails(usize::MAX), fails(1 << 32));
    }
}
