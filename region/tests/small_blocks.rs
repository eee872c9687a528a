//! Small blocks of the best-fit method: kept for the next request of their size, and joined when
//! the region needs memory.

mod common;

use common::{Growth, Tiny, free, resize};
use lumalloc_region::{Best, Misuse, Region, Resize};
use std::ptr::NonNull;

/// Fills the first segment with blocks of 56 bytes, which are kept when they are freed.
fn filled_with_small() -> (Region<Best, Tiny>, Vec<NonNull<u8>>) {
    let mut tiny = Tiny::new(64, 0, Growth::Refused);
    tiny.left = 1088;
    let region = Region::open(tiny).unwrap();
    let blocks = (0..).map_while(|_| region.alloc(56)).collect();
    (region, blocks)
}

#[test]
fn a_small_block_is_the_next_one_of_its_size() {
    let (region, blocks) = filled_with_small();
    let before = region.stat().free;
    for &block in &blocks[1..4] {
        free(&region, block).unwrap();
        assert_eq!(free(&region, block), Err(Misuse::FreedBefore));
        assert_eq!((region.size(block), region.offset(block)), (None, None));
    }
    assert_eq!(region.stat().free, before + 3);
    assert_eq!(region.alloc(50), Some(blocks[3]));
    assert_eq!(region.alloc(56), Some(blocks[2]));
    assert_eq!(region.alloc(30), Some(blocks[1]));
    assert_eq!(region.stat().free, before);
}

#[test]
fn small_blocks_are_joined_before_the_region_grows() {
    let (mut region, blocks) = filled_with_small();
    for &block in &blocks[1..4] {
        free(&region, block).unwrap();
    }
    let refusals = region.discipline().refusals;
    assert_eq!(region.alloc(56 + 64 + 64), Some(blocks[1]));
    assert_eq!(region.discipline().refusals, refusals);
}

#[test]
fn a_block_grows_into_small_blocks_behind_it() {
    let (region, blocks) = filled_with_small();
    for &block in &blocks[2..4] {
        free(&region, block).unwrap();
    }
    assert_eq!(resize(&region, blocks[1], 56 + 64 + 64, Resize::STAY), Ok(blocks[1]));
    assert_eq!(resize(&region, blocks[1], 56 + 64 + 65, Resize::STAY), Err(Misuse::NoRoom));
}

#[test]
fn few_small_blocks_of_a_size_are_kept_apart() {
    let region: Region<Best, Tiny> = Region::open(Tiny::new(64, 0, Growth::Refused)).unwrap();
    let blocks: Vec<_> = (0..200).map(|_| region.alloc(56).unwrap()).collect();
    for &block in &blocks {
        free(&region, block).unwrap();
    }
    let stat = region.stat();
    assert!(stat.free <= 15 + stat.segments, "{stat:?}");
    assert_eq!(stat.busy, 0);
}
