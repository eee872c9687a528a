//! The hardened tier and large blocks of a correct program: their sizes, what they gain, and the
//! pages that their canaries take.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::PAGE;
use lumalloc::raw::{self, Flags};

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("pages") => pages(),
        Some("gained") => gained(),
        Some("sizes") => sizes(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// The bytes of a block that does not fill its class, of 229,376 bytes.
const SIZE: usize = 200_000;

fn allocate(size: usize, flags: Flags) -> *mut u8 {
    let block = raw::allocate(size, flags);
    assert!(!block.is_null());
    block
}

fn free(block: *mut u8) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block) };
}

/// Returns how many pages of a block have memory.
fn resident(block: *mut u8, bytes: usize) -> usize {
    let mut pages = vec![0_u8; bytes / PAGE];
    // SAFETY: a mapping of this length, and a byte for each page.
    assert_eq!(unsafe { libc::mincore(block.cast(), bytes, pages.as_mut_ptr()) }, 0);
    pages.iter().filter(|page| **page & 1 != 0).count()
}

/// A canary takes no page beside those of the requested bytes. Whole pages have none: the block
/// ends with them.
fn pages() {
    for size in [SIZE, 34_000, 45_000, 10 * PAGE - 1, 10 * PAGE - 31, 9 * PAGE, 50 * PAGE] {
        let blocks: Vec<*mut u8> = (0..20).map(|_| allocate(size, Flags::NONE)).collect();
        for block in &blocks {
            // SAFETY: a live block, this long.
            unsafe { block.write_bytes(1, size) };
            let bytes = raw::block_size(*block).expect("a block");
            assert_eq!(resident(*block, bytes), size.div_ceil(PAGE), "{size}");
            assert_eq!(size.is_multiple_of(PAGE), size == bytes, "{size}");
        }
        blocks.into_iter().for_each(free);
    }
}

#[test]
fn a_canary_takes_no_page() {
    // With junk or zeroes all of a block is written.
    play_well("pages", "hardened:true,thp:never,dirty_decay_ms:0");
}

/// What a block gains by a change of its size reads zero if that is asked for, also where a canary
/// was.
fn gained() {
    for (from, to) in [
        (SIZE, SIZE + 1),
        (SIZE, SIZE + 20_000),
        (SIZE, 400_000),
        (SIZE, 4 << 20),
        (1 << 20, (1 << 20) + 7),
        ((16 << 20) + 1, (48 << 20) + 1),
        (100, SIZE),
        (SIZE, SIZE / 2),
    ] {
        let zeroed = Flags::NONE.zeroed();
        let block = allocate(from, Flags::NONE);
        // SAFETY: a live block, this long.
        unsafe { block.write_bytes(1, from) };
        // SAFETY: a live block.
        let new = unsafe { raw::reallocate(block, to, zeroed) };
        assert!(!new.is_null());
        // SAFETY: a live block, this long.
        let all = unsafe { std::slice::from_raw_parts(new, to) };
        let (old, more) = all.split_at(from.min(to));
        assert!(old.iter().all(|byte| *byte == 1), "{from} to {to}");
        assert!(more.iter().all(|byte| *byte == 0), "{from} to {to}");
        // SAFETY: a live block.
        let usable = unsafe { raw::resize_in_place(new, to + 50, 0, zeroed) };
        assert!(usable == to || usable == to + 50, "{usable}");
        // SAFETY: a live block, this long.
        let end = unsafe { std::slice::from_raw_parts(new.wrapping_add(to), usable - to) };
        assert!(end.iter().all(|byte| *byte == 0), "{from} to {to}");
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free_sized(new, usable) };
    }
}

#[test]
fn what_a_block_gains_reads_zero() {
    for conf in ["", ",junk:true", ",tcache:false", ",retain:false", ",zero:true"] {
        play_well("gained", &format!("hardened:true{conf}"));
    }
}

/// All functions that tell a size agree on the requested one.
fn sizes() {
    for size in [32_761, 32_768, 32_769, 36_864, 40_960, SIZE, 50 * PAGE, 1 << 20, 3 << 20] {
        for size in [size, size + 1, size + PAGE - 1] {
            let block = allocate(size, Flags::NONE);
            // SAFETY: a live block.
            let resize =
                |size, extra| unsafe { raw::resize_in_place(block, size, extra, Flags::NONE) };
            // SAFETY: a live block.
            let usable = || unsafe { raw::usable_size(block) };
            assert_eq!([usable(), raw::good_size(size, 1)], [size; 2]);
            let longer = resize(size, 1000);
            assert!([size, size + 1000].contains(&longer) && longer == usable(), "{longer}");
            assert_eq!([resize(size, 0), usable()], [size; 2], "as before");
            if size > 34_000 {
                assert_eq!([resize(size - 100, 10), usable()], [size - 90; 2], "shorter");
                assert_eq!([resize(size, 0), usable()], [size; 2], "longer again");
            }
            let longer = resize(size + 1, 1 << 30);
            assert!(longer >= size && longer == usable());
            // SAFETY: a live block, this long.
            unsafe { block.write_bytes(7, longer) };
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::deallocate_sized(block, longer, Flags::NONE) };
        }
    }
    assert_eq!(raw::good_size(usize::MAX, 1), 0);
}

#[test]
fn sizes_are_the_requested_ones() {
    play_well("sizes", "hardened:true");
    play_well("sizes", "hardened:true,tcache:false");
}
