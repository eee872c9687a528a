//! The size classes that the namespace lists are those of real blocks.
#![allow(unsafe_code)]

mod door;

use door::{alone, call};
use lumalloc::raw::{self, Flags};

fn read<T: Default>(name: &str) -> T {
    let mut value = T::default();
    call::<T, u8>(name, Some(&mut value), None).map(|()| value).expect(name)
}

/// `experimental.utilization.batch_query` of one block: the free blocks and all blocks in its slab,
/// and the bytes of the slab or of the large block.
fn around(block: *mut u8) -> [usize; 3] {
    let mut numbers = [0; 3];
    let key = "experimental.utilization.batch_query";
    call(key, Some(&mut numbers), Some(&block)).expect("a block");
    let mut more = [0usize; 6];
    call("experimental.utilization.query", Some(&mut more), Some(&block)).expect("a block");
    assert_eq!(numbers, [more[1], more[2], more[3]]);
    assert_eq!(more[5] > 0, numbers[1] > 1, "a large block has no bin: {more:?}");
    numbers
}

/// Calls `see` with a block of this size, which must be a size class.
fn with_block(size: usize, see: impl Fn(*mut u8)) {
    let flags = Flags::NONE.uncached();
    let block = raw::allocate(size, flags);
    // SAFETY: the block is live.
    assert_eq!(unsafe { raw::usable_size(block) }, size, "a class of its own");
    see(block);
    // SAFETY: the block is freed once.
    unsafe { raw::deallocate(block, flags) };
}

#[test]
fn bins_are_what_lies_in_slabs_and_large_classes_are_runs() {
    let _alone = alone();
    let (nbins, nlextents): (u32, u32) = (read("arenas.nbins"), read("arenas.nlextents"));
    let mut sizes = Vec::new();
    for bin in 0..nbins {
        let size: usize = read(&format!("arenas.bin.{bin}.size"));
        let nregs: u32 = read(&format!("arenas.bin.{bin}.nregs"));
        let slab: usize = read(&format!("arenas.bin.{bin}.slab_size"));
        with_block(size, |block| assert_eq!(around(block)[1..], [nregs as usize, slab], "{size}"));
        sizes.push(size);
    }
    for lextent in 0..nlextents {
        let size: usize = read(&format!("arenas.lextent.{lextent}.size"));
        if size <= 64 << 20 {
            with_block(size, |block| assert_eq!(around(block), [0, 1, size]));
        }
        sizes.push(size);
    }
    // No class is missing between two of the list.
    for pair in sizes.windows(2) {
        assert_eq!(raw::good_size(pair[0] + 1, 1), pair[1]);
    }
    assert_eq!(raw::good_size(sizes[sizes.len() - 1] + 1, 1), 0);
}
