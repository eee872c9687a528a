//! A second free of a block that waits for the next thread's request ends the process.
#![allow(unsafe_code)]

mod common;

use common::child::{dies, scenario, tell};
use lumalloc::control::{ARENAS_ALL, flush_thread_cache, purge};
use lumalloc::raw::{self, Flags};

#[test]
fn double_free_by_way_of_the_cache() {
    dies("cached", "");
}

#[test]
fn double_free_past_the_cache() {
    dies("uncached", "");
}

#[test]
fn double_free_of_a_block_that_went_into_its_slab() {
    dies("in its slab", "");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    let Some(name) = scenario() else { return };
    let block = raw::malloc(20000);
    // The other block keeps the slab.
    let _other = raw::malloc(20000);
    free(block);
    flush_thread_cache();
    if name == "in its slab" {
        assert!(purge(ARENAS_ALL));
    }
    tell(&format!("double free of {block:p} (size 20480, arena 0)"));
    if name == "uncached" {
        // SAFETY: none. This is the mistake that is tested.
        unsafe { raw::deallocate(block, Flags::NONE.uncached()) };
    } else {
        free(block);
        flush_thread_cache();
    }
    panic!("{name} survived");
}

fn free(block: *mut u8) {
    // SAFETY: a block of this allocator, or the mistake that is tested.
    unsafe { raw::free(block) };
}
