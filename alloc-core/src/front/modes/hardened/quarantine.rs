//! Quarantine: a freed block is swapped with a random block that was freed before it.
//!
//! A thread has one ring for all classes up to 1 KiB: at most 32 blocks, 32 KiB. A ring for each
//! class would hold more blocks for longer, and crowd the processor's caches. Only its thread
//! changes the ring; other threads count its blocks.

use super::random::Random;
use crate::ground::checked::at;
use crate::ground::size_class::{BIN_BYTES, OFFSET_UNIT, SizeClass};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// Blocks up to this size wait.
pub(crate) const LONGEST: usize = 1024;

const LG_PLACES: u32 = 5;
const PLACES: usize = 1 << LG_PLACES;

/// The ring of one thread.
pub(crate) struct Quarantine {
    blocks: [AtomicPtr<u8>; PLACES],
    /// The offsets of the bins of these blocks, in units of [`OFFSET_UNIT`]. 0 if there is no
    /// block.
    units: [AtomicU32; PLACES],
}

/// A block that has left the quarantine.
#[derive(Clone, Copy)]
pub(crate) struct Waited {
    /// The block.
    pub(crate) block: *mut u8,
    /// The offset of its bin in a thread cache, in units of [`OFFSET_UNIT`]. 0 if there is no
    /// block.
    pub(crate) units: usize,
}

fn class_at(units: u32) -> Option<SizeClass> {
    SizeClass::from_bin(units as usize * OFFSET_UNIT / BIN_BYTES)
}

impl Quarantine {
    /// An empty ring.
    pub(crate) const fn new() -> Quarantine {
        Quarantine {
            blocks: [const { AtomicPtr::new(core::ptr::null_mut()) }; PLACES],
            units: [const { AtomicU32::new(0) }; PLACES],
        }
    }

    /// Puts a block whose bin stands at `units` into a random place, and returns the block that was
    /// in this place, if there was one.
    #[inline(always)]
    pub(crate) fn exchange(&self, units: usize, block: *mut u8, random: &Random) -> Waited {
        debug_assert!(units <= const { SizeClass::of(LONGEST).bin() * (BIN_BYTES / OFFSET_UNIT) });
        let place = random.bits(LG_PLACES);
        // SAFETY: below 2^LG_PLACES.
        let its_units = unsafe { at(&self.units, place) };
        // SAFETY: as above.
        let its_block = unsafe { at(&self.blocks, place) };
        let (goes, from) = (its_block.load(Relaxed), its_units.load(Relaxed));
        its_block.store(block, Relaxed);
        its_units.store(units as u32, Relaxed);
        Waited { block: goes, units: from as usize }
    }

    /// Passes all blocks to `each` and empties the ring. Called by the ring's thread, or after it
    /// is gone.
    pub(crate) fn release(&self, mut each: impl FnMut(SizeClass, *mut u8)) {
        for (block, units) in self.blocks.iter().zip(&self.units) {
            if let Some(class) = class_at(units.load(Relaxed)) {
                units.store(0, Relaxed);
                each(class, block.load(Relaxed));
            }
        }
    }

    /// Calls `see` with each block, as far as another thread can tell.
    pub(crate) fn for_each(&self, mut see: impl FnMut(*mut u8)) {
        for (block, units) in self.blocks.iter().zip(&self.units) {
            if units.load(Relaxed) != 0 {
                see(block.load(Relaxed));
            }
        }
    }

    /// Returns how many blocks of a class wait.
    pub(crate) fn level(&self, class: SizeClass) -> usize {
        if class.size() > LONGEST {
            return 0;
        }
        self.waiting().filter(|its| *its == class).count()
    }

    /// Returns the class of each block that waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = SizeClass> {
        self.units.iter().filter_map(|units| class_at(units.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wait_their_turn_and_none_is_lost() {
        let (ring, random) = (Quarantine::new(), Random::new());
        let class = SizeClass::of(64);
        let units = class.bin() * BIN_BYTES / OFFSET_UNIT;
        let mut seen = Vec::new();
        for n in 1..=1000usize {
            let out = ring.exchange(units, core::ptr::without_provenance_mut(n), &random);
            assert_ne!(out.block as usize, n, "no block comes back at once");
            if out.units != 0 {
                assert_eq!(out.units, units);
                seen.push(out.block as usize);
            }
        }
        assert_eq!(ring.level(class), 1000 - seen.len());
        assert_eq!(ring.level(SizeClass::of(100)), 0);
        assert!(ring.level(class) <= PLACES && seen.windows(2).any(|two| two[0] > two[1]));
        let mut waiting = Vec::new();
        ring.for_each(|block| waiting.push(block as usize));
        let before = seen.len();
        ring.release(|its, block| {
            assert!(its == class);
            seen.push(block as usize);
        });
        assert_eq!(seen[before..], waiting);
        ring.for_each(|_| panic!("it is empty"));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(1..=1000));
        assert_eq!(ring.level(class), 0);
    }
}
