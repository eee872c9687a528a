//! Commits a misuse of the allocator from Rust, for `tests/tests/misuse.rs`.
//!
//! The first argument names the misuse, the second one a size. If nothing notices the misuse, the
//! program says so and ends by the return of `main`. A kind that asks for a promise says so only if
//! it is not kept. `list` prints the names. `tests/c/misuse_kinds.h` has the same kinds for C and
//! C++. Rust's types never ask for 0 bytes.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::io::Write;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const MIB: usize = 1 << 20;
const ROUNDS: usize = 1024;
const MANY_ROUNDS: usize = 256 * 1024;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a layout")
}

fn block(size: usize) -> *mut u8 {
    // SAFETY: the size is not 0.
    black_box(unsafe { alloc(layout(size)) })
}

fn free(block: *mut u8, size: usize) {
    // SAFETY: a block of this layout, or the misuse that is tested.
    unsafe { dealloc(black_box(block), layout(size)) };
}

fn touch(place: *mut u8) {
    // SAFETY: the misuse that is tested.
    let old = unsafe { place.read_volatile() };
    // SAFETY: as above.
    unsafe { place.write_volatile(old ^ 0x41) };
}

fn cycle(size: usize, rounds: usize) {
    (0..rounds).for_each(|_| free(block(size), size));
}

fn twice(size: usize) {
    let block = block(size);
    free(block, size);
    free(block, size);
}

fn twice_delayed(size: usize) {
    let block = block(size);
    free(block, size);
    cycle(size, ROUNDS);
    free(block, size);
}

fn twice_interleaved(size: usize) {
    let (one, other) = (block(size), block(size));
    free(one, size);
    free(other, size);
    free(one, size);
}

fn twice_then_used(size: usize) {
    twice(size);
    cycle(size, MANY_ROUNDS);
}

fn twice_over_a_new_owner(size: usize) {
    let first = block(size);
    free(first, size);
    let second = block(size);
    free(first, size);
    free(second, size);
}

fn free_a_number(size: usize) {
    free(std::ptr::without_provenance_mut(1), size);
}

fn free_the_stack(size: usize) {
    free(black_box(&mut [0u64; 8]).as_mut_ptr().cast(), size);
}

fn free_by(size: usize, distance: usize) {
    free(block(size).wrapping_add(distance), size);
}

fn free_a_page_on(size: usize) {
    free_by(size, 4096);
}

fn free_far_on(size: usize) {
    free_by(size, 512 * MIB);
}

fn free_at_an_odd_address(size: usize) {
    free_by(size, 1);
}

fn free_a_word_on(size: usize) {
    free_by(size, 8);
}

fn free_with_another_layout(size: usize) {
    free(block(size), 2 * size);
}

/// A write at an offset from the block, which is freed then.
fn write_at(size: usize, offset: isize) {
    let block = block(size);
    touch(block.wrapping_offset(offset));
    free(block, size);
}

fn over_by_1(size: usize) {
    write_at(size, size as isize);
}

fn over_by_32(size: usize) {
    write_at(size, size as isize + 31);
}

fn over_by_a_mib(size: usize) {
    write_at(size, (size + MIB) as isize);
}

fn under_by_1(size: usize) {
    write_at(size, -1);
}

fn under_by_32(size: usize) {
    write_at(size, -32);
}

fn under_by_a_mib(size: usize) {
    write_at(size, -(MIB as isize));
}

/// Writes zeroes from an offset on. The block stays.
fn copy(size: usize, offset: isize, bytes: usize) {
    let from = block(size).wrapping_offset(offset);
    // SAFETY: the misuse that is tested.
    unsafe { black_box(from).write_bytes(0, bytes) };
}

fn copy_over_by_1(size: usize) {
    copy(size, 0, size + 1);
}

fn copy_over_by_32(size: usize) {
    copy(size, 0, size + 32);
}

fn copy_over_by_a_mib(size: usize) {
    copy(size, 0, size + MIB);
}

fn copy_under_by_1(size: usize) {
    copy(size, -1, size + 1);
}

fn copy_under_by_32(size: usize) {
    copy(size, -32, size + 32);
}

fn copy_under_by_a_mib(size: usize) {
    copy(size, -(MIB as isize), size + MIB);
}

fn write_after_free(size: usize) {
    let block = block(size);
    free(block, size);
    // SAFETY: the misuse that is tested.
    unsafe { black_box(block).write_bytes(0x41, size) };
}

