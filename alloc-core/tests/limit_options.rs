//! The bounds that options set from the start, in a child.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::control::limits;
use lumalloc::raw;

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    if scenario().is_none() {
        return;
    }
    assert_eq!((limits::soft(), limits::hard()), (16 << 20, 64 << 20));
    assert!(raw::malloc(96 << 20).is_null());
    let block = raw::malloc(32 << 20);
    assert!(!block.is_null());
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block) };
}

#[test]
fn bounds_hold_from_the_start() {
    play_well("bounded", "limit_soft:16777216,limit_hard:67108864");
}
