//! The pair that `benches/golden/check` counts: `alloc` and `dealloc` of one constant layout,
//! inlined under LTO into two functions whose names survive.
//!
//! Between two calls of `lumalloc_golden_window` lie exactly `PAIRS` of each; callgrind starts a
//! new dump there. Most windows see the fast path alone.

#[allow(unsafe_code)]
mod fast_path;

use fast_path::{allocate, deallocate};
use std::hint::black_box;

#[global_allocator]
static GLOBAL: lumalloc::Lumalloc = lumalloc::Lumalloc;

const WARM_UP: usize = 1000;
const WINDOWS: usize = 24;
const PAIRS: usize = 64;

fn pairs(count: usize) {
    for _ in 0..count {
        deallocate(black_box(allocate()));
    }
}

fn main() {
    pairs(WARM_UP);
    for _ in 0..WINDOWS {
        fast_path::window();
        pairs(PAIRS);
    }
    fast_path::window();
}
