//! Canaries of large blocks: up to 32 bytes behind the requested ones belong to the allocator.
//!
//! ```text
//!   │ requested bytes …         │ canary │ not used …        │
//!   │ page     │ page     │ page         │ page     │ page … │
//! ```
//! They are written when a block is handed out or resized, and compared when it is freed or
//! resized. The record of the run tells how many bytes were requested, so that no page of the
//! block's end has to be touched, and no write to the block can change it. The canary ends with the
//! page in which it begins, which is that of the last requested byte. A request of whole pages gets
//! a run of these, and has no canary: the page behind it is one without access in most cases. Only
//! if a resized block takes whole pages, and has more, the canary begins a page.
//!
//! The bytes depend on a secret and on the address, so that a copy of a block with its canary does
//! not match that of another block. They are odd, because a string's end is a zero.

use super::canary::seal_of;
use crate::back::map::extent::Extent;
use crate::ground::fatal::{self, Place};
use crate::ground::units::PAGE;

/// Bytes of a canary at most.
const LONGEST: usize = 32;

/// A word with the lowest bit of each byte.
const ODD: u64 = u64::MAX / 0xff;

/// The bytes of one canary, or the first ones of them.
type Canary = [u8; LONGEST];

/// Returns the bytes of the canary of a block at an address.
fn canary_at(address: usize) -> Canary {
    // The upper half depends on all bits, and so does the lower one after the shift.
    let mixed = seal_of(address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (mixed ^ (mixed >> 32)) | ODD;
    core::array::from_fn(|n| (word >> ((n % 8) * 8)) as u8)
}

/// Returns how many bytes the canary of a block of `bytes` bytes has, of which `size` bytes were
/// requested.
fn length(bytes: usize, size: usize) -> usize {
    LONGEST.min(bytes.saturating_sub(size)).min(PAGE - size % PAGE)
}

/// Notes that a large block serves a request of `size` bytes, and writes its canary.
///
/// # Safety
/// The caller must own the block, which is in use, and `size` must be at most its length.
pub(crate) unsafe fn seal(extent: &Extent, size: usize) {
    let size = size.max(1);
    extent.set_requested(Some(size));
    let canary = canary_at(extent.base());
    let place = extent.base_ptr().wrapping_add(size);
    // SAFETY: bytes of the block behind the requested ones (the caller's promise).
    unsafe { place.copy_from_nonoverlapping(canary.as_ptr(), length(extent.bytes(), size)) };
}

/// Ends the process if the canary of a large block was overwritten.
///
/// # Safety
/// The caller must own the block, which is in use.
pub(crate) unsafe fn check(extent: &Extent) {
    // SAFETY: the caller's promise.
    if !unsafe { is_intact(extent) } {
        report(extent);
    }
}

/// As [`check`], for a block that is freed. It has no canary any more.
///
/// # Safety
/// As [`check`].
pub(crate) unsafe fn unseal(extent: &Extent) {
    // SAFETY: the caller's promise.
    unsafe { check(extent) };
    extent.set_requested(None);
}

/// Returns whether the canary of a large block reads as it was written.
///
/// # Safety
/// The block must be in use, and stay.
pub(super) unsafe fn is_intact(extent: &Extent) -> bool {
    // A block that was handed out before the options were known has none.
    let Some(size) = extent.requested() else { return true };
    let place = extent.base_ptr().wrapping_add(size);
    // SAFETY: bytes of the block behind the requested ones.
    let found = unsafe { core::slice::from_raw_parts(place, length(extent.bytes(), size)) };
    canary_at(extent.base()).starts_with(found)
}

/// Ends the process because the canary of a large block was overwritten.
#[cold]
#[inline(never)]
pub(super) fn report(extent: &Extent) -> ! {
    let place = Place { size: extent.bytes(), arena: extent.arena(), owner: None };
    fatal::overflow(extent.base(), extent.requested().unwrap_or(0), place)
}

#[cfg(test)]
mod tests {
    use super::super::canary::prepare;
    use super::*;
    use crate::ground::untouchable;
    use std::collections::HashSet;

    /// Calls `f` with a block of `pages` pages, which is filled with `byte`.
    fn with_block(pages: usize, byte: u8, f: impl FnOnce(&Extent, &mut [u8])) {
        let bytes = pages * PAGE;
        let base = untouchable::reserve(bytes).expect("addresses");
        assert!(untouchable::open_page(base, bytes));
        let run = Extent::new(0);
        run.set_range(base, pages);
        // SAFETY: a mapping of this length, which nothing else uses.
        let block = unsafe { core::slice::from_raw_parts_mut(run.base_ptr(), bytes) };
        block.fill(byte);
        f(&run, block);
        untouchable::release(base, bytes);
    }

    fn reads_as_written(run: &Extent) -> bool {
        // SAFETY: a block of this test.
        unsafe { is_intact(run) }
    }

    #[test]
    fn a_canary_ends_with_its_page_or_its_block() {
        for (bytes, size, expected) in [
            (3 * PAGE, 3 * PAGE, 0),
            (3 * PAGE, 3 * PAGE - 1, 1),
            (3 * PAGE, 2 * PAGE - 31, 31),
            (3 * PAGE, 2 * PAGE + 1, LONGEST),
            (3 * PAGE, 2 * PAGE, LONGEST),
            (3 * PAGE, 1, LONGEST),
            (PAGE, 2 * PAGE, 0),
        ] {
            assert_eq!(length(bytes, size), expected, "{size} of {bytes}");
        }
    }

    #[test]
    fn canaries_are_odd_and_differ_by_block() {
        prepare();
        let all: Vec<Canary> = (1..200).map(|page| canary_at(page * PAGE)).collect();
        assert!(all.iter().flatten().all(|byte| byte % 2 == 1));
        for first in [1, 4, LONGEST] {
            let different: HashSet<&[u8]> = all.iter().map(|canary| &canary[..first]).collect();
            let expected = if first == 1 { 60 } else { 190 };
            assert!(different.len() > expected, "{} of {first} bytes", different.len());
        }
    }

    #[test]
    fn a_change_of_a_byte_of_the_canary_is_seen_and_no_other_one() {
        prepare();
        for size in [1, PAGE - 1, PAGE - 7, PAGE, PAGE + 100, 2 * PAGE - 31, 2 * PAGE] {
            with_block(2, 0x41, |run, block| {
                assert!(reads_as_written(run), "no canary yet");
                // SAFETY: a block of this test.
                unsafe { seal(run, size) };
                assert_eq!(run.requested(), Some(size));
                let canary = size..size + length(block.len(), size);
                for at in (0..block.len()).filter(|at| at.abs_diff(size) < 50) {
                    assert!(canary.contains(&at) || block[at] == 0x41, "{at} of {size}");
                    block[at] ^= 1;
                    assert_eq!(reads_as_written(run), !canary.contains(&at), "{at} of {size}");
                    block[at] ^= 1;
                }
                // SAFETY: a block of this test.
                unsafe { unseal(run) };
                assert_eq!(run.requested(), None);
                block.fill(0);
                assert!(reads_as_written(run), "no canary any more");
            });
        }
    }
}
