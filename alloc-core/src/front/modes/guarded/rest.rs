//! The rest of a sample's page: bytes that the program may not write, and that are no guard.
//!
//! ```text
//!   guard │ rest │ block │ rest │ guard        one of the two is short, or empty
//! ```
//! The rest is filled with a pattern when the sample is made, and compared when the sample is
//! freed. So an overflow that does not reach the guard is found at the free. The pattern is random
//! for each sample. All its bytes are odd, so that the zero byte at a string's end always differs.

use core::ops::Range;

/// Makes all bytes of a pattern odd.
const ODD: u64 = 0x0101_0101_0101_0101;

/// Makes a pattern from random bits.
pub(super) fn pattern(bits: u64) -> u64 {
    bits | ODD
}

/// Returns the byte of the pattern at an address.
fn byte_at(pattern: u64, address: usize) -> u8 {
    pattern.to_le().rotate_right(8 * (address as u32 % 8)) as u8
}

fn pointer(address: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(address)
}

/// Returns whether an aligned word at an address ends at or before `end`.
fn is_word(address: usize, end: usize) -> bool {
    address.is_multiple_of(8) && end - address >= 8
}

/// Fills a range of addresses.
///
/// # Safety
/// The range must be mapped, and the caller must be allowed to write it.
pub(super) unsafe fn fill(range: Range<usize>, pattern: u64) {
    let mut at = range.start;
    while at < range.end {
        if is_word(at, range.end) {
            // SAFETY: an aligned word in the range.
            unsafe { pointer(at).cast::<u64>().write(pattern) };
            at += 8;
        } else {
            // SAFETY: a byte in the range.
            unsafe { pointer(at).write(byte_at(pattern, at)) };
            at += 1;
        }
    }
}

/// Returns the first address in a range whose byte differs from what [`fill`] wrote.
///
/// # Safety
/// The range must be mapped, and no thread may write to it.
pub(super) unsafe fn damaged(range: Range<usize>, pattern: u64) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        // SAFETY: an aligned word in the range.
        if is_word(at, range.end) && unsafe { pointer(at).cast::<u64>().read() } == pattern {
            at += 8;
            continue;
        }
        // SAFETY: a byte in the range.
        if unsafe { pointer(at).read() } != byte_at(pattern, at) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_byte_is_found_and_no_other() {
        let mut page = [0u64; 8];
        let base = page.as_mut_ptr().expose_provenance();
        for bits in [0, u64::MAX, 0x0123_4567_89ab_cdef] {
            let pattern = pattern(bits);
            for (from, to) in [(0, 64), (3, 61), (8, 56), (5, 6), (9, 9), (1, 15)] {
                let range = base + from..base + to;
                // SAFETY: inside the array.
                unsafe { fill(range.clone(), pattern) };
                // SAFETY: as above.
                assert_eq!(unsafe { damaged(range.clone(), pattern) }, None);
                for at in range.clone() {
                    let byte = byte_at(pattern, at);
                    assert_eq!(byte & 1, 1);
                    // SAFETY: as above.
                    unsafe { pointer(at).write(0) };
                    // SAFETY: as above.
                    assert_eq!(unsafe { damaged(range.clone(), pattern) }, Some(at));
                    // SAFETY: as above.
                    unsafe { pointer(at).write(byte) };
                }
            }
        }
    }
}
