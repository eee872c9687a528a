//! Which requests get a sample: the bins' countdowns know.
//!
//! Each bin of each thread draws the number of requests until its next sample, geometrically about
//! `opt.guarded_sample`; so each request has the same chance, and what is drawn for one bin says
//! nothing of another. The countdown is never armed for more than that, and the request that finds
//! it run out is the one. The fast paths know nothing of it.

use super::is_on;
use crate::front::fill;
use crate::front::modes;
use crate::front::registry::RealCache;
use crate::front::slow;
use crate::front::thread_cache;
use crate::ground::options;
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The largest class that samples are taken of: larger blocks have no place in a page.
const LARGEST: usize = 4096;

/// One generator for all threads: two that draw at a time may draw the same, which harms nobody.
static STATE: AtomicU64 = AtomicU64::new(1);

/// Seeds the generator. Once, at start.
pub(crate) fn prepare() {
    STATE.store(os::random() | 1, Relaxed);
}

/// 32 random bits.
pub(crate) fn draw() -> u32 {
    let next = STATE.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005);
    STATE.store(next, Relaxed);
    (next >> 32) as u32
}

/// Requests until the next sample: geometric about a mean.
///
/// -ln u by the place of the highest bit of a random number and, between powers of two, a straight
/// line.
fn gap(mean: usize) -> usize {
    let u = u64::from(draw() | 1);
    let zeros = u64::from(u.leading_zeros() - 32);
    let fraction = ((u << (zeros + 1)) & 0xffff_ffff) >> 16;
    let log2 = ((zeros + 1) << 16) - fraction;
    let mean = (mean as u64).min(1 << 32);
    // ln 2 in 16.16 is 45426.
    1 + ((mean * ((log2 * 45426) >> 16)) >> 16) as usize
}

/// For how many requests a bin's countdown is armed, of `most`: the one at hand, which found it run
/// out, is the first of them, and becomes a sample if its time has come.
pub(crate) fn arm(cache: &RealCache, class: SizeClass, most: usize) -> usize {
    if !is_on() || class.size() > LARGEST {
        return most;
    }
    let until = &cache.cold(class).until_sample;
    if until.get() == 0 {
        until.set(next());
    }
    if until.get() == 1 {
        cache.sample_due.set(true);
        until.set(1 + next());
    }
    let pops = most.min(until.get() - 1);
    until.set(until.get() - pops);
    pops
}

fn next() -> usize {
    gap(options::current().guarded_sample)
}

/// A sample in place of a block that was just popped, if the request is to get one; the block is
/// cached again. `None`: the block it is.
pub(crate) fn take(class: SizeClass, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let cache = thread_cache::current().as_real()?;
    if !cache.sample_due.replace(false) {
        return None;
    }
    let Some(sample) = super::allocate(size, align) else {
        let thread = cache.thread().filter(|_| cache.holds(class));
        thread.into_iter().for_each(|thread| thread.got_cached(modes::usable(class)));
        return None;
    };
    if !cache.bin(class).put(block) {
        // Collection came by meanwhile and dropped the array.
        slow::push_missed(block);
    }
    // A sample is no request of the class.
    cache.cold(class).armed.add(1u64.wrapping_neg());
    slow::count_given(size);
    // SAFETY: a fresh block of that size.
    unsafe { fill::allocated(sample, size) };
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_about_their_mean_and_vary() {
        prepare();
        for mean in [1, 10, 1000] {
            let sum: usize = (0..20_000).map(|_| gap(mean)).sum();
            let seen = sum / 20_000;
            assert!(seen >= mean && seen <= mean + mean / 5 + 1, "{seen} for {mean}");
        }
        let short = (0..1000).filter(|_| gap(1000) < 500).count();
        assert!((300..500).contains(&short), "{short}: e to the minus a half is 0.61");
    }
}
