//! Blocks of which one byte per page is written and checked.

use lumalloc::PAGE;

/// Writes one byte of each page from `from` to `to`: the low byte of the page's number.
pub(crate) fn touch(block: *mut u8, from: usize, to: usize) {
    for at in (from..to).step_by(PAGE) {
        // SAFETY: inside a live block.
        unsafe { block.wrapping_add(at).write((at / PAGE) as u8) };
    }
}

/// Panics unless the block is as [`touch`] left it.
#[track_caller]
pub(crate) fn assert_touched(block: *mut u8, size: usize) {
    for at in (0..size).step_by(PAGE) {
        // SAFETY: inside a live block.
        assert_eq!(unsafe { block.wrapping_add(at).read() }, (at / PAGE) as u8);
    }
}
