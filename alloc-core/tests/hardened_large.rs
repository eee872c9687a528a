//! The hardened tier and large blocks: a write behind the requested bytes ends the process when the
//! block is freed or resized, or at the exit, and so does a sized free by another size.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::control::arenas;
use lumalloc::raw::{self, Flags};
use lumalloc::{Lumalloc, PAGE};
use std::alloc::{GlobalAlloc, Layout};

macro_rules! deaths {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                dies(stringify!($name), "hardened:true");
                dies(stringify!($name), "hardened:true,tcache:false");
                dies(stringify!($name), "hardened:true,junk:true");
                dies(stringify!($name), "hardened:true,zero:true,retain:false");
            }
        )*

        fn play_death(name: &str) -> bool {
            match name {
                $(stringify!($name) => deaths::$name(),)*
                _ => return false,
            }
            // A look at the exit would come too late.
            // SAFETY: ends the process.
            unsafe { libc::_exit(42) };
        }
    };
}

deaths!(
    overflow_by_a_zero_byte,
    overflow_behind_the_first_byte,
    overflow_of_the_last_byte_of_a_page,
    overflow_of_a_zeroed_block,
    overflow_of_an_aligned_block,
    overflow_of_a_small_request,
    overflow_of_a_layout,
    overflow_of_a_layout_of_zeroes,
    overflow_of_a_kept_block,
    overflow_of_a_very_long_block,
    overflow_of_a_block_with_its_neighbours_canary,
    overflow_of_a_lengthened_block,
    overflow_of_a_shortened_block,
    overflow_of_whole_pages_of_a_resized_block,
    overflow_of_a_moved_block,
    overflow_of_a_block_of_an_arena_with_hooks,
    overflow_seen_by_realloc_in_place,
    overflow_seen_by_realloc_that_copies,
    overflow_seen_by_realloc_that_moves,
    overflow_seen_by_a_resize_in_place,
    overflow_seen_past_the_caches,
    overflow_seen_by_another_thread,
    overflow_seen_at_the_exit,
    size_too_large,
    size_too_small,
    size_of_a_layout,
    size_past_the_caches,
);

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    let Some(name) = scenario() else { return };
    assert!(play_death(&name), "no scenario {name}");
}

/// The bytes of a block that does not fill its class, of 229,376 bytes.
const SIZE: usize = 200_000;

fn malloc(size: usize) -> *mut u8 {
    let block = raw::malloc(size);
    assert!(!block.is_null());
    block
}

fn allocate(size: usize, flags: Flags) -> *mut u8 {
    let block = raw::allocate(size, flags);
    assert!(!block.is_null());
    block
}

fn free(block: *mut u8) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free(block) };
}

fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: a live block, or the mistake that is tested.
    unsafe { raw::realloc(block, size) }
}

fn write(place: *mut u8, byte: u8) {
    // SAFETY: memory of the allocator.
    unsafe { place.write_volatile(byte) };
}

/// Changes a byte.
fn damage(block: *mut u8, at: usize) {
    let place = block.wrapping_add(at);
    // SAFETY: memory of the allocator.
    let byte = unsafe { place.read_volatile() };
    write(place, byte ^ 0x55);
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a layout")
}

mod deaths {
    use super::*;

    /// Tells what an overflow of a block of so many requested bytes ends in.
    fn overrun(block: *mut u8, requested: usize) {
        overrun_in(block, requested, 0);
    }

    fn overrun_in(block: *mut u8, requested: usize, arena: u32) {
        let bytes = raw::block_size(block).expect("a block");
        tell(&format!(
            "buffer overflow of {block:p}: the canary behind its {requested} bytes was \
             overwritten (size {bytes}, arena {arena})"
        ));
    }

    fn wrong(block: *mut u8, given: usize, size: usize) {
        tell(&format!(
            "sized free of {block:p} with size {given}, which is not its own (size {size}, arena 0)"
        ));
    }

