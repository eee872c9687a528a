//! Addresses inside blocks, where headers of other blocks may have been, and links between them.
#![allow(unsafe_code)]

mod common;

use common::{Growth, Tiny, free, resize};
use lumalloc_region::{Best, Debug, Method, Profile, Region, Resize};
use std::ptr::NonNull;

/// Blocks of many sizes, of which every other one lies where several lay before.
fn used_again<M: Method>(region: &Region<M, Tiny>) -> Vec<NonNull<u8>> {
    let size = |index: usize| 100 + index * 7919 % 900;
    let mut blocks: Vec<_> = (0..600).map(|index| region.alloc(size(index)).unwrap()).collect();
    for _ in 0..3 {
        for &block in blocks.iter().step_by(2) {
            free(region, block).unwrap();
        }
        for (index, block) in blocks.iter_mut().enumerate().step_by(2) {
            *block = region.alloc(size(index)).unwrap();
        }
    }
    blocks
}

fn no_address_inside_a_block_is_one<M: Method>() {
    let region = Region::<M, Tiny>::open(Tiny::new(64, 0, Growth::Refused)).unwrap();
    let blocks = used_again(&region);
    let before = region.stat();
    for &block in &blocks {
        // What the program has not written yet holds what lay there before.
        for behind in (16..region.size(block).unwrap()).step_by(16) {
            // SAFETY: the address lies inside the block.
            let inside = unsafe { block.add(behind) };
            assert_eq!(region.size(inside), None, "{behind}");
            assert!(free(&region, inside).is_err(), "{behind}");
            assert!(resize(&region, inside, 10, Resize::MOVE).is_err(), "{behind}");
        }
    }
    assert_eq!(region.stat(), before);
    assert!(blocks.iter().all(|block| free(&region, *block).is_ok()));
}

#[test]
fn no_address_inside_a_block_of_a_method_is_one() {
    no_address_inside_a_block_is_one::<Best>();
    no_address_inside_a_block_is_one::<Debug>();
    no_address_inside_a_block_is_one::<Profile>();
}