/// Allocates much of several sizes and frees it, so that the pages of later slabs were used before.
fn warm_up() {
    for _ in 0..2 {
        let mut made = Vec::new();
        for size in [16, 96, 512, 1000, 4096] {
            made.extend((0..MIB / size).map(|_| vec![0x41_u8; black_box(size)]));
        }
        drop(black_box(made));
    }
}

fn write_after_free_when_warm(size: usize) {
    warm_up();
    write_after_free(size);
}

fn write_after_free_when_warm_then_used(size: usize) {
    write_after_free_when_warm(size);
    cycle(size, MANY_ROUNDS);
}

fn write_after_free_then_used(size: usize) {
    write_after_free(size);
    cycle(size, MANY_ROUNDS);
}

/// Whether a block reads zero.
fn is_zero(block: *const u8, size: usize) -> bool {
    // SAFETY: a block of that size, or the misuse that is tested.
    (0..size).all(|at| unsafe { black_box(block).wrapping_add(at).read_volatile() } == 0)
}

fn zeroed_when_freed(size: usize) -> bool {
    let block = block(size);
    // SAFETY: a block of that size.
    unsafe { block.write_bytes(0x41, size) };
    free(block, size);
    is_zero(block, size)
}

fn zeroed_when_allocated(size: usize) -> bool {
    is_zero(block(size), size)
}

fn not_reused_at_once(size: usize) -> bool {
    let first = block(size);
    free(first, size);
    block(size) != first
}

fn not_reused_by_a_smaller_one(size: usize) -> bool {
    let first = block(size);
    free(first, size);
    block(size - 1) != first
}

/// What a kind does.
#[derive(Clone, Copy)]
enum Act {
    Misuse(fn(usize)),
    /// Returns whether the promise is kept.
    Promise(fn(usize) -> bool),
}

use Act::{Misuse, Promise};

const KINDS: [(&str, Act); 32] = [
    ("twice", Misuse(twice)),
    ("twice_delayed", Misuse(twice_delayed)),
    ("twice_interleaved", Misuse(twice_interleaved)),
    ("twice_then_used", Misuse(twice_then_used)),
    ("twice_over_a_new_owner", Misuse(twice_over_a_new_owner)),
    ("free_a_number", Misuse(free_a_number)),
    ("free_the_stack", Misuse(free_the_stack)),
    ("free_a_page_on", Misuse(free_a_page_on)),
    ("free_far_on", Misuse(free_far_on)),
    ("free_at_an_odd_address", Misuse(free_at_an_odd_address)),
    ("free_a_word_on", Misuse(free_a_word_on)),
    ("free_with_another_layout", Misuse(free_with_another_layout)),
    ("over_by_1", Misuse(over_by_1)),
    ("over_by_32", Misuse(over_by_32)),
    ("over_by_a_mib", Misuse(over_by_a_mib)),
    ("under_by_1", Misuse(under_by_1)),
    ("under_by_32", Misuse(under_by_32)),
    ("under_by_a_mib", Misuse(under_by_a_mib)),
    ("copy_over_by_1", Misuse(copy_over_by_1)),
    ("copy_over_by_32", Misuse(copy_over_by_32)),
    ("copy_over_by_a_mib", Misuse(copy_over_by_a_mib)),
    ("copy_under_by_1", Misuse(copy_under_by_1)),
    ("copy_under_by_32", Misuse(copy_under_by_32)),
    ("copy_under_by_a_mib", Misuse(copy_under_by_a_mib)),
    ("write_after_free", Misuse(write_after_free)),
    ("write_after_free_then_used", Misuse(write_after_free_then_used)),
    ("write_after_free_when_warm", Misuse(write_after_free_when_warm)),
    ("write_after_free_when_warm_then_used", Misuse(write_after_free_when_warm_then_used)),
    ("zeroed_when_freed", Promise(zeroed_when_freed)),
    ("zeroed_when_allocated", Promise(zeroed_when_allocated)),
    ("not_reused_at_once", Promise(not_reused_at_once)),
    ("not_reused_by_a_smaller_one", Promise(not_reused_by_a_smaller_one)),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let size = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(16);
    for (kind, act) in KINDS {
        if name == "list" {
            println!("{kind} sized");
        } else if name == kind {
            let is_kept = match act {
                Misuse(misuse) => {
                    misuse(size);
                    false
                }
                Promise(promise) => promise(size),
            };
            if !is_kept {
                println!("unnoticed");
                std::io::stdout().flush().expect("standard output takes a line");
            }
        }
    }
}
