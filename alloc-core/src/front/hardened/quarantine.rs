//! Quarantine: a freed block trades places with a random one that was freed before it.
//!
//! Each class up to 1 KiB has a ring of places per thread: at most 16 blocks of each, some 130 KiB
//! altogether. The ring is its thread's; others count what lies in it.

use super::canary::ZEROED;
use super::random::Random;
use crate::ground::checked::at;
use crate::ground::size_class::SizeClass;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

const LG_PLACES: u32 = 4;
const PLACES: usize = 1 << LG_PLACES;
/// Classes up to the largest that is zeroed.
const KEPT: usize = SizeClass::of(ZEROED).index() + 1;

/// The rings of one thread.
pub(crate) struct Quarantine {
    rings: [[AtomicPtr<u8>; PLACES]; KEPT],
}

impl Quarantine {
    /// Empty rings.
    pub(crate) const fn new() -> Quarantine {
        Quarantine {
            rings: [const { [const { AtomicPtr::new(core::ptr::null_mut()) }; PLACES] }; KEPT],
        }
    }

    /// Takes a block in, and answers another of its class that has waited; null: none has. Answers
    /// the block itself where its class does not wait.
    #[inline(always)]
    pub(crate) fn exchange(&self, class: SizeClass, block: *mut u8, random: &Random) -> *mut u8 {
        if class.index() >= KEPT {
            return block;
        }
        // SAFETY: just compared.
        let ring = unsafe { at(&self.rings, class.index()) };
        // SAFETY: below 2^LG_PLACES.
        let place = unsafe { at(ring, random.bits(LG_PLACES)) };
        let waited = place.load(Relaxed);
        place.store(block, Relaxed);
        waited
    }

    /// Lets all blocks of a class go, the thread's own or those of one that is no more.
    pub(crate) fn release(&self, class: SizeClass, mut each: impl FnMut(*mut u8)) {
        let Some(ring) = self.rings.get(class.index()) else { return };
        for place in ring {
            let block = place.load(Relaxed);
            if !block.is_null() {
                place.store(core::ptr::null_mut(), Relaxed);
                each(block);
            }
        }
    }

    /// How many blocks of a class wait.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        let ring = self.rings.get(class.index());
        ring.map_or(0, |ring| ring.iter().filter(|place| !place.load(Relaxed).is_null()).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wait_their_turn_and_none_is_lost() {
        let (rings, random) = (Quarantine::new(), Random::new());
        let class = SizeClass::of(64);
        let mut seen = Vec::new();
        for n in 1..=1000usize {
            let out = rings.exchange(class, core::ptr::without_provenance_mut(n), &random);
            assert_ne!(out as usize, n, "no block comes back at once");
            if !out.is_null() {
                seen.push(out as usize);
            }
        }
        assert_eq!(rings.level(class), 1000 - seen.len());
        assert!(rings.level(class) <= PLACES && seen.windows(2).any(|two| two[0] > two[1]));
        rings.release(class, |block| seen.push(block as usize));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=1000));
        assert_eq!(rings.level(class), 0);
    }

    #[test]
    fn large_classes_do_not_wait() {
        let rings = Quarantine::new();
        let block = core::ptr::without_provenance_mut(16);
        assert_eq!(rings.exchange(SizeClass::of(1025), block, &Random::new()), block);
        assert!(rings.exchange(SizeClass::of(1024), block, &Random::new()).is_null());
    }
}
