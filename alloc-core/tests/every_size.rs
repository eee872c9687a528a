//! Every size at a class boundary and all small ones, and every alignment.
#![allow(unsafe_code)]

mod common;

use common::block::{Block, assert_zero, errno, keeps_errno, set_errno};
use common::{alone, assert_empty};
use lumalloc::{MAX_SIZE, PAGE, raw};

/// The sizes of all classes up to 1 GiB: 8, multiples of 16 to 128, then four per doubling.
fn classes() -> Vec<usize> {
    let small = std::iter::once(8).chain((1..=8).map(|n| n * 16));
    let groups = (7..30).flat_map(|lg| (1..=4).map(move |step| (1 << lg) + step * (1 << (lg - 2))));
    small.chain(groups).collect()
}

/// The usable size by the table of jemalloc(3), with whole pages above 32 KiB.
fn expected(size: usize) -> usize {
    let class = *classes().iter().find(|class| **class >= size).expect("a class");
    if class > 32 << 10 { class.next_multiple_of(PAGE) } else { class }
}

/// Allocates a block, writes and checks all of it, and frees it by look-up or by size (`sized`).
fn one(size: usize, id: u64, sized: bool) {
    let ptr = keeps_errno(|| raw::malloc(size));
    assert!(!ptr.is_null(), "no memory for {size}");
    // SAFETY: a live block.
    let usable = unsafe { raw::usable_size(ptr) };
    assert_eq!(usable, raw::good_size(size, 1), "{size}");
    assert_eq!(usable, expected(size), "{size}");
    assert!((ptr as usize).is_multiple_of(if usable >= 16 { 16 } else { 8 }), "{size}");
    assert!(raw::is_ours(ptr));
    let block = Block::filled(ptr, usable, id).expect("not null");
    block.check(usable);
    keeps_errno(|| {
        if sized {
            // SAFETY: a live block of this size.
            unsafe { raw::free_sized(ptr, size) };
        } else {
            // SAFETY: a live block.
            unsafe { raw::free(ptr) };
        }
    });
}

#[test]
fn every_size_to_40000() {
    let _alone = alone();
    for size in 1..=40_000 {
        one(size, size as u64, false);
        one(size, size as u64 + 1, true);
    }
    assert_empty();
}

#[test]
fn every_class_boundary_to_a_gibibyte() {
    let _alone = alone();
    for class in classes() {
        for size in class - 1..=class + 1 {
            if size <= 1 << 30 {
                one(size, size as u64, size % 2 == 0);
            }
        }
    }
    assert_empty();
}

/// Blocks of one size that are alive together do not overlap and keep their contents.
#[test]
fn sanit_many_of_each_class_live_together() {
    let _alone = alone();
    for class in classes().into_iter().filter(|class| *class <= 80 << 10) {
        let count = ((1 << 20) / class).clamp(8, 3000);
        let blocks: Vec<Block> = (0..count as u64)
            .map(|id| Block::filled(raw::malloc(class), class, id).expect("memory"))
            .collect();
        for block in &blocks {
            block.check(class);
        }
        let mut ends: Vec<_> = blocks.iter().map(|block| block.address).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0] + class <= pair[1]), "{class} overlaps");
        for (index, block) in blocks.iter().enumerate() {
            if index % 2 == 0 {
                // SAFETY: a live block, freed once.
                unsafe { raw::free(block.ptr()) };
            } else {
                // SAFETY: a live block of this size, freed once.
                unsafe { raw::free_sized(block.ptr(), class) };
            }
        }
    }
    assert_empty();
}

#[test]
fn every_alignment_to_a_gibibyte() {
    let _alone = alone();
    for lg in 0..=30 {
        let align = 1usize << lg;
        for size in [0, 1, 7, 8, 100, align - 1, align, align + 1, 3 * align / 2, 40_000] {
            aligned(size, align, false);
            if size <= 64 << 20 {
                aligned(size, align, true);
            }
        }
    }
    assert_empty();
}

fn aligned(size: usize, align: usize, zero: bool) {
    let ptr = keeps_errno(|| {
        if zero {
            raw::malloc_aligned_zeroed(size, align)
        } else {
            raw::malloc_aligned(size, align)
        }
    });
    assert!(!ptr.is_null(), "no memory for {size} at {align}");
    assert!((ptr as usize).is_multiple_of(align), "{size} at {align}: {ptr:p}");
    // SAFETY: a live block.
    let usable = unsafe { raw::usable_size(ptr) };
    assert!(usable >= size);
    assert_eq!(usable, raw::good_size(size, align), "{size} at {align}");
    if zero {
        // SAFETY: a live block.
        unsafe { assert_zero(ptr, size) };
    }
    let block = Block::filled(ptr, usable, (size + align) as u64).expect("not null");
    block.check(usable);
    if zero {
        // SAFETY: a live block.
        unsafe { raw::free(ptr) };
    } else {
        // SAFETY: a live block with this size and alignment.
        unsafe { raw::free_sized_aligned(ptr, size, align) };
    }
}

#[test]
fn what_cannot_be_is_null_and_enomem() {
    let _alone = alone();
    let sizes = [1 << 48, 1 << 62, MAX_SIZE - 1, MAX_SIZE, MAX_SIZE + 1, isize::MAX as usize];
    for size in sizes.into_iter().chain([isize::MAX as usize + 1, usize::MAX - 4096, usize::MAX]) {
        for align in [1, 16, 4096, 1 << 20, 1 << 40, 1 << 62, 1 << 63] {
            for zero in [false, true] {
                set_errno(0);
                let ptr = match (align, zero) {
                    (1, false) => raw::malloc(size),
                    (1, true) => raw::malloc_zeroed(size),
                    (_, false) => raw::malloc_aligned(size, align),
                    (_, true) => raw::malloc_aligned_zeroed(size, align),
                };
                assert!(ptr.is_null(), "{size} at {align}");
                assert_eq!(errno(), libc::ENOMEM, "{size} at {align}");
            }
        }
    }
    for align in [1 << 47, 1 << 48, 1 << 62, 1 << 63] {
        set_errno(0);
        assert!(raw::malloc_aligned(1, align).is_null(), "{align}");
        assert_eq!(errno(), libc::ENOMEM);
    }
    for size in [MAX_SIZE + 1, usize::MAX] {
        assert_eq!(raw::good_size(size, 1), 0);
    }
    assert_empty();
}
