//! What the options of the profiler say about its begin, in children.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::{control::profile, observe, raw};

#[test]
#[ignore = "the scenarios of the test here"]
fn child() {
    match scenario().as_deref() {
        Some("inactive") => inactive(),
        Some("new_threads") => new_threads(),
        Some("last_one") => last_one(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Whether a request is sampled, where each one is that may be.
fn sampled() -> bool {
    let block = raw::malloc(100);
    let mut is_live = false;
    observe::live_samples(|sample| is_live |= sample.address == block.addr());
    // SAFETY: a live block, freed once.
    unsafe { raw::free(block) };
    is_live
}

fn of_thread() -> bool {
    std::thread::spawn(sampled).join().expect("a thread")
}

fn inactive() {
    assert!(profile::is_enabled() && !profile::is_active());
    assert!(!sampled() && !of_thread());
    assert!(!profile::set_active(true) && sampled() && of_thread());
}

/// The first thread is a new one too. A thread may be sampled by its own word.
fn new_threads() {
    assert!(profile::is_active() && !sampled() && !of_thread());
    assert!(!profile::set_thread_active(true) && sampled() && !of_thread());
    assert!(!profile::set_samples_new_threads(true) && of_thread());
}

/// The stack of a free is taken only where it is kept.
fn last_one() {
    let stacks = || observe::profile_counts().stacks;
    let free = |block: *mut u8| {
        // SAFETY: a live block, freed once.
        unsafe { raw::free(block) };
        stacks()
    };
    let blocks = [raw::malloc(100), raw::malloc(100)];
    let before = stacks();
    assert_eq!(blocks.map(free), [before, before + 1]);
}

#[test]
fn options_say_what_is_sampled_at_first() {
    play_well("inactive", "prof:true,lg_prof_sample:0,prof_active:false");
    play_well("new_threads", "prof:true,lg_prof_sample:0,prof_thread_active_init:false");
}

#[test]
fn a_sample_that_is_not_among_the_last_ones_is_freed_without_a_stack() {
    play_well("last_one", "prof:true,lg_prof_sample:0,prof_recent_alloc_max:1");
}
