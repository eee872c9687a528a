//! Random order of reuse: the blocks of a refill are shuffled.
//!
//! Slabs give their lowest free blocks first. A batch of them is put in random order before it is
//! used, so that an attacker cannot tell which block an overflow hits. Shuffling the batch was
//! chosen over a random place in the slab, because it mixes as well, and the slab's pages are still
//! used from one end.

use super::random::Random;
use crate::front::bins::cache_bin::CacheBin;

/// The first refills of a class ask for this many blocks, because fewer would leave nothing to
/// shuffle.
pub(crate) const FEWEST: usize = 7;

/// Shuffles the blocks of a bin (Fisher and Yates).
///
/// # Safety
/// The caller must be the bin's thread.
pub(crate) unsafe fn shuffle(bin: &CacheBin, random: &Random) {
    let oldest = bin.base().wrapping_add(1);
    // The generator is lent, because the compiler must assume that a slot overlaps the generator.
    random.lend(|random| {
        for last in (1..bin.level()).rev() {
            let other = random.below(last + 1);
            let (one, two) = (oldest.wrapping_add(last), oldest.wrapping_add(other));
            // SAFETY: both are below the bin's level, so they are written slots of this thread.
            unsafe { one.swap(two) };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_the_blocks_and_not_their_order() {
        let mut array = [core::ptr::null_mut(); 256];
        let bin = CacheBin::none();
        // SAFETY: this thread's bin; 255 + 1 slots.
        unsafe { bin.move_to(array.as_mut_ptr(), 255) };
        (1..=200usize).for_each(|n| assert!(bin.push(core::ptr::without_provenance_mut(n))));
        // SAFETY: this thread's bin.
        unsafe { shuffle(&bin, &Random::new()) };
        // SAFETY: this thread's bin.
        let mut blocks: Vec<usize> = unsafe { bin.blocks() }.iter().map(|b| *b as usize).collect();
        let in_place = blocks.iter().enumerate().filter(|(at, block)| at + 1 == **block).count();
        assert!(in_place < 50, "{in_place} of 200 stayed");
        blocks.sort_unstable();
        assert!(blocks.into_iter().eq(1..=200));
    }
}
