//! Zeroes over a freed block of up to 1 KiB, and a broken seal behind them.
//!
//! The short sizes of a doubling are written by the same straight line of stores: four chunks of a
//! quarter of the largest, which overlap where the block is shorter. So the processor has one
//! branch to guess, not one for each chunk. What is longer is the system's to zero, with whatever
//! the processor has for it.

use super::canary::BYTES;
use crate::ground::size_class::{BIN_BYTES, OFFSET_UNIT, SizeClass};

/// Where the bins stand of the largest classes of three doublings.
const UNITS: [usize; 3] = [units(64), units(128), units(256)];

const fn units(size: usize) -> usize {
    SizeClass::of(size).bin() * (BIN_BYTES / OFFSET_UNIT)
}

/// Wipes a block of a class and writes its last word. What it branches by is where the class's bin
/// stands, in units of [`OFFSET_UNIT`], which is known before the room is.
///
/// # Safety
/// `room` bytes and a word at `block` are the caller's, together a class's size, from 16 to
/// [`ZEROED`](super::canary::ZEROED).
#[inline(always)]
pub(crate) unsafe fn wipe(block: *mut u8, units: usize, room: usize, word: u64) {
    let last = block.wrapping_add(room).cast::<u64>();
    let [sixty_four, hundreds, more] = UNITS;
    if units > more {
        // SAFETY: the caller's promise.
        unsafe { last.write(word) };
        // Now, so that this call ends the function.
        // SAFETY: the caller's promise.
        unsafe { block.write_bytes(0, room) };
        return;
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

/// A size of at most four quarters, and, but for the smallest, of more than two.
#[inline(always)]
unsafe fn quarters<const QUARTER: usize>(block: *mut u8, size: usize) {
    for place in [0, (size >> 2) & !15, (size >> 1) & !15, size - QUARTER] {
        // SAFETY: inside the block (the caller's promise).
        unsafe { block.wrapping_add(place).write_bytes(0, QUARTER) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::canary::ZEROED;
    use super::*;

    #[test]
    fn every_class_is_zeroed_to_its_last_word_and_no_further() {
        for class in SizeClass::all().filter(|class| (16..=ZEROED).contains(&class.size())) {
            let (size, room) = (class.size(), class.size() - BYTES);
            let mut memory = vec![0xff_u8; ZEROED + 32];
            // SAFETY: 16 bytes of the vector follow the block.
            unsafe { wipe(memory.as_mut_ptr().wrapping_add(16), units(size), room, 0x77 << 56) };
            let (before, rest) = memory.split_at(16);
            let (block, after) = rest.split_at(size);
            assert!(before.iter().chain(after).all(|byte| *byte == 0xff), "{size}");
            assert!(block[..size - 1].iter().all(|byte| *byte == 0), "{size}");
            assert_eq!(block[size - 1], 0x77);
        }
    }
}
