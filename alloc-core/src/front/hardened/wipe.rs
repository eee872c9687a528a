//! Zeroes over a freed block of up to 1 KiB.
//!
//! The short sizes of a doubling are written by the same straight line of stores: four chunks of a
//! quarter of the largest, which overlap where the block is shorter. So the processor has one
//! branch to guess, not one for each chunk.

use super::canary::ZEROED;

/// A run of zeroes that one copy writes.
type Chunk<const BYTES: usize> = [u8; BYTES];

/// Zeroes a block of a class, canary and all.
///
/// # Safety
/// `size` bytes at `block` are the caller's; it is a class's from 16 to [`ZEROED`].
#[inline(always)]
pub(crate) unsafe fn zero(block: *mut u8, size: usize) {
    debug_assert!(size.is_multiple_of(16) && (16..=ZEROED).contains(&size));
    if size <= 64 {
        // SAFETY: the caller's promise.
        unsafe { quarters::<16>(block, size) };
    } else if size <= 128 {
        // SAFETY: the caller's promise.
        unsafe { quarters::<32>(block, size) };
    } else if size <= 256 {
        // SAFETY: the caller's promise.
        unsafe { quarters::<64>(block, size) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { chunks::<128>(block, size) };
    }
}

/// A size of at most four quarters, and, but for the smallest, of more than two.
#[inline(always)]
unsafe fn quarters<const QUARTER: usize>(block: *mut u8, size: usize) {
    let places = [0, (size >> 2) & !15, (size >> 1) & !15, size - QUARTER];
    for place in places {
        // SAFETY: inside the block (the caller's promise).
        unsafe { block.wrapping_add(place).cast::<Chunk<QUARTER>>().write([0; QUARTER]) };
    }
}

/// Sizes above a chunk, chunk by chunk; the last one ends with the block.
#[inline(always)]
unsafe fn chunks<const BYTES: usize>(block: *mut u8, size: usize) {
    let last = block.wrapping_add(size - BYTES);
    let mut place = block;
    while place < last {
        // SAFETY: it begins before the block's last chunk.
        unsafe { place.cast::<Chunk<BYTES>>().write([0; BYTES]) };
        place = place.wrapping_add(BYTES);
    }
    // SAFETY: the block's last bytes.
    unsafe { last.cast::<Chunk<BYTES>>().write([0; BYTES]) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::size_class::SizeClass;

    #[test]
    fn every_class_is_zeroed_to_its_last_byte_and_no_further() {
        for class in SizeClass::all().filter(|class| (16..=ZEROED).contains(&class.size())) {
            let mut memory = vec![0xff_u8; ZEROED + 32];
            // SAFETY: 16 bytes of the vector follow the block.
            unsafe { zero(memory.as_mut_ptr().wrapping_add(16), class.size()) };
            let zeroes = memory.iter().filter(|byte| **byte == 0).count();
            assert_eq!(zeroes, class.size());
            assert!(memory[16..16 + class.size()].iter().all(|byte| *byte == 0));
        }
    }
}
