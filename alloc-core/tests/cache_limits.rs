//! `tcache_ncached_max`, in children with option strings.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::{control, observe, raw};

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    if let Some(name) = scenario() {
        assert_eq!(name, "told_tcache", "no such scenario");
        std::thread::spawn(told_tcache).join().expect("the thread");
    }
}

/// Runs in a new thread. The first caches of the main thread are made like all others.
fn told_tcache() {
    for (size, most) in [(1000, 3 * 1024), (64, 64 << 10), (2000, 0), (4000, 0), (8, 64 << 10)] {
        let blocks: Vec<_> = (0..100).map(|_| raw::malloc(size)).collect();
        let mut highest = 0;
        for block in blocks {
            // SAFETY: a live block, freed once.
            unsafe { raw::free(block) };
            highest = highest.max(observe::totals().cached);
        }
        assert!(highest <= most && (highest > 0) == (most > 0), "{size}: {highest}");
        control::flush_thread_cache();
        assert_eq!(observe::totals().cached, 0);
    }
    assert_eq!(control::thread::ncached_max(1000), Some(3));
    assert!(control::thread::set_ncached_max(b"1000-1000:5"), "a thread may say otherwise");
    assert_eq!(control::thread::ncached_max(1000), Some(5));
    assert_eq!(control::thread::ncached_max(2000), Some(0));
}

#[test]
fn threads_cache_as_many_blocks_of_a_class_as_they_are_told() {
    play_well("told_tcache", "tcache_ncached_max:1000-1024:3|2000-4096:0");
    let added = "tcache_ncached_max:1000-1024:9,tcache_ncached_max:1024-1024:3|2000-4096:0";
    play_well("told_tcache", added);
}
