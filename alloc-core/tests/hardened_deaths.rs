//! The hardened tier: misuse ends the process at the call, with an exact message.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::raw::{self, Flags};
use lumalloc::{Lumalloc, control};
use std::alloc::{GlobalAlloc, Layout};
use std::fmt::Display;

macro_rules! deaths {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                dies(stringify!($name), "hardened:true");
                dies(stringify!($name), "hardened:true,tcache:false");
                dies(stringify!($name), "hardened:true,junk:true");
            }
        )*

        fn play_death(name: &str) {
            match name {
                $(stringify!($name) => deaths::$name(),)*
                _ => panic!("no scenario {name}"),
            }
            panic!("{name} survived");
        }
    };
}

deaths!(
    double_free,
    double_free_by_size,
    double_free_past_the_caches,
    double_free_of_what_went_home,
    double_free_by_another_thread,
    overflow_by_one,
    overflow_by_a_zero_byte,
    overflow_of_a_whole_class,
    overflow_of_an_aligned_block,
    overflow_of_a_resized_block,
    overflow_seen_by_another_thread,
    overflow_seen_past_the_caches,
    overflow_seen_by_realloc,
    overflow_into_the_slack,
    overflow_into_the_slack_by_a_zero_byte,
    overflow_into_the_slack_of_a_long_block,
    overflow_into_the_slack_of_an_aligned_block,
    overflow_into_the_slack_of_a_shortened_block,
    overflow_into_the_slack_seen_by_realloc_in_place,
    overflow_into_the_slack_seen_past_the_caches,
    overflow_into_the_slack_of_a_zeroed_block,
    size_too_small,
    size_too_large,
    size_of_a_large_block,
    size_of_a_small_block_is_large,
    size_by_flags,
    size_with_another_alignment,
    size_of_a_layout,
    size_of_a_layout_in_the_same_class,
    size_by_flags_in_the_same_class,
    size_past_the_caches_in_the_same_class,
    inside_a_block,
    inside_a_long_block,
    at_an_odd_address,
);

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    scenario().iter().for_each(|name| play_death(name));
}

fn pointer(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free(pointer(address)) };
}

fn free_sized(address: usize, size: usize) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free_sized(pointer(address), size) };
}

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn write(address: usize, byte: u8) {
    // SAFETY: mapped memory of the allocator.
    unsafe { pointer(address).write(byte) };
}

/// Changes a byte. A canary is random, so any fixed value may be right by chance. (Inverting all
/// bits would make the mark of a free block.)
fn damage(address: usize) {
    // SAFETY: mapped memory of the allocator.
    let byte = unsafe { pointer(address).read() };
    write(address, byte ^ 0x55);
}

mod deaths {
    use super::*;

    /// No scenario allocates so much that a cache owns a slab.
    fn twice(address: usize, size: usize) {
        tell(&format!("double free of {address:#x} (size {size}, arena 0)"));
    }

    fn overrun(address: usize, usable: usize) {
        overrun_in(address, format!("at most {usable}"), usable + 8);
    }

    fn overrun_in(address: usize, usable: impl Display, size: usize) {
        tell(&format!(
            "buffer overflow of {address:#x}: the canary behind its {usable} bytes was \
             overwritten (size {size}, arena 0)"
        ));
    }

    fn wrong(address: usize, given: usize, size: usize) {
        tell(&format!(
            "sized free of {address:#x} with size {given}, which is not its own (size {size}, \
             arena 0)"
        ));
    }

    pub(super) fn double_free() {
        let (block, _neighbour) = (malloc(100), malloc(100));
        free(block);
        twice(block, 112);
        free(block);
    }

    pub(super) fn double_free_by_size() {
        let (block, _neighbour) = (malloc(5000), malloc(5000));
        free_sized(block, 5000);
        twice(block, 5120);
        free_sized(block, 5000);
    }

