//! What collections do with a region as their allocator.
#![allow(unsafe_code)]

mod common;

use allocator_api2::alloc::{Allocator, Layout};
use common::{Growth, Tiny};
use lumalloc_region::{Best, Last, Method, Pool, Region, System};
use std::ptr::NonNull;

fn bytes(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

fn fill(block: NonNull<[u8]>, from: usize) {
    for at in from..block.len() {
        // SAFETY: the byte lies in the block.
        let byte = unsafe { block.cast::<u8>().add(at) };
        // SAFETY: the block is the test's.
        unsafe { byte.write(at as u8) };
    }
}

fn is_filled(block: NonNull<[u8]>, size: usize) -> bool {
    (0..size).all(|at| {
        // SAFETY: the byte lies in the block.
        let byte = unsafe { block.cast::<u8>().add(at) };
        // SAFETY: the byte was written.
        unsafe { byte.read() == at as u8 }
    })
}

/// Grows and shrinks blocks as vectors do, with neighbours, and keeps their contents.
fn grow_and_shrink<M: Method>() {
    let region = Region::<M, _>::open(Tiny::new(64, 7, Growth::InPlace)).unwrap();
    let region = &region;
    for align in [1, 8, 16, 64, 256] {
        let (mut size, mut block) = (0, region.allocate(bytes(0, align)).unwrap());
        for new_size in [4, 8, 64, 500, 501, 4000, 100, 7, 0, 30] {
            region.allocate(bytes(10, 1)).unwrap();
            let (old, new) = (bytes(size, align), bytes(new_size, align));
            let place = block.cast();
            block = if new_size >= size {
                // SAFETY: the block has this layout.
                unsafe { region.grow(place, old, new) }.unwrap()
            } else {
                // SAFETY: the block has this layout.
                unsafe { region.shrink(place, old, new) }.unwrap()
            };
            assert_eq!((block.len(), block.cast::<u8>().as_ptr() as usize % align), (new_size, 0));
            assert!(is_filled(block, size.min(new_size)));
            fill(block, size.min(new_size));
            size = new_size;
        }
        // SAFETY: the block has this layout.
        unsafe { region.deallocate(block.cast(), bytes(size, align)) };
    }
}

#[test]
fn blocks_grow_and_shrink_with_their_contents() {
    grow_and_shrink::<Best>();
    grow_and_shrink::<Last>();
}

#[test]
fn a_region_gets_back_what_collections_drop() {
    let region = Region::<Best, _>::open(System).unwrap();
    let layout = |number: usize| bytes(number % 700 + 1, 1 << (number % 9));
    let blocks: Vec<_> =
        (0..1000).map(|number| (&region).allocate(layout(number)).unwrap()).collect();
    assert_eq!(region.stat().busy, 1000);
    for (number, block) in blocks.into_iter().enumerate() {
        // SAFETY: the block has this layout.
        unsafe { (&region).deallocate(block.cast(), layout(number)) };
    }
    assert_eq!(region.stat().busy, 0);
}

#[test]
fn the_last_block_grows_where_it_lies() {
    let region = Region::<Last, _>::open(System).unwrap();
    let block = (&region).allocate(bytes(8, 8)).unwrap().cast();
    // SAFETY: the block has this layout.
    let longer = unsafe { (&region).grow(block, bytes(8, 8), bytes(1_000_000, 8)) }.unwrap();
    assert_eq!((longer.cast(), region.stat().busy), (block, 1));
}

#[test]
fn a_pool_has_blocks_of_one_layout() {
    let region = Region::<Pool, _>::open(System).unwrap();
    let block = (&region).allocate(bytes(40, 8)).unwrap();
    assert!((&region).allocate(bytes(48, 8)).is_err());
    // SAFETY: the block has this layout.
    assert!(unsafe { (&region).grow(block.cast(), bytes(40, 8), bytes(48, 8)) }.is_err());
    assert_eq!(region.stat().busy, 1);
}
