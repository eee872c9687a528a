//! C's `realloc` leaves room behind blocks that grow step by step. The frees that look up the class
//! accept each size that such a block may have.
#![allow(unsafe_code)]

mod common;

use common::block::Block;
use common::child::{play, scenario, tell, without_trail};
use common::{alone, assert_empty};
use lumalloc::control::flush_thread_cache;
use lumalloc::raw::{self, Flags};

/// `realloc` as in C.
fn grown(ptr: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: a live block, or null.
    if unsafe { raw::stays(ptr, size) } {
        return ptr;
    }
    if ptr.is_null() {
        return raw::malloc(size);
    }
    // SAFETY: a live block that does not stay.
    unsafe { raw::realloc_roomy(ptr, size) }
}

fn usable(ptr: *mut u8) -> usize {
    // SAFETY: a live block.
    unsafe { raw::usable_size(ptr) }
}

#[test]
fn small_steps_move_twice_a_doubling() {
    let _alone = alone();
    let (mut ptr, mut moves) = (grown(std::ptr::null_mut(), 24), 0);
    for size in (48..=2048).step_by(24) {
        let block = Block::filled(ptr, size - 24, size as u64).expect("not null");
        let next = grown(ptr, size);
        moves += usize::from(next != ptr);
        ptr = next;
        Block { address: ptr.expose_provenance(), ..block }.check(size - 24);
        assert!(usable(ptr) >= size && usable(ptr) <= size + size / 2 + 16, "{size}");
    }
    assert!((9..=13).contains(&moves), "{moves}");
    // SAFETY: a live block.
    unsafe { raw::free_roomy(ptr, 2040, 1) };
    flush_thread_cache();
    assert_empty();
}

#[test]
fn room_is_for_the_next_step_only() {
    let _alone = alone();
    for (from, to, expected) in [
        (512, 520, 768),
        (512, 640, 768),
        (512, 641, 768),
        (512, 1000, 1024),
        (512, 300, 320),
        (48, 64, 64),
        (64, 80, 96),
        (24_000, 28_672, 32_768),
        (28_672, 32_768, 32_768),
        (32_768, 33_000, 40_960),
    ] {
        let ptr = grown(raw::malloc(from), to);
        assert_eq!(usable(ptr), expected, "{from} to {to}");
        // SAFETY: a live block of that size.
        unsafe { raw::free_roomy(ptr, to, 1) };
    }
    let ptr = raw::malloc(700);
    for (size, stays) in [(769, false), (768, true), (641, true), (640, true), (513, true)] {
        // SAFETY: a live block.
        assert_eq!(unsafe { raw::stays(ptr, size) }, stays, "{size}");
    }
    for size in [512, 0, usize::MAX] {
        // SAFETY: a live block.
        assert!(!unsafe { raw::stays(ptr, size) }, "{size}");
        // SAFETY: null is no block.
        assert!(!unsafe { raw::stays(std::ptr::null_mut(), size) }, "{size}");
    }
    // SAFETY: a live block.
    unsafe { raw::free(ptr) };
    flush_thread_cache();
    assert_empty();
}

/// Both frees that look up the class accept any size from the requested to the usable one.
#[test]
fn sized_frees_find_the_class_of_a_block_with_room() {
    let _alone = alone();
    for size in 520..=768 {
        for by_flags in [false, true] {
            let ptr = grown(raw::malloc(512), 520);
            assert_eq!(usable(ptr), 768);
            if by_flags {
                // SAFETY: a live block of that size.
                unsafe { raw::deallocate_sized(ptr, size, Flags::NONE) };
            } else {
                // SAFETY: a live block of that size.
                unsafe { raw::free_roomy(ptr, size, 1) };
            }
        }
    }
    // The flush would notice wrong bins.
    flush_thread_cache();
    assert_empty();
}

/// A sized free with a size of any other class ends the process at once, with a message.
#[test]
fn a_wrong_size_is_noticed_at_once() {
    let cases = [
        (100, 120, 112),
        (1000, 768, 1024),
        (100_000, 100, 114_688),
        (100_000, 50_000, 114_688),
        (100_000, 98_304, 114_688),
    ];
    for (block, size, class) in cases {
        let (block, size) = (block.to_string(), size.to_string());
        let outcome = play("wrong", &[("BLOCK", &block), ("SIZE", &size)]);
        assert_eq!(outcome.signal, Some(libc::SIGABRT), "{outcome:?}");
        let address = outcome.told.first().expect("the block's address");
        let expected = format!(
            "<lumalloc>: sized free of {address} with size {size}, which is not its own (size \
             {class}, arena 0)\n"
        );
        assert_eq!(without_trail(&outcome.stderr), expected);
    }
}

#[test]
#[ignore = "a scenario of the test above"]
fn child() {
    let Some(name) = scenario() else { return };
    assert_eq!(name, "wrong", "no such scenario");
    let number = |name| std::env::var(name).expect("set").parse().expect("a number");
    let ptr = raw::malloc(number("BLOCK"));
    tell(&format!("{:#x}", ptr.expose_provenance()));
    // SAFETY: the mistake that is tested: the allocator must notice the size.
    unsafe { raw::free_roomy(ptr, number("SIZE"), 1) };
}
