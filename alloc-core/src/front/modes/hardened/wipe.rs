//! Writes zeroes over a freed block of up to 1 KiB, and a broken seal behind them.
//!
//! The expensive part is a mispredicted branch on the block's length. Therefore one straight line
//! of stores serves many sizes, and the stores overlap if the block is shorter. With masked stores
//! of 64 bytes (AVX-512) all sizes up to 256 bytes share one line. Without them each doubling has
//! its own line: four chunks, each a quarter of the largest size; longer blocks are left to the C
//! library, which uses what the processor has.

use super::canary::BYTES;
use crate::ground::size_class::{BIN_BYTES, OFFSET_UNIT, SizeClass};

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(masked_stores, "avx512bw");

/// The offsets of the bins of the largest classes of three doublings.
const UNITS: [usize; 3] = [units(64), units(128), units(256)];

const fn units(size: usize) -> usize {
    SizeClass::of(size).bin() * (BIN_BYTES / OFFSET_UNIT)
}

fn are_stores_masked() -> bool {
    #[cfg(target_arch = "x86_64")]
    return masked_stores::get();
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Returns the offset of the last bin whose blocks masked stores wipe, in units of [`OFFSET_UNIT`],
/// or 0 if the processor or the system has none. Asks the processor the first time.
pub(crate) fn masked_units() -> usize {
    if are_stores_masked() { UNITS[2] } else { 0 }
}

/// Wipes a block of a class and writes its last word. Branches on `units`, the offset of the
/// class's bin in units of [`OFFSET_UNIT`], because `units` is known before `room`.
///
/// # Safety
/// `room` bytes and a word at `block` must be the caller's, together a class's size, from 16 to
/// [`LONGEST`](super::quarantine::LONGEST). `masked` must be what [`masked_units`] returns, or 0.
#[inline(always)]
pub(crate) unsafe fn wipe(block: *mut u8, units: usize, room: usize, word: u64, masked: usize) {
    if units <= masked {
        // SAFETY: the caller's promise; a class of at most 256 bytes.
        unsafe { masked::wipe(block, units, room, word) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { wipe_otherwise(block, units, room, word) };
    }
}

/// [`wipe`] for longer blocks, or without masked stores.
///
/// # Safety
/// As [`wipe`].
#[inline(never)]
unsafe fn wipe_otherwise(block: *mut u8, units: usize, room: usize, word: u64) {
    let last = block.wrapping_add(room).cast::<u64>();
    let [sixty_four, hundreds, more] = UNITS;
    if units > more {
        if are_stores_masked() {
            // SAFETY: the caller's promise; a class above 256 bytes.
            return unsafe { masked::wipe_lines(block, room, word) };
        }
        // SAFETY: the caller's promise.
        unsafe { last.write(word) };
        // Written first, so that the next call ends the function.
        // SAFETY: the caller's promise.
        return unsafe { block.write_bytes(0, room) };
    }
    if units <= sixty_four {
        // SAFETY: the caller's promise.
        unsafe { quarters::<16>(block, room + BYTES) };
    } else if units <= hundreds {
        // SAFETY: the caller's promise.
        unsafe { quarters::<32>(block, room + BYTES) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { quarters::<64>(block, room + BYTES) };
    }
    // SAFETY: the caller's promise.
    unsafe { last.write(word) };
}

#[cfg(target_arch = "x86_64")]
mod masked {
    use super::{BYTES, SizeClass, UNITS, units};
    use core::arch::x86_64::{_mm512_mask_storeu_epi8, _mm512_setzero_si512, _mm512_storeu_si512};

    const STORE: usize = 64;
    const BINS: usize = UNITS[2] / units(8) + 1;
    /// Bytes of the table for each unit of a bin's offset.
    const UNIT: usize = size_of::<Line>() / units(8);

    /// The mask of the bytes that each store of a class writes, and the offsets of the stores
    /// behind the first one.
    #[derive(Clone, Copy)]
    struct Line {
        mask: u64,
        places: [u8; 3],
    }

    static LINES: [Line; BINS] = lines();

    const fn lines() -> [Line; BINS] {
        let mut lines = [Line { mask: 0, places: [0; 3] }; BINS];
        let mut size = 16;
        while size <= 4 * STORE {
            let (first, mut store) = (if size < STORE { size } else { STORE }, 0);
            let line = &mut lines[SizeClass::of(size).bin()];
            // The largest of the sizes of a class, the class's own size, is written last and stays.
            line.mask = u64::MAX >> (STORE - first);
            while store < 3 {
                let (place, last) = ((store + 1) * STORE, size - first);
                line.places[store] = if place < last { place as u8 } else { last as u8 };
                store += 1;
            }
            size += 16;
        }
        lines
    }

    /// [`wipe`](super::wipe) for up to 256 bytes.
    ///
    /// # Safety
    /// As [`wipe`](super::wipe).
    #[target_feature(enable = "avx512bw")]
    pub(super) unsafe fn wipe(block: *mut u8, bin_units: usize, room: usize, word: u64) {
        // SAFETY: the caller's promise: no bin behind the last one of the table.
        let line = unsafe { LINES.as_ptr().byte_add(bin_units * UNIT) };
        // SAFETY: as above.
        let line = unsafe { &*line };
        let zeroes = _mm512_setzero_si512();
        let zero = |place: usize| {
            let place = block.wrapping_add(place).cast();
            // SAFETY: what the mask lets through lies inside the block (the caller's promise).
            unsafe { _mm512_mask_storeu_epi8(place, line.mask, zeroes) };
        };
        zero(0);
        line.places.iter().for_each(|place| zero(usize::from(*place)));
        // SAFETY: the caller's promise.
        unsafe { block.wrapping_add(room).cast::<u64>().write(word) };
    }

    /// [`wipe`](super::wipe) for more than 256 bytes. The block is whole lines, as all those
    /// classes are.
    ///
    /// # Safety
    /// As [`wipe`](super::wipe).
    #[target_feature(enable = "avx512bw")]
    pub(super) unsafe fn wipe_lines(block: *mut u8, room: usize, word: u64) {
        let (zeroes, last) = (_mm512_setzero_si512(), room + BYTES - STORE);
        let zero = |place: usize| {
            let place = block.wrapping_add(place.min(last)).cast();
            // SAFETY: inside the block (the caller's promise).
            unsafe { _mm512_storeu_si512(place, zeroes) };
        };
        (0..8).for_each(|line| zero(line * STORE));
        if last >= 8 * STORE {
            (8..16).for_each(|line| zero(line * STORE));
        }
        // SAFETY: the caller's promise.
        unsafe { block.wrapping_add(room).cast::<u64>().write(word) };
    }
}

/// Never called, because other processors have no masked stores.
#[cfg(not(target_arch = "x86_64"))]
mod masked {
    pub(super) unsafe fn wipe(_: *mut u8, _: usize, _: usize, _: u64) {}
    pub(super) unsafe fn wipe_lines(_: *mut u8, _: usize, _: u64) {}
}

/// Zeroes `size` bytes by four stores of `QUARTER` bytes. `size` must be at most four quarters and,
/// except for the smallest quarter, more than two.
#[inline(always)]
unsafe fn quarters<const QUARTER: usize>(block: *mut u8, size: usize) {
    for place in [0, (size >> 2) & !15, (size >> 1) & !15, size - QUARTER] {
        // SAFETY: inside the block (the caller's promise).
        unsafe { block.wrapping_add(place).write_bytes(0, QUARTER) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::modes::hardened::quarantine::LONGEST;

    #[test]
    fn every_class_is_zeroed_to_its_last_word_and_no_further() {
        for class in SizeClass::all().filter(|class| (16..=LONGEST).contains(&class.size())) {
            let (size, room) = (class.size(), class.size() - BYTES);
            for masked in [0, masked_units()] {
                let mut memory = vec![0xff_u8; LONGEST + 32];
                let first = memory.as_mut_ptr().wrapping_add(16);
                // SAFETY: 16 bytes of the vector follow the block.
                unsafe { wipe(first, units(size), room, 0x77 << 56, masked) };
                let (before, rest) = memory.split_at(16);
                let (block, after) = rest.split_at(size);
                assert!(before.iter().chain(after).all(|byte| *byte == 0xff), "{size}");
                assert!(block[..size - 1].iter().all(|byte| *byte == 0), "{size}");
                assert_eq!(block[size - 1], 0x77);
            }
        }
    }
}
