//! Commits a misuse of the allocator from Rust, for `tests/tests/misuse.rs`.
//!
//! The first argument names the misuse, the second one a size. If nothing notices the misuse, the
//! program says so and ends by the return of `main`. `list` prints the names. The misuses here are
//! those that unsafe Rust makes possible; `tests/c/misuse.c` has more.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::io::Write;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const MIB: usize = 1 << 20;

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

fn twice(size: usize) {
    let block = block(size);
    free(block, size);
    free(block, size);
}

fn twice_interleaved(size: usize) {
    let (one, other) = (block(size), block(size));
    free(one, size);
    free(other, size);
    free(one, size);
}

fn free_a_word_on(size: usize) {
    free(block(size).wrapping_add(8), size);
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

fn over_by_a_mib(size: usize) {
    write_at(size, (size + MIB) as isize);
}

fn under_by_1(size: usize) {
    write_at(size, -1);
}

fn write_after_free(size: usize) {
    let block = block(size);
    free(block, size);
    // SAFETY: the misuse that is tested.
    unsafe { black_box(block).write_bytes(0x41, size) };
}

type Misuse = fn(usize);

const KINDS: [(&str, Misuse); 8] = [
    ("twice", twice),
    ("twice_interleaved", twice_interleaved),
    ("free_a_word_on", free_a_word_on),
    ("free_with_another_layout", free_with_another_layout),
    ("over_by_1", over_by_1),
    ("over_by_a_mib", over_by_a_mib),
    ("under_by_1", under_by_1),
    ("write_after_free", write_after_free),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let size = arguments.next().and_then(|size| size.parse().ok()).unwrap_or(16);
    for (kind, misuse) in KINDS {
        if name == "list" {
            println!("{kind} sized");
        } else if name == kind {
            misuse(size);
            println!("unnoticed");
            std::io::stdout().flush().expect("standard output takes a line");
        }
    }
}
