//! False sharing: threads do not write to one cache line because the allocator put their small
//! blocks side by side.
#![allow(unsafe_code)]

mod common;

use common::alone;
use lumalloc::raw;
use std::sync::mpsc;
use std::thread;

const LINE: usize = 64;

fn malloc(size: usize) -> usize {
    raw::malloc(size).expose_provenance()
}

fn free(block: usize) {
    // SAFETY: the callers free each block once.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(block)) };
}

/// Whether two blocks have a cache line in common.
fn share(one: usize, other: usize, size: usize) -> bool {
    one / LINE <= (other + size - 1) / LINE && other / LINE <= (one + size - 1) / LINE
}

/// Occupies the caches that ended threads left: while the result lives, a thread gets a new one.
fn take_left_caches() -> impl Drop {
    struct Waiting(Vec<(mpsc::Sender<()>, thread::JoinHandle<()>)>);
    impl Drop for Waiting {
        fn drop(&mut self) {
            for (go, thread) in self.0.drain(..) {
                drop(go);
                thread.join().expect("the thread");
            }
        }
    }
    let begin = |_| {
        let ((go, wait), (ready, begun)) = (mpsc::channel::<()>(), mpsc::channel());
        let thread = thread::spawn(move || {
            free(malloc(1));
            ready.send(()).expect("the test");
            let _ = wait.recv();
        });
        begun.recv().expect("the thread");
        (go, thread)
    };
    // More threads than this program has at once.
    Waiting((0..16).map(begin).collect())
}

/// Runs on a new thread, whose cache knows no class yet.
fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(work).join().expect("the thread")
}

/// The first blocks of two threads both come from a slab that threads share.
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

/// A thread that freed blocks of another thread does not get them when it begins to allocate.
#[test]
fn a_thread_does_not_begin_with_others_blocks() {
    let _alone = alone();
    // A cache that served another thread before knows the classes which that thread requested.
    let _left = take_left_caches();
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
