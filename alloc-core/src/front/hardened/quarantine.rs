//! Quarantine: a freed block trades places with a random one that was freed before it.
//!
//! A thread has one ring for all classes up to 1 KiB: at most 32 blocks, 32 KiB. A ring for each
//! class would hold more for longer, and crowd the processor's caches. The ring is its thread's;
//! others count what lies in it.

use super::canary::ZEROED;
use super::random::Random;
use crate::ground::checked::at;
use crate::ground::size_class::SizeClass;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const LG_PLACES: u32 = 5;
const PLACES: usize = 1 << LG_PLACES;
/// Addresses have fewer bits than this (see the page map); a block's bin stands above.
const ADDRESS_BITS: u32 = 48;

/// The ring of one thread. A place holds a block's bin and its address, or 0.
pub(crate) struct Quarantine {
    ring: [AtomicUsize; PLACES],
}

/// A block that has waited.
#[derive(Clone, Copy)]
pub(crate) struct Waited(usize);

impl Waited {
    /// Its bin in a thread cache; 0: there is none.
    #[inline(always)]
    pub(crate) fn bin(self) -> usize {
        self.0 >> ADDRESS_BITS
    }

    /// The block.
    #[inline(always)]
    pub(crate) fn block(self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.0 & ((1 << ADDRESS_BITS) - 1))
    }
}

impl Quarantine {
    /// An empty ring.
    pub(crate) const fn new() -> Quarantine {
        Quarantine { ring: [const { AtomicUsize::new(0) }; PLACES] }
    }

    /// Takes a block in, and answers another that has waited, if one has; or the block itself where
    /// its class does not wait.
    #[inline(always)]
    pub(crate) fn exchange(&self, bin: usize, block: *mut u8, random: &Random) -> Waited {
        let comes = bin << ADDRESS_BITS | block.expose_provenance();
        if bin > const { SizeClass::of(ZEROED).bin() } {
            return Waited(comes);
        }
        // SAFETY: below 2^LG_PLACES.
        let place = unsafe { at(&self.ring, random.bits(LG_PLACES)) };
        let goes = place.load(Relaxed);
        place.store(comes, Relaxed);
        Waited(goes)
    }

    /// Lets all blocks go, the thread's own or those of one that is no more.
    pub(crate) fn release(&self, mut each: impl FnMut(SizeClass, *mut u8)) {
        for place in &self.ring {
            let waited = Waited(place.load(Relaxed));
            if let Some(class) = SizeClass::from_bin(waited.bin()) {
                place.store(0, Relaxed);
                each(class, waited.block());
            }
        }
    }

    /// How many blocks of a class wait.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        let waits = |place: &&AtomicUsize| Waited(place.load(Relaxed)).bin() == class.bin();
        self.ring.iter().filter(waits).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wait_their_turn_and_none_is_lost() {
        let (ring, random) = (Quarantine::new(), Random::new());
        let class = SizeClass::of(64);
        let mut seen = Vec::new();
        for n in 1..=1000usize {
            let out = ring.exchange(class.bin(), core::ptr::without_provenance_mut(n), &random);
            assert_ne!(out.block() as usize, n, "no block comes back at once");
            if out.bin() != 0 {
                assert_eq!(out.bin(), class.bin());
                seen.push(out.block() as usize);
            }
        }
        assert_eq!(ring.level(class), 1000 - seen.len());
        assert_eq!(ring.level(SizeClass::of(100)), 0);
        assert!(ring.level(class) <= PLACES && seen.windows(2).any(|two| two[0] > two[1]));
        ring.release(|its, block| {
            assert!(its == class);
            seen.push(block as usize);
        });
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=1000));
        assert_eq!(ring.level(class), 0);
    }

    #[test]
    fn large_classes_do_not_wait() {
        let (ring, block) = (Quarantine::new(), core::ptr::without_provenance_mut(16));
        let (larger, last) = (SizeClass::of(1025).bin(), SizeClass::of(1024).bin());
        assert_eq!(ring.exchange(larger, block, &Random::new()).block(), block);
        assert_eq!(ring.exchange(last, block, &Random::new()).bin(), 0);
    }
}