    pub(super) fn double_free_past_the_caches() {
        let (block, _neighbour) = (malloc(200), malloc(200));
        free(block);
        twice(block, 224);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate(pointer(block), Flags::NONE.uncached()) };
    }

    pub(super) fn double_free_of_what_went_home() {
        let (block, _neighbour) = (malloc(2000), malloc(2000));
        free(block);
        control::flush_thread_cache();
        twice(block, 2048);
        free(block);
    }

    pub(super) fn double_free_by_another_thread() {
        let (block, _neighbour) = (malloc(500), malloc(500));
        free(block);
        twice(block, 512);
        std::thread::spawn(move || free(block)).join().expect("dead by now");
    }

    pub(super) fn overflow_by_one() {
        let block = malloc(56);
        overrun(block, 56);
        damage(block + 56);
        free(block);
    }

    pub(super) fn overflow_by_a_zero_byte() {
        let block = malloc(24);
        overrun(block, 24);
        write(block + 24, 0);
        free(block);
    }

    pub(super) fn overflow_of_a_whole_class() {
        let block = malloc(1000);
        let usable = 1016;
        overrun(block, usable);
        (0..usable + 8).for_each(|at| damage(block + at));
        free_sized(block, 1000);
    }

    pub(super) fn overflow_of_an_aligned_block() {
        let block = raw::malloc_aligned(100, 64).expose_provenance();
        assert!(block.is_multiple_of(64));
        overrun(block, 120);
        damage(block + 120);
        // SAFETY: the mistake that is tested.
        unsafe { raw::free_sized_aligned(pointer(block), 100, 64) };
    }

    pub(super) fn overflow_of_a_resized_block() {
        let block = malloc(90);
        // SAFETY: a live block, which stays because its class does.
        let same = unsafe { raw::realloc(pointer(block), 104) }.expose_provenance();
        assert_eq!(same, block);
        overrun(block, 104);
        damage(block + 104);
        free(block);
    }

    pub(super) fn overflow_seen_by_another_thread() {
        let block = malloc(40);
        overrun(block, 40);
        damage(block + 47);
        std::thread::spawn(move || free(block)).join().expect("dead by now");
    }

    pub(super) fn overflow_seen_past_the_caches() {
        let block = raw::allocate(700, Flags::NONE.arena(0)).expose_provenance();
        overrun(block, 760);
        damage(block + 760);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate(pointer(block), Flags::NONE.arena(0)) };
    }

    pub(super) fn overflow_seen_by_realloc() {
        let block = malloc(24);
        overrun(block, 24);
        damage(block + 31);
        // SAFETY: the mistake that is tested.
        let _moved = unsafe { raw::realloc(pointer(block), 3000) };
    }

    pub(super) fn overflow_into_the_slack() {
        let block = malloc(100);
        overrun_in(block, 100, 112);
        damage(block + 103);
        free(block);
    }

    pub(super) fn overflow_into_the_slack_by_a_zero_byte() {
        let block = malloc(16);
        overrun_in(block, 16, 32);
        write(block + 16, 0);
        free_sized(block, 16);
    }

    /// The first 32 bytes are looked at.
    pub(super) fn overflow_into_the_slack_of_a_long_block() {
        let block = malloc(4096);
        overrun_in(block, 4096, 5120);
        damage(block + 4096 + 31);
        free(block);
    }

    pub(super) fn overflow_into_the_slack_of_an_aligned_block() {
        let block = raw::malloc_aligned(100, 64).expose_provenance();
        overrun_in(block, 100, 128);
        damage(block + 119);
        // SAFETY: the mistake that is tested.
        unsafe { raw::free_sized_aligned(pointer(block), 100, 64) };
    }

    pub(super) fn overflow_into_the_slack_of_a_shortened_block() {
        let block = malloc(104);
        (0..104).for_each(|at| write(block + at, 7));
        // SAFETY: a live block, which stays because its class does.
        let same = unsafe { raw::realloc(pointer(block), 98) }.expose_provenance();
        assert_eq!(same, block);
        overrun_in(block, 98, 112);
        damage(block + 98);
        free(block);
    }

    pub(super) fn overflow_into_the_slack_seen_by_realloc_in_place() {
        let block = malloc(100);
        overrun_in(block, 100, 112);
        damage(block + 100);
        // SAFETY: the mistake that is tested.
        let _same = unsafe { raw::realloc(pointer(block), 104) };
    }

    pub(super) fn overflow_into_the_slack_seen_past_the_caches() {
        let block = raw::allocate(700, Flags::NONE.arena(0)).expose_provenance();
        overrun_in(block, 700, 768);
        damage(block + 700);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate(pointer(block), Flags::NONE.arena(0)) };
    }

    pub(super) fn overflow_into_the_slack_of_a_zeroed_block() {
        let block = raw::allocate(50, Flags::NONE.arena(0).zeroed()).expose_provenance();
        overrun_in(block, 50, 64);
        write(block + 50, 0);
        free(block);
    }

    pub(super) fn size_too_small() {
        let block = malloc(100);
        wrong(block, 50, 100);
        free_sized(block, 50);
    }

    pub(super) fn size_too_large() {
        let block = malloc(100);
        wrong(block, 105, 100);
        free_sized(block, 105);
    }

    pub(super) fn size_of_a_large_block() {
        let block = malloc(100_000);
        wrong(block, 1000, 100_000);
        free_sized(block, 1000);
    }

    pub(super) fn size_of_a_small_block_is_large() {
        let block = malloc(1000);
        wrong(block, 100_000, 1000);
        free_sized(block, 100_000);
    }

    pub(super) fn size_by_flags() {
        let block = raw::allocate(100, Flags::NONE.uncached()).expose_provenance();
        wrong(block, 300, 100);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate_sized(pointer(block), 300, Flags::NONE.uncached()) };
    }

    pub(super) fn size_with_another_alignment() {
        let block = raw::malloc_aligned(100, 256).expose_provenance();
        wrong(block, 100, 256);
        free_sized(block, 100);
    }

    pub(super) fn size_of_a_layout() {
        let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: a layout of 100 bytes.
        let block = unsafe { Lumalloc.alloc(layout(100)) };
        wrong(block.expose_provenance(), 200, 100);
        // SAFETY: the mistake that is tested.
        unsafe { Lumalloc.dealloc(block, layout(200)) };
    }

    pub(super) fn size_of_a_layout_in_the_same_class() {
        let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
        // SAFETY: a layout of 100 bytes.
        let block = unsafe { Lumalloc.alloc(layout(100)) };
        wrong(block.expose_provenance(), 99, 100);
        // SAFETY: the mistake that is tested.
        unsafe { Lumalloc.dealloc(block, layout(99)) };
    }

    pub(super) fn size_by_flags_in_the_same_class() {
        let [block, other] = [malloc(100), malloc(100)];
        // A block of `sdallocx` may have been made longer without a change of its requested size.
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate_sized(pointer(other), 99, Flags::NONE) };
        wrong(block, 101, 100);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate_sized(pointer(block), 101, Flags::NONE) };
    }

    pub(super) fn size_past_the_caches_in_the_same_class() {
        let block = raw::allocate(100, Flags::NONE.uncached()).expose_provenance();
        wrong(block, 101, 100);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate_sized(pointer(block), 101, Flags::NONE.uncached()) };
    }

    pub(super) fn inside_a_block() {
        let block = malloc(100);
        tell(&format!(
            "invalid free of {:#x}: inside the block {block:#x} (size 112, arena 0)",
            block + 16
        ));
        free(block + 16);
    }

    /// The canary of a block that began there would lie in the next slab or nowhere.
    pub(super) fn inside_a_long_block() {
        let blocks = [malloc(30_000), malloc(30_000)];
        let block = blocks[0].max(blocks[1]);
        tell(&format!(
            "invalid free of {:#x}: inside the block {block:#x} (size 32768, arena 0)",
            block + 20_000
        ));
        free(block + 20_000);
    }

    pub(super) fn at_an_odd_address() {
        let block = malloc(100);
        tell(&format!(
            "invalid free of {:#x}: inside the block {block:#x} (size 112, arena 0)",
            block + 3
        ));
        free_sized(block + 3, 100);
    }
}
