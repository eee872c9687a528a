//! Two functions of one call each, and the mark between the windows.

use std::alloc::{Layout, alloc, dealloc};

const LAYOUT: Layout = Layout::new::<[u64; 4]>();

/// A block made by [`allocate`], still allocated.
pub(crate) struct Block(*mut u8);

#[unsafe(export_name = "lumalloc_golden_alloc")]
#[inline(never)]
extern "C" fn golden_alloc() -> *mut u8 {
    // SAFETY: the size of the layout is not zero.
    unsafe { alloc(LAYOUT) }
}

#[unsafe(export_name = "lumalloc_golden_dealloc")]
#[inline(never)]
unsafe extern "C" fn golden_dealloc(block: *mut u8) {
    // SAFETY: the caller's block came from `golden_alloc`, so it has this layout.
    unsafe { dealloc(block, LAYOUT) }
}

pub(crate) fn allocate() -> Block {
    let block = golden_alloc();
    assert!(!block.is_null(), "out of memory");
    Block(block)
}

pub(crate) fn deallocate(block: Block) {
    // SAFETY: a `Block` is made by `allocate` alone and given up here.
    unsafe { golden_dealloc(block.0) }
}

#[unsafe(export_name = "lumalloc_golden_window")]
#[inline(never)]
pub(crate) extern "C" fn window() {
    std::hint::black_box(());
}
