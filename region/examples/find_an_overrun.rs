//! A write behind a block, found by a region with the method `Debug`.
//! `cargo run -p lumalloc-region --example find_an_overrun`.
#![allow(unsafe_code, reason = "blocks are raw memory")]

use lumalloc_region::{Debug, Heap, Region};

fn main() {
    let region: Region<Debug, Heap> = Region::open(Heap).expect("memory");
    let name = region.alloc(10).expect("memory");
    // The text and its end do not fit: this is the mistake.
    let text = b"ten bytes.\0";
    // SAFETY: this is what is not kept: the last byte lies behind the block, in the guard that the
    // method has there.
    unsafe { name.as_ptr().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    // A line on standard error says where the block was allocated, and the place in it.
    println!("corrupt blocks: {:?}", region.check());
}
