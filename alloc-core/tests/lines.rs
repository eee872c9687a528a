//! False sharing: threads do not write to one cache line because the allocator put their small
//! blocks side by side.
#![allow(unsafe_code)]

mod common;

use common::alone;
use lumalloc::raw;
use std::thread;

const LINE: usize = 64;

fn malloc(size: usize) -> usize {
    raw::malloc(size).expose_provenance()
}

fn free(block: usize) {
    // SAFETY: the callers free each block once.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
}

/// Whether the blocks have a cache line in common.
fn share(one: usize, other: usize, size: usize) -> bool {
    one / LINE <= (other + size - 1) / LINE && other / LINE <= (one + size - 1) / LINE
}

/// Runs on a thread of its own, whose cache knows no class yet.
fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(work).join().expect("the thread")
}

/// The first blocks of two threads: both come from a slab that threads share.
#[test]
fn first_blocks_of_threads_lie_in_lines_of_their_own() {
    let _alone = alone();
    for size in [8, 16, 32, 48, 80, 96, 112] {
        let first = malloc(size);
        let other = on_a_thread(move || malloc(size));
        assert!(!share(first, other, size), "{size}: {first:x} {other:x}");
        free(first);
        free(other);
    }
}

/// What a thread was handed and has freed is not what it gets when it begins to allocate.
#[test]
fn a_thread_does_not_begin_with_others_blocks() {
    let _alone = alone();
    for size in [8, 16, 32, 48] {
        let blocks: Vec<usize> = (0..8).map(|_| malloc(size)).collect();
        let (given, kept) = blocks.split_at(4);
        let given = given.to_vec();
        let begun = on_a_thread(move || {
            given.into_iter().for_each(free);
            malloc(size)
        });
        for block in kept {
            assert!(!share(*block, begun, size), "{size}: {block:x} {begun:x}");
            free(*block);
        }
        free(begun);
    }
}
