//! A program whose threads exchange blocks until it ends is not taken for one that misuses them.
#![allow(unsafe_code)]

mod common;

use common::child::{play, scenario};
use lumalloc::raw;
use std::sync::mpsc::sync_channel;

/// Sizes whose blocks wait at the bins of the arenas, so that threads hand them over.
const SIZES: [usize; 6] = [4097, 5000, 8000, 12_000, 20_000, 32_768];

fn malloc(n: usize) -> usize {
    let ptr = raw::malloc(SIZES[n % SIZES.len()]);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(std::ptr::with_exposed_provenance_mut(address)) };
}

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    if scenario().as_deref() == Some("exchange") {
        exchange();
    }
}

/// Threads in a ring pass blocks on and free those of others, while the process exits.
fn exchange() {
    let (first, mut from) = sync_channel::<usize>(64);
    for _ in 0..4 {
        let (to, next) = sync_channel(64);
        let from = std::mem::replace(&mut from, next);
        std::thread::spawn(move || {
            for (n, block) in from.into_iter().enumerate() {
                free(block);
                to.send(malloc(n)).expect("it is received");
            }
        });
    }
    for n in 0..3000 {
        first.send(malloc(n)).expect("it is received");
        if n >= 32 {
            free(from.recv().expect("it is sent"));
        }
    }
    // They go on without this thread.
    std::thread::spawn(move || {
        for (n, block) in from.into_iter().enumerate() {
            free(block);
            first.send(malloc(n)).expect("it is received");
        }
    });
    // SAFETY: the test has no handlers of its own.
    unsafe { libc::exit(0) }
}

#[test]
fn nothing_is_found_in_blocks_that_threads_exchange() {
    for conf in ["", "hardened:true", "tcache:false", "narenas:1"] {
        for _ in 0..5 {
            let outcome = play("exchange", &[("LUMALLOC_CONF", conf)]);
            assert!(outcome.success && outcome.stderr.is_empty(), "{conf}: {outcome:?}");
        }
    }
}
