//! A query or a resize of a pointer that is no block in use ends the process, with a line that says
//! what is known. Each case runs in a child, which announces the expected message.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::raw::{self, Flags};
use std::ptr::with_exposed_provenance_mut;

#[test]
fn a_pointer_to_no_block_is_named() {
    ["stack", "realloc_of_foreign", "resize_of_foreign"].iter().for_each(|name| dies(name, ""));
}

#[test]
fn a_pointer_into_a_block_names_the_block() {
    ["inner", "inside_large", "realloc_of_inner"].iter().for_each(|name| dies(name, ""));
}

#[test]
fn a_pointer_into_freed_pages_is_named() {
    ["freed_large", "realloc_of_freed_large", "inside_freed"]
        .iter()
        .for_each(|name| dies(name, ""));
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
    let (small, large, freed) = (malloc(100), malloc(1 << 20), malloc(1 << 20));
    let here = [0u64; 4];
    let here = (&raw const here).expose_provenance();
    // SAFETY: a live block. It is used below, which is the mistake that is tested.
    unsafe { raw::free(with_exposed_provenance_mut(freed)) };
    match name.as_str() {
        "stack" => query(told_foreign(here)),
        "realloc_of_foreign" => realloc(told_foreign(0x10_0000)),
        "resize_of_foreign" => resize_in_place(told_foreign(0x10_0000)),
        "inner" => query(told_inner(small + 8, small, 112)),
        "realloc_of_inner" => realloc(told_inner(large + 4096, large, 1 << 20)),
        "inside_large" => query(told_inner(large + 4096, large, 1 << 20)),
        "freed_large" => query(told_freed(freed)),
        "realloc_of_freed_large" => realloc(told_freed(freed)),
        "inside_freed" => query(told_unused(freed + 8)),
        _ => panic!("no scenario {name}"),
    }
    panic!("{name} survived");
}

fn told_foreign(address: usize) -> usize {
    tell(&format!("invalid query of {address:#x}: not a block of this allocator"));
    address
}

fn told_inner(address: usize, block: usize, size: usize) -> usize {
    let place = format!("(size {size}, arena 0)");
    tell(&format!("invalid query of {address:#x}: inside the block {block:#x} {place}"));
    address
}

fn told_freed(address: usize) -> usize {
    let of_what = "realloc or a query of a freed block (arena 0)";
    tell(&format!("use after free of {address:#x}: {of_what}"));
    address
}

fn told_unused(address: usize) -> usize {
    let unused = "in unused memory (arena 0), freed before or never a block";
    tell(&format!("invalid query of {address:#x}: {unused}"));
    address
}

fn malloc(size: usize) -> usize {
    let block = raw::malloc(size);
    assert!(!block.is_null());
    block.expose_provenance()
}

fn query(address: usize) {
    // SAFETY: none. This is the mistake that is tested.
    let _never = unsafe { raw::usable_size(with_exposed_provenance_mut(address)) };
}

fn realloc(address: usize) {
    // SAFETY: none. This is the mistake that is tested.
    let _never = unsafe { raw::realloc(with_exposed_provenance_mut(address), 10) };
}

fn resize_in_place(address: usize) {
    let block = with_exposed_provenance_mut(address);
    // SAFETY: none. This is the mistake that is tested.
    let _never = unsafe { raw::resize_in_place(block, 10, 0, Flags::NONE) };
}