    pub(super) fn overflow_by_a_zero_byte() {
        let block = malloc(SIZE);
        assert_eq!(raw::block_size(block), Some(229_376));
        overrun(block, SIZE);
        write(block.wrapping_add(SIZE), 0);
        free(block);
    }

    /// The first 32 bytes are looked at.
    pub(super) fn overflow_behind_the_first_byte() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE + 31);
        free(block);
    }

    pub(super) fn overflow_of_the_last_byte_of_a_page() {
        let block = malloc(10 * PAGE - 1);
        overrun(block, 10 * PAGE - 1);
        damage(block, 10 * PAGE - 1);
        free(block);
    }

    pub(super) fn overflow_of_a_zeroed_block() {
        let block = raw::malloc_zeroed(SIZE);
        overrun(block, SIZE);
        write(block.wrapping_add(SIZE), 0);
        free(block);
    }

    /// A large block, because it is aligned to more than slabs are.
    pub(super) fn overflow_of_an_aligned_block() {
        let block = raw::malloc_aligned(100, 1 << 16);
        assert_eq!(raw::block_size(block), Some(PAGE));
        overrun(block, 100);
        write(block.wrapping_add(100), 0);
        free(block);
    }

    /// A large block, because no slab has room for it and a canary.
    pub(super) fn overflow_of_a_small_request() {
        let block = malloc(32_765);
        overrun(block, 32_765);
        write(block.wrapping_add(32_767), 0);
        free(block);
    }

    pub(super) fn overflow_of_a_layout() {
        // SAFETY: a layout of some bytes.
        let block = unsafe { Lumalloc.alloc(layout(SIZE)) };
        overrun(block, SIZE);
        write(block.wrapping_add(SIZE), 0);
        // SAFETY: the mistake that is tested.
        unsafe { Lumalloc.dealloc(block, layout(SIZE)) };
    }

    pub(super) fn overflow_of_a_layout_of_zeroes() {
        // SAFETY: a layout of some bytes.
        let block = unsafe { Lumalloc.alloc_zeroed(layout(SIZE)) };
        overrun(block, SIZE);
        damage(block, SIZE + 31);
        // SAFETY: the mistake that is tested.
        unsafe { Lumalloc.dealloc(block, layout(SIZE)) };
    }

    pub(super) fn overflow_of_a_kept_block() {
        for _ in 0..2 {
            [(); 6].map(|()| malloc(SIZE)).into_iter().for_each(free);
        }
        let block = malloc(SIZE - 1000);
        overrun(block, SIZE - 1000);
        write(block.wrapping_add(SIZE - 1000), 0);
        free(block);
    }

    pub(super) fn overflow_of_a_very_long_block() {
        let block = malloc((40 << 20) + 1);
        overrun(block, (40 << 20) + 1);
        damage(block, (40 << 20) + 1);
        free(block);
    }

    /// A copy of a block with its canary does not pass for another block's.
    pub(super) fn overflow_of_a_block_with_its_neighbours_canary() {
        let [from, to] = [malloc(SIZE), malloc(SIZE)];
        overrun(to, SIZE);
        // SAFETY: memory of the allocator.
        unsafe { to.copy_from_nonoverlapping(from, SIZE + 8) };
        free(to);
    }

    pub(super) fn overflow_of_a_lengthened_block() {
        let block = malloc(SIZE);
        let same = realloc(block, SIZE + 5000);
        assert_eq!(same, block);
        overrun(block, SIZE + 5000);
        write(block.wrapping_add(SIZE + 5000), 0);
        free(block);
    }

    pub(super) fn overflow_of_a_shortened_block() {
        let block = malloc(SIZE);
        // SAFETY: a live block, this long.
        unsafe { block.write_bytes(7, SIZE) };
        assert_eq!(realloc(block, SIZE / 2), block);
        overrun(block, SIZE / 2);
        damage(block, SIZE / 2);
        free(block);
    }

    pub(super) fn overflow_of_whole_pages_of_a_resized_block() {
        let block = malloc(SIZE);
        assert_eq!(realloc(block, 50 * PAGE), block);
        overrun(block, 50 * PAGE);
        write(block.wrapping_add(50 * PAGE), 0);
        free(block);
    }

    pub(super) fn overflow_of_a_moved_block() {
        let first = malloc((16 << 20) + 1);
        let block = realloc(first, (48 << 20) + 1);
        overrun(block, (48 << 20) + 1);
        write(block.wrapping_add((48 << 20) + 1), 0);
        free(block);
    }

    pub(super) fn overflow_of_a_block_of_an_arena_with_hooks() {
        let hooks = arenas::extent_hooks(0).expect("the first arena");
        let arena = arenas::create().expect("an arena");
        // SAFETY: the default hooks do what the manual says.
        assert!(unsafe { arenas::set_extent_hooks(arena, hooks) }.is_some());
        let block = allocate(SIZE, Flags::NONE.arena(arena));
        overrun_in(block, SIZE, arena);
        write(block.wrapping_add(SIZE), 0);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate(block, Flags::NONE.arena(arena)) };
    }

    pub(super) fn overflow_seen_by_realloc_in_place() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE);
        let _same = realloc(block, SIZE + 1);
    }

    pub(super) fn overflow_seen_by_realloc_that_copies() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE);
        let _moved = realloc(block, 100);
    }

    pub(super) fn overflow_seen_by_realloc_that_moves() {
        let block = malloc((16 << 20) + 1);
        overrun(block, (16 << 20) + 1);
        damage(block, (16 << 20) + 1);
        let _moved = realloc(block, 48 << 20);
    }

    pub(super) fn overflow_seen_by_a_resize_in_place() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE);
        // SAFETY: a live block.
        let _size = unsafe { raw::resize_in_place(block, SIZE - 9, 0, Flags::NONE) };
    }

    pub(super) fn overflow_seen_past_the_caches() {
        let block = allocate(SIZE, Flags::NONE.uncached());
        overrun(block, SIZE);
        damage(block, SIZE);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
    }

    pub(super) fn overflow_seen_by_another_thread() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE + 7);
        let address = block.expose_provenance();
        let thread = move || free(std::ptr::with_exposed_provenance_mut(address));
        std::thread::spawn(thread).join().expect("dead by now");
    }

    pub(super) fn overflow_seen_at_the_exit() {
        let block = malloc(SIZE);
        overrun(block, SIZE);
        damage(block, SIZE);
        // SAFETY: the test has no handlers of its own. The process has this thread alone.
        unsafe { libc::exit(0) }
    }

    pub(super) fn size_too_large() {
        let block = malloc(SIZE);
        wrong(block, SIZE + 1, SIZE);
        // SAFETY: the mistake that is tested.
        unsafe { raw::free_sized(block, SIZE + 1) };
    }

    pub(super) fn size_too_small() {
        let [block, other] = [malloc(SIZE), malloc(SIZE)];
        // `sdallocx` may tell less, within the class.
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::deallocate_sized(other, SIZE - 1, Flags::NONE) };
        wrong(block, SIZE - 1, SIZE);
        // SAFETY: the mistake that is tested.
        unsafe { raw::free_sized(block, SIZE - 1) };
    }

    pub(super) fn size_of_a_layout() {
        // SAFETY: a layout of some bytes.
        let block = unsafe { Lumalloc.alloc(layout(SIZE)) };
        wrong(block, SIZE + 1, SIZE);
        // SAFETY: the mistake that is tested.
        unsafe { Lumalloc.dealloc(block, layout(SIZE + 1)) };
    }

    pub(super) fn size_past_the_caches() {
        let block = allocate(SIZE, Flags::NONE.uncached());
        wrong(block, SIZE + 1, SIZE);
        // SAFETY: the mistake that is tested.
        unsafe { raw::deallocate_sized(block, SIZE + 1, Flags::NONE.uncached()) };
    }
}
